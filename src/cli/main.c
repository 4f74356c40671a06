/* SPDX-License-Identifier: Apache-2.0
 *
 * The process: descriptors, signals, locale. What the program does is in commands.c.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands.h"

/* A standard descriptor that was closed would be given to the next file opened, and
 * messages would go there. Opened the wrong way round, it fails as a closed one does. */
static void occupy_standard_descriptors(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
            abort();
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* A write to a closed pipe or socket (EPIPE), or past a file size limit (EFBIG), is an
 * error where it happens, not the end of the process. A handler, unlike SIG_IGN, is not
 * passed on to the programs started. */
static void let_writes_fail(void)
{
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

/* Characters as the terminal has them, for the width of tables; numbers are always read
 * and written the C way. */
static void set_characters(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
}

int main(int argc, char **argv)
{
    occupy_standard_descriptors();
    let_writes_fail();
    set_characters();
    return command_main(&command_root, argc, argv);
}
