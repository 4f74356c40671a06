/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: whole or not at all on a full disk, at a size limit, without permission; links,
 * FIFOs and devices; locks between processes. Each test has a folder of its own.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/memory.h"

enum { NOBODY = 65534 };

static char start_folder[4096];

static int enter_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    char *folder = xasprintf("%s/tranche-file-XXXXXX", base ? base : "/tmp");
    if (!getcwd(start_folder, sizeof start_folder) || !mkdtemp(folder) || chdir(folder) < 0)
        return -1;
    chmod(folder, 0777); /* for the tests that give up root */
    umask(022);
    *state = folder;
    return 0;
}

static int leave_folder(void **state)
{
    CLEANUP(free_ptr) char *folder = *state;
    if (chdir(start_folder) < 0)
        return -1;
    CLEANUP(free_ptr) char *command = xasprintf("rm -rf '%s'", folder);
    return system(command);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_content(const char *path, const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err = {0};
    if (file_read(path, FILE_SIZE_LIMIT, &text, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(text.bytes, expected);
}

static unsigned mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static int entry_count(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void write_ok(const char *path, const char *text)
{
    struct error err = {0};
    if (file_write(path, text, strlen(text), &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_write_fails(const char *path, const void *bytes, size_t length,
                               const char *reason)
{
    struct error err = {0};
    assert_int_equal(file_write(path, bytes, length, &err), -E_IO);
    if (!strstr(err.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.text, reason);
    assert_non_null(strstr(err.text, path));
}

static void assert_read_fails(const char *path, int code, const char *reason)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err = {0};
    str_add(&text, "before");
    assert_int_equal(file_read(path, 10, &text, &err), -code);
    if (!strstr(err.text, reason) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.text, path, reason);
    assert_string_equal(text.bytes, "before");
}

static void test_read(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put("a", "0123456789");
    put("empty", "");
    str_add(&text, "<");
    assert_int_equal(file_read("a", 10, &text, NULL), 0);
    assert_int_equal(file_read("empty", 0, &text, NULL), 0);
    assert_string_equal(text.bytes, "<0123456789");
    put("long", "0123456789a");
    assert_read_fails("long", E_INPUT, "larger than 10 bytes");
    assert_read_fails("none", E_IO, "No such file");
    assert_read_fails(".", E_IO, "is a directory");
    assert_read_fails("a/b", E_IO, "Not a directory");
    assert_read_fails("/dev/zero", E_INPUT, "larger");
}

/* As nobody where we are root; permissions mean nothing to root. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        assert_int_equal(seteuid(NOBODY), 0);
}

static void become_self(void)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

static void test_no_permission(void **state)
{
    (void)state;
    put("secret", "x");
    chmod("secret", 0);
    assert_int_equal(mkdir("closed", 0755), 0);
    put("closed/old", "old");
    chmod("closed", 0555);
    put("protected", "old");
    chmod("protected", 0444);
    become_nobody();
    assert_read_fails("secret", E_IO, "Permission denied");
    assert_write_fails("secret", "x", 1, "Permission denied");
    assert_write_fails("closed/new", "x", 1, "Permission denied");
    assert_write_fails("protected", "x", 1, "Permission denied");
    struct error err = {0};
    int fd = -1;
    assert_int_equal(file_lock("secret", &fd, &err), -E_IO);
    assert_int_equal(file_make_dirs("closed/a/b", 0755, &err), -E_IO);
    become_self();
    assert_int_equal(fd, -1);
    chmod("closed", 0755);
    assert_content("protected", "old");
    assert_int_equal(entry_count("closed"), 1);
    assert_int_equal(entry_count("."), 3);
}

/* Runs work in a child; its exit status. */
static int in_child(int (*work)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(work());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int write_fifo_slowly(void)
{
    int fd = open("fifo", O_WRONLY);
    for (int i = 0; i < 3; i++) {
        usleep(2000);
        if (write(fd, "abc", 3) != 3)
            return 1;
    }
    return 0;
}

static void test_read_fifo(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(write_fifo_slowly());
    assert_content("fifo", "abcabcabc");
    waitpid(child, NULL, 0);
}

static int read_standard_input(void)
{
    put("input", "from stdin");
    int fd = open("input", O_RDONLY);
    dup2(fd, STDIN_FILENO);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int result = file_read("-", 100, &text, NULL);
    return result < 0 || strcmp(text.bytes, "from stdin") != 0;
}

static void test_read_standard_input(void **state)
{
    (void)state;
    assert_int_equal(in_child(read_standard_input), 0);
}

static void test_write_new_and_replace(void **state)
{
    (void)state;
    write_ok("plan.json", "one");
    assert_content("plan.json", "one");
    assert_int_equal(mode_of("plan.json"), 0644);
    chmod("plan.json", 0600);
    write_ok("plan.json", "two");
    assert_content("plan.json", "two");
    assert_int_equal(mode_of("plan.json"), 0600);
    umask(077);
    write_ok("private", "x");
    umask(022);
    assert_int_equal(mode_of("private"), 0600);
    write_ok("empty", "");
    assert_content("empty", "");
    assert_int_equal(entry_count("."), 3);
}

static void test_write_longest_name(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    write_ok(name, "x");
    assert_content(name, "x");
    assert_write_fails("none/plan.json", "x", 1, "No such file");
    assert_write_fails("", "x", 1, "No such file");
}

static void test_write_through_links(void **state)
{
    (void)state;
    assert_int_equal(mkdir("data", 0755), 0);
    put("data/real", "old");
    assert_int_equal(symlink("data/real", "link"), 0);
    assert_int_equal(symlink("link", "link2"), 0);
    write_ok("link2", "new");
    assert_content("data/real", "new");
    assert_int_equal(symlink("made", "data/dangling"), 0);
    write_ok("data/dangling", "made");
    assert_content("data/made", "made");
    struct stat status;
    assert_true(lstat("link2", &status) == 0 && S_ISLNK(status.st_mode));
    assert_true(lstat("data/dangling", &status) == 0 && S_ISLNK(status.st_mode));
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_write_fails("a", "x", 1, "symbolic links");
    assert_read_fails("a", E_IO, "symbolic links");
}

static void test_write_odd_targets(void **state)
{
    (void)state;
    assert_int_equal(mkdir("folder", 0755), 0);
    assert_write_fails("folder", "x", 1, "is a directory");
    assert_write_fails("/dev/full", "x", 1, "No space left");
    write_ok("/dev/null", "x");
    struct stat status;
    assert_true(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
    assert_int_equal(entry_count("."), 1);
}

static int write_the_fifo(void)
{
    return file_write("fifo", "through", 7, NULL) < 0;
}

static void test_write_fifo(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(write_the_fifo());
    assert_content("fifo", "through");
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    struct stat after;
    assert_true(stat("fifo", &after) == 0 && S_ISFIFO(after.st_mode));
}

static int write_standard_output(void)
{
    int fd = open("output", O_WRONLY | O_CREAT, 0644);
    dup2(fd, STDOUT_FILENO);
    printf("printed ");
    return file_write(NULL, "null ", 5, NULL) || file_write("-", "dash ", 5, NULL) ||
           file_write("/dev/stdout", "device", 6, NULL);
}

static int write_full_output(void)
{
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    struct error err = {0};
    return !(file_write("-", "x", 1, &err) == -E_IO && strstr(err.text, "No space left"));
}

static int print_full_output(void)
{
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    printf("not written yet");
    return !(file_write("-", "", 0, NULL) == -E_IO);
}

static void test_write_standard_output(void **state)
{
    (void)state;
    fflush(stdout); /* or every child prints our lines again */
    assert_int_equal(in_child(write_standard_output), 0);
    assert_content("output", "printed null dash device");
    assert_int_equal(in_child(write_full_output), 0);
    assert_int_equal(in_child(print_full_output), 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("tmpfs", "disk", "tmpfs", 0, "size=128k") < 0) {
        print_message("# cannot mount a small file system here: %s\n", strerror(errno));
        skip();
    }
    CLEANUP(free_ptr) char *large = xcalloc(1, 1 << 20);
    write_ok("disk/plan.json", "old");
    struct error err = {0};
    int replaced = file_write("disk/plan.json", large, 1 << 20, &err);
    int made = file_write("disk/new.json", large, 1 << 20, NULL);
    int entries = entry_count("disk");
    CLEANUP(str_done) struct str kept = STR_EMPTY;
    int read = file_read("disk/plan.json", 100, &kept, NULL);
    assert_int_equal(umount("disk"), 0);
    assert_int_equal(replaced, -E_IO);
    assert_string_equal(err.text, "disk/plan.json: cannot write: No space left on device");
    assert_int_equal(made, -E_IO);
    assert_int_equal(entries, 1);
    assert_int_equal(read, 0);
    assert_string_equal(kept.bytes, "old");
}

/* At a size limit (ulimit -f) the kernel sends SIGXFSZ, which would end the process with
 * its temporary file left behind. */
static int write_beyond_limit(void)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    CLEANUP(free_ptr) char *large = xcalloc(1, 1 << 20);
    struct error err = {0};
    if (file_write("plan.json", large, 1 << 20, &err) != -E_IO || !strstr(err.text, "large"))
        return 1;
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) ? 2 : 0;
}

static void test_size_limit(void **state)
{
    (void)state;
    put("plan.json", "old");
    assert_int_equal(in_child(write_beyond_limit), 0);
    assert_content("plan.json", "old");
    assert_int_equal(entry_count("."), 1);
}

static int write_forever(void)
{
    CLEANUP(free_ptr) char *large = xcalloc(1, 1 << 20);
    while (file_write("plan.json", large, 1 << 20, NULL) == 0)
        continue;
    return 1;
}

/* Whenever Ctrl-C comes, no temporary file stays and the file is whole. */
static void test_interrupted(void **state)
{
    (void)state;
    put("plan.json", "old");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(write_forever());
        usleep((useconds_t)(500 + 700 * i));
        kill(child, i % 2 ? SIGINT : SIGTERM);
        waitpid(child, NULL, 0);
        assert_int_equal(entry_count("."), 1);
        struct stat status;
        assert_int_equal(stat("plan.json", &status), 0);
        assert_true(status.st_size == 3 || status.st_size == 1 << 20);
    }
}

static int write_two_contents(void)
{
    CLEANUP(free_ptr) char *bytes = xcalloc(1, 300000);
    for (int i = 0; i < 100; i++) {
        memset(bytes, 'a' + i % 2, 300000);
        if (file_write("plan.json", bytes, i % 2 ? 300000 : 100, NULL) < 0)
            return 1;
    }
    return 0;
}

/* Readers meet one whole content or the other. */
static void test_readers_see_whole(void **state)
{
    (void)state;
    put("plan.json", "a");
    pid_t child = fork();
    if (child == 0)
        _exit(write_two_contents());
    int status = -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        assert_int_equal(file_read("plan.json", FILE_SIZE_LIMIT, &text, NULL), 0);
        assert_true(text.length == 1 || text.length == 100 || text.length == 300000);
        assert_int_equal(text.bytes[0], text.length == 300000 ? 'b' : 'a');
        assert_int_equal(text.bytes[text.length - 1], text.bytes[0]);
    }
    assert_int_equal(status, 0);
}

/* The name of a temporary file may be taken: left by a killed process with our id. */
static void test_temporary_name_taken(void **state)
{
    (void)state;
    CLEANUP(free_ptr) char *taken = xasprintf(".tranche-%ld-0.tmp", (long)getpid());
    put(taken, "somebody's");
    write_ok("plan.json", "x");
    assert_content("plan.json", "x");
    assert_content(taken, "somebody's");
}

static void test_make_dirs(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(file_make_dirs("a/b//c/", 0750, &err), 0);
    assert_int_equal(mode_of("a/b/c"), 0750);
    assert_int_equal(file_make_dirs("a/b/c", 0700, &err), 0);
    assert_int_equal(mode_of("a/b/c"), 0750);
    assert_int_equal(file_make_dirs("/", 0700, &err), 0);
    assert_int_equal(file_make_dirs(".", 0700, &err), 0);
    put("a/file", "x");
    assert_int_equal(file_make_dirs("a/file", 0755, &err), -E_IO);
    assert_string_equal(err.text, "a/file: is a file, expected a folder");
    assert_int_equal(file_make_dirs("a/file/d", 0755, &err), -E_IO);
    assert_int_equal(file_make_dirs("", 0755, &err), -E_IO);
}

static void test_sha256(void **state)
{
    (void)state;
    char text[72]; /* FIPS 180-2 */
    file_sha256("abc", 3, text);
    assert_string_equal(text, "sha256:ba7816bf8f01cfea414140de5dae2223"
                              "b00361a396177a9cb410ff61f20015ad");
    file_sha256("", 0, text);
    assert_string_equal(text, "sha256:e3b0c44298fc1c149afbf4c8996fb924"
                              "27ae41e4649b934ca495991b7852b855");
}

static int lock_is_busy(void)
{
    struct error err = {0};
    int fd = -1;
    CLEANUP(free_ptr) char *owner = xasprintf("process %ld;", (long)getppid());
    bool busy = file_lock("lock", &fd, &err) == -E_BUSY && fd == -1;
    return !(busy && strstr(err.text, owner) && strstr(err.text, "lock: in use"));
}

static int lock_is_free(void)
{
    int fd;
    return file_lock("lock", &fd, NULL) < 0;
}

static void test_lock(void **state)
{
    (void)state;
    int fd = -1, second = -1;
    assert_int_equal(file_lock("lock", &fd, NULL), 0);
    assert_int_equal(mode_of("lock"), 0600);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(in_child(lock_is_busy), 0);
    assert_int_equal(file_lock("lock", &second, NULL), -E_BUSY);
    close(fd);
    assert_int_equal(in_child(lock_is_free), 0); /* and its end released it again */
    assert_int_equal(file_lock("lock", &fd, NULL), 0);
    close(fd);
}

/* Takes the lock and dies, as by SIGKILL; a child of it has the lock a moment longer. */
static int lock_and_leave_a_child(void)
{
    int fd;
    pid_t self = getpid();
    if (file_lock("lock", &fd, NULL) < 0)
        return 1;
    if (fork() != 0)
        return 0;
    while (getppid() == self)
        usleep(1000);
    usleep(100000);
    _exit(0);
}

static void test_lock_of_the_dead(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(in_child(lock_and_leave_a_child), 0);
    assert_int_equal(file_lock("lock", &fd, NULL), 0);
    close(fd);
}

/* A lock on a file with content leaves the content alone. */
static void test_lock_keeps_content(void **state)
{
    (void)state;
    int fd = -1, second = -1;
    put("state.json", "{}\n");
    assert_int_equal(file_lock("state.json", &fd, NULL), 0);
    struct error err = {0};
    assert_int_equal(file_lock("state.json", &second, &err), -E_BUSY);
    assert_non_null(strstr(err.text, "another process"));
    close(fd);
    assert_content("state.json", "{}\n");
    assert_int_equal(file_lock("none/lock", &fd, &err), -E_IO);
    assert_int_equal(file_lock(".", &fd, &err), -E_IO);
}

/* A longer process id left in the file must not leave its tail. */
static void test_lock_owner_shorter(void **state)
{
    (void)state;
    int fd = -1;
    put("lock", "2147483647\n");
    assert_int_equal(file_lock("lock", &fd, NULL), 0);
    CLEANUP(free_ptr) char *expected = xasprintf("%ld\n", (long)getpid());
    assert_content("lock", expected);
    close(fd);
}

static int add_fifty(void)
{
    for (int i = 0; i < 50; i++) {
        CLEANUP(close_fd) int fd = -1;
        while (file_lock("lock", &fd, NULL) < 0)
            usleep(100);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        if (file_read("counter", 100, &text, NULL) < 0)
            return 1;
        CLEANUP(free_ptr) char *next = xasprintf("%d", atoi(text.bytes) + 1);
        if (file_write("counter", next, strlen(next), NULL) < 0)
            return 1;
    }
    return 0;
}

static void test_lock_excludes(void **state)
{
    (void)state;
    put("counter", "0");
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            _exit(add_fifty());
    for (int i = 0; i < 4; i++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    assert_content("counter", "200");
}

/* Stands before the C library's: a process killed while its file is on the way to the disk. */
static bool killed_in_fsync;

int fsync(int fd)
{
    if (killed_in_fsync)
        raise(SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}

static void test_killed_process_leaves_no_temporary(void **state)
{
    (void)state;
    CLEANUP(close_fd) int unnamed = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (unnamed < 0) {
        print_message("no files without a name on this file system\n");
        skip();
    }
    put("kept", "old");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        killed_in_fsync = true;
        file_write("kept", "new", 3, NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_content("kept", "old");
    assert_int_equal(entry_count("."), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_killed_process_leaves_no_temporary),
        TEST(test_read),
        TEST(test_no_permission),
        TEST(test_read_fifo),
        TEST(test_read_standard_input),
        TEST(test_write_new_and_replace),
        TEST(test_write_longest_name),
        TEST(test_write_through_links),
        TEST(test_write_odd_targets),
        TEST(test_write_fifo),
        TEST(test_write_standard_output),
        TEST(test_full_disk),
        TEST(test_size_limit),
        TEST(test_interrupted),
        TEST(test_readers_see_whole),
        TEST(test_temporary_name_taken),
        TEST(test_make_dirs),
        TEST(test_sha256),
        TEST(test_lock),
        TEST(test_lock_of_the_dead),
        TEST(test_lock_keeps_content),
        TEST(test_lock_owner_shorter),
        TEST(test_lock_excludes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
