/* SPDX-License-Identifier: Apache-2.0
 *
 * HAProxy's configuration and process.
 */
#include "runtime/router.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/state_folder.h"

#define START_TIMEOUT_NS INT64_C(10000000000)
#define STOP_GRACE_NS    INT64_C(2000000000)
enum { POLL_NS = 20000000 };

/* %1$s folder, %2$s address, %3$d port. The request log goes to a ring in memory, which is read
 * when the runtime looks (traffic.h): a datagram for each request would wake it each time, and
 * the kernel keeps ten. Bodies up to the buffer's size are kept until a
 * server has answered, so that they can be sent to another one when it crashes. */
static const char HEAD[] =
    "# Written by tranche; changed at run time through haproxy.sock.\n"
    "global\n"
    "    stats socket %1$s/haproxy.sock mode 600 level admin\n"
    "    stats timeout 1d\n"
    "    log ring@requests len 512 format raw local0 info\n"
    "    maxconn 8192\n"
    "    nbthread 1\n"
    "    tune.bufsize 65536\n"
    "    hard-stop-after 2s\n"
    "ring requests\n"
    "    format raw\n"
    "    maxlen 512\n"
    "    size 4194304\n"
    "defaults\n"
    "    mode http\n"
    "    log global\n"
    "    log-format \"request %%b %%s %%ST %%Ta\"\n"
    "    option redispatch 1\n"
    "    retries 3\n"
    "    retry-on conn-failure empty-response\n"
    "    option http-keep-alive\n"
    "    http-reuse always\n"
    "    option dontlognull\n"
    "    timeout http-request 30s\n"
    "    timeout http-keep-alive 60s\n"
    "    timeout connect 2s\n"
    "    timeout check 2s\n"
    "    timeout client 120s\n"
    "    timeout server 120s\n"
    "frontend services\n"
    "    bind %2$s:%3$d\n"
    "    http-request return status 200 if { path /v2/health/live } || "
    "{ path /v2/health/ready }\n"
    "    http-request return status 200 content-type application/json string "
    "'{\"name\":\"tranche\",\"version\":\"1\",\"extensions\":[\"binary_tensor_data\"]}' "
    "if { path /v2 } || { path /v2/ }\n"
    "    use_backend %%[path,field(4,/),url_dec,map_str(%1$s/services.map,none)]\n"
    "backend none\n"
    "    http-request return status 404 content-type application/json string "
    "'{\"error\":\"no service of this name\"}'\n";

static const char BACKEND[] = "backend pool%d\n"
                              "    balance leastconn\n"
                              "    option httpchk GET /v2/health/ready\n";

int router_write_config(const struct router *router, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "haproxy.cfg");
    str_addf(&text, HEAD, router->folder, router->address, router->port);
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        str_addf(&text, BACKEND, i);
    return file_write(path, text.bytes, text.length, err);
}

int router_write_map(const struct router *router, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "services.map");
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        if (router->services[i][0])
            str_addf(&text, "%s pool%d\n", router->services[i], i);
    return file_write(path, text.bytes, text.length, err);
}

static void read_map(struct router *router)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "services.map");
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    char service[ROUTER_NAME_SIZE], pool[16];
    memset(router->services, 0, sizeof router->services);
    while (file && fscanf(file, "%127s %15s", service, pool) == 2) {
        int backend = router_pool_number(pool, NULL);
        if (backend >= 0)
            snprintf(router->services[backend], ROUTER_NAME_SIZE, "%s", service);
    }
}

/* In the child: out of our session, so that it outlives us. */
static void run_haproxy(const char *config, int log_fd)
{
    sigset_t none;
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null_fd = open("/dev/null", O_RDWR);
    dup2(null_fd, STDIN_FILENO);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    char path[] = "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";
    putenv(path);
    execlp("haproxy", "haproxy", "-db", "-f", config, (char *)NULL);
    dprintf(STDERR_FILENO, "haproxy: %s\n", strerror(errno));
    _exit(127);
}

/* The last line that is no notice: why it would not start. */
static int start_failure(const struct router *router, struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "log/haproxy.log");
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    char line[512], alert[512] = "see log/haproxy.log";
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "ALERT") || text_starts_with(line, "haproxy:")) {
            snprintf(alert, sizeof alert, "%.*s", (int)strcspn(line, "\n"), line);
            if (strstr(line, "cannot bind"))
                break;
        }
    bool missing = strstr(alert, "No such file") && text_starts_with(alert, "haproxy:");
    return error_set(err, missing ? E_MISSING : E_IO,
                     missing ? "HAProxy is needed for routing (Debian: haproxy): %s"
                             : "HAProxy did not start: %s",
                     alert);
}

static int launch(struct router *router, struct error *err)
{
    CLEANUP(free_ptr) char *config = state_folder_file(router->folder, "haproxy.cfg");
    CLEANUP(free_ptr) char *log = state_folder_file(router->folder, "log/haproxy.log");
    CLEANUP(close_fd) int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", log);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, E_IO, "cannot start a process");
    if (pid == 0)
        run_haproxy(config, fd);
    router->process = (struct process_id){.pid = pid};
    process_id_of(pid, &router->process);
    return 0;
}

static int wait_until_it_answers(struct router *router, struct error *err)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + START_TIMEOUT_NS;
    struct timespec pause = {.tv_nsec = POLL_NS};
    struct error ignored;
    for (;;) {
        CLEANUP(str_done) struct str answer = STR_EMPTY;
        char pid[32];
        snprintf(pid, sizeof pid, "\nPid: %d\n", (int)router->process.pid);
        if (router_ask(router, "show info", &answer, &ignored) == 0 &&
            strstr(answer.bytes, pid))
            return 0;
        if (!process_id_alive(&router->process) || clock_now_ns(clock_real()) > deadline_ns)
            return start_failure(router, err);
        nanosleep(&pause, NULL);
    }
}

static int remember(const struct router *router, struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "haproxy.json");
    CLEANUP(json_decref_ptr) json_t *json = process_id_to_json(&router->process);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_write_line(json, &text);
    return file_write(path, text.bytes, text.length, err);
}

static bool adopt(struct router *router)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "haproxy.json");
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    struct error ignored;
    if (access(path, F_OK) != 0 || json_read(path, &json, &ignored) != 0)
        return false;
    router->process = process_id_from_json(json);
    if (!process_id_alive(&router->process))
        return false;
    read_map(router);
    if (wait_until_it_answers(router, &ignored) == 0)
        return true;
    router_stop(router); /* it lives and does not answer, however long one waits */
    return false;
}

int router_start(struct router *router, bool *ret_adopted, struct error *err)
{
    bool adopted = adopt(router);
    if (ret_adopted)
        *ret_adopted = adopted;
    if (adopted)
        return 0;
    /* The services known are kept: a HAProxy that died comes back with the same map. */
    int failed = router_write_config(router, err);
    if (!failed)
        failed = router_write_map(router, err);
    if (!failed)
        failed = launch(router, err);
    if (!failed)
        failed = remember(router, err);
    if (!failed)
        failed = wait_until_it_answers(router, err);
    if (failed)
        router_stop(router);
    return failed;
}

bool router_alive(const struct router *router)
{
    return process_id_alive(&router->process);
}

void router_stop(struct router *router)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "haproxy.json");
    process_id_signal(&router->process, SIGUSR1); /* closes listeners, ends when idle */
    if (!process_id_wait(&router->process, STOP_GRACE_NS)) {
        process_id_signal(&router->process, SIGKILL);
        process_id_wait(&router->process, STOP_GRACE_NS);
    }
    router->process = (struct process_id){0};
    unlink(path);
}
