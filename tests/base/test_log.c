/* SPDX-License-Identifier: Apache-2.0
 *
 * The log's lines. Standard error is a packet socket here: one write() is one packet.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Standard error redirected; stderr_restore() undoes it. */
struct redirect {
    int reader;
    int saved;
};

static struct redirect redirect_to(int reader, int writer)
{
    struct redirect redirect = {.reader = reader, .saved = dup(STDERR_FILENO)};
    dup2(writer, STDERR_FILENO);
    close(writer);
    return redirect;
}

static struct redirect redirect_to_packets(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    return redirect_to(ends[0], ends[1]);
}

static void restore(const struct redirect *redirect)
{
    dup2(redirect->saved, STDERR_FILENO);
    close(redirect->saved);
    close(redirect->reader);
}

/* One packet, or "" when there is none. */
static void take(const struct redirect *redirect, char text[4096])
{
    ssize_t length = recv(redirect->reader, text, 4095, MSG_DONTWAIT);
    text[length > 0 ? length : 0] = '\0';
}

static void test_lines(void **state)
{
    (void)state;
    char lines[6][4096];
    struct redirect redirect = redirect_to_packets();
    log_write(LOG_INFO, "instance ready", "gpu=%s slice=%s", "g0", "3g.20gb");
    log_write(LOG_ERROR, "no pairs", NULL);
    log_write(LOG_WARN, "a \"quote\" \\ and\nline", "text=\"%s\"", "x\ny\033[2J\x7f");
    log_write(LOG_INFO, "größe", NULL);
    for (int i = 0; i < 5; i++)
        take(&redirect, lines[i]);
    restore(&redirect);
    assert_string_equal(lines[0], "level=info msg=\"instance ready\" gpu=g0 slice=3g.20gb\n");
    assert_string_equal(lines[1], "level=error msg=\"no pairs\"\n");
    assert_string_equal(lines[2], "level=warn msg=\"a \\\"quote\\\" \\\\ and\\nline\" "
                                  "text=\"x\\ny\\x1b[2J\\x7f\"\n");
    assert_string_equal(lines[3], "level=info msg=\"größe\"\n");
    assert_string_equal(lines[4], "");
}

static void test_json(void **state)
{
    static const struct {
        const char *message, *pairs, *line; /* after the time */
    } table[] = {
        {"ready", "", "\"level\":\"info\",\"msg\":\"ready\"}\n"},
        {"a \"b\"\n", "gpu=g0 slice=3g.20gb",
         "\"level\":\"info\",\"msg\":\"a "
         "\\\"b\\\"\\u000a\",\"gpu\":\"g0\",\"slice\":\"3g.20gb\"}\n"},
        {"m", "error=\"no \"such\" pod\" n=2",
         "\"level\":\"info\",\"msg\":\"m\",\"error\":\"no \\\"such\\\" pod\",\"n\":\"2\"}\n"},
        {"m", "open=\"x y", "\"level\":\"info\",\"msg\":\"m\",\"open\":\"\\\"x y\"}\n"},
        {"m", "word  empty= q=\"",
         "\"level\":\"info\",\"msg\":\"m\",\"word\":\"\",\"empty\":\"\",\"q\":\"\\\"\"}\n"},
    };
    (void)state;
    log_set_json(true);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[4096];
        struct redirect redirect = redirect_to_packets();
        log_write(LOG_INFO, table[i].message, "%s", table[i].pairs);
        take(&redirect, text);
        restore(&redirect);
        assert_memory_equal(text, "{\"time\":\"20", 11);
        assert_string_equal(strchr(text, ',') + 1, table[i].line);
    }
    log_set_json(false);
}

static void test_levels(void **state)
{
    (void)state;
    static const int shown[LOG_LEVEL_COUNT] = {1, 2, 3, 4};
    for (int level = 0; level < LOG_LEVEL_COUNT; level++) {
        int count = 0;
        char text[4096];
        struct redirect redirect = redirect_to_packets();
        log_set_level((enum log_level)level);
        for (int i = 0; i < LOG_LEVEL_COUNT; i++)
            log_write((enum log_level)i, "x", NULL);
        for (take(&redirect, text); text[0]; take(&redirect, text))
            count++;
        restore(&redirect);
        assert_int_equal(count, shown[level]);
    }
    log_set_level(LOG_INFO);
}

static void test_keeps_errno(void **state)
{
    (void)state;
    int saved = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    errno = ENOSPC;
    log_write(LOG_ERROR, "nobody hears", NULL);
    int after = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(after, ENOSPC);
}

/* What a warning and an information line look like on a terminal. */
static void on_terminal(char text[4096])
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
        skip();
    int line = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    struct redirect redirect = redirect_to(terminal, line);
    log_write(LOG_WARN, "w", NULL);
    log_write(LOG_INFO, "i", NULL);
    ssize_t length = 0;
    while (length < 4095 && !memmem(text, (size_t)length, "msg=\"i\"", 7)) {
        ssize_t got = read(terminal, text + length, (size_t)(4095 - length));
        if (got <= 0)
            break;
        length += got;
    }
    restore(&redirect);
    text[length] = '\0';
}

static void test_colour(void **state)
{
    (void)state;
    char text[4096];
    unsetenv("NO_COLOR");
    on_terminal(text);
    assert_memory_equal(text, "\033[33mlevel=warn msg=\"w\"\033[0m\r\nlevel=info", 39);
    setenv("NO_COLOR", "1", 1);
    on_terminal(text);
    assert_null(strchr(text, '\033'));
    setenv("NO_COLOR", "", 1); /* empty does not count */
    on_terminal(text);
    assert_non_null(strchr(text, '\033'));
    unsetenv("NO_COLOR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_json),
        cmocka_unit_test(test_levels), cmocka_unit_test(test_keeps_errno),
        cmocka_unit_test(test_colour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
