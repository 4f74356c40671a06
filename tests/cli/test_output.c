/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables, colour and progress: what people see on a terminal, and that programs see none
 * of it. The terminal is a pseudo-terminal.
 */
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"

static void test_table(void **state)
{
    static const struct table_column columns[] = {
        {"name", TABLE_ALIGN_LEFT}, {"rate", TABLE_ALIGN_RIGHT}, {"note", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 3);
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    table_add(table, "größer");
    table_add_number(table, 12.345, 1);
    table_add(table, NULL);
    table_add(table, "日本");
    table_addf(table, "%d", 7);
    table_add(table, "wide");
    table_add(table, "x");
    table_write(table, &text);
    assert_string_equal(text.bytes, "name    rate  note\n"
                                    "größer  12.3\n"
                                    "日本       7  wide\n"
                                    "x\n");
}

static void test_empty_table(void **state)
{
    static const struct table_column columns[] = {{"a", TABLE_ALIGN_RIGHT},
                                                  {"b", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 2);
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    table_write(table, &text);
    assert_string_equal(text.bytes, "a  b\n");
}

static void test_style(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    output_add_styled(&text, OUTPUT_STYLE_GOOD, true, "yes");
    output_add_styled(&text, OUTPUT_STYLE_BAD, false, " no");
    assert_string_equal(text.bytes, "\033[32myes\033[0m no");
}

/* A descriptor of the process put onto a new pseudo-terminal of 20 columns. */
struct terminal {
    int master, slave, saved, fd;
};

static struct terminal open_terminal(int fd)
{
    struct winsize size = {.ws_row = 5, .ws_col = 20};
    struct termios raw;
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    struct terminal terminal = {master, slave, dup(fd), fd};
    assert_int_equal(dup2(slave, fd), fd);
    return terminal;
}

/* What was written there; the descriptor is what it was. The kernel hands bytes on when it
 * likes, so that only a mark behind them says that all have come. */
static void close_terminal(struct terminal *terminal, char *got, size_t size)
{
    static const char mark = '$';
    size_t length = 0;

    assert_int_equal(write(terminal->slave, &mark, 1), 1);
    while (length < size && read(terminal->master, got + length, 1) == 1 && got[length] != mark)
        length++;
    assert_true(length < size);
    got[length] = '\0';
    dup2(terminal->saved, terminal->fd);
    close(terminal->saved);
    close(terminal->slave);
    close(terminal->master);
}

static void test_colour(void **state)
{
    char got[8];

    (void)state;
    fflush(stdout);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    struct terminal terminal = open_terminal(STDOUT_FILENO);
    bool plain_terminal = output_is_terminal(), colour = output_has_colour();
    setenv("NO_COLOR", "", 1);
    bool with_empty = output_has_colour();
    setenv("NO_COLOR", "1", 1);
    bool with_no_color = output_has_colour();
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    bool dumb = output_has_colour();
    close_terminal(&terminal, got, sizeof got);
    assert_true(plain_terminal && colour && with_empty);
    assert_false(with_no_color || dumb);
}

static void test_progress(void **state)
{
    char got[256];
    struct progress progress = {0};

    (void)state;
    struct terminal terminal = open_terminal(STDERR_FILENO);
    progress_show(&progress, "%d of %d", 1, 9);
    progress_show(&progress, "too soon");
    progress_done(&progress);
    progress_show(&progress, "äöü is a line that is too long");
    progress_done(&progress);
    progress_done(&progress);
    close_terminal(&terminal, got, sizeof got);
    assert_string_equal(got, "\r\033[K1 of 9\r\033[K\r\033[Käöü is a line that \r\033[K");
}

static void test_no_progress(void **state)
{
    char got[256];
    struct progress progress = {0};
    FILE *file = tmpfile();

    (void)state;
    struct terminal terminal = open_terminal(STDERR_FILENO);
    log_set_level(LOG_ERROR);
    progress_show(&progress, "silenced");
    progress_done(&progress);
    log_set_level(LOG_INFO);
    dup2(fileno(file), STDERR_FILENO);
    progress_show(&progress, "no terminal");
    progress_done(&progress);
    close_terminal(&terminal, got, sizeof got);
    assert_string_equal(got, "");
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_empty_table),
        cmocka_unit_test(test_style),    cmocka_unit_test(test_colour),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_no_progress),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
