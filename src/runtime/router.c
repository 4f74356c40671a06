/* SPDX-License-Identifier: Apache-2.0
 *
 * HAProxy's runtime API. See router.h and HAProxy's management guide, chapter 9.
 */
#include "runtime/router.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "runtime/state_folder.h"

enum { ANSWER_LIMIT = 16 << 20, TIMEOUT_S = 5, STAT_COLUMNS_MAX = 128 };

void router_init(struct router *router, const char *folder, const char *address, int port)
{
    *router = (struct router){.folder = xstrdup(folder), .address = address, .port = port};
}

void router_done(struct router *router)
{
    free(router->folder);
    router->folder = NULL;
}

void router_statistics_done(struct router_statistics *statistics)
{
    vec_done(&statistics->servers);
    vec_done(&statistics->backends);
}

/* ---- asking ----------------------------------------------------------------------- */

static int connect_to(const char *path, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int router_ask(const struct router *router, const char *command, struct str *ret_answer,
               struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(router->folder, "haproxy.sock");
    CLEANUP(free_ptr) char *line = xasprintf("%s\n", command);
    CLEANUP(close_fd) int fd = -1;
    char bytes[8192];
    ssize_t got;
    if (connect_to(path, &fd) != 0)
        return error_set_errno(err, E_IO, "HAProxy does not answer (%s)", path);
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        return error_set_errno(err, E_IO, "HAProxy: cannot send '%s'", command);
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0 && ret_answer->length < ANSWER_LIMIT)
        str_add_bytes(ret_answer, bytes, (size_t)got);
    if (got < 0)
        return error_set_errno(err, errno == EAGAIN ? E_TIMEOUT : E_IO,
                               "HAProxy: no answer to '%s'", command);
    return 0;
}

/* One or more commands with ';' between, of which each must answer nothing, or `success`. */
static int tell(const struct router *router, const char *command, const char *success,
                struct error *err)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    int failed = router_ask(router, command, &answer, err);
    if (failed)
        return failed;
    const char *words = answer.bytes + strspn(answer.bytes, "\n ");
    if (!*words || (success && strstr(words, success)))
        return 0;
    return error_set(err, E_IO, "HAProxy: '%s': %.*s", command, (int)strcspn(words, "\n"),
                     words);
}

int router_pool_number(const char *name, const char **ret_end)
{
    static const char PREFIX[] = "pool";
    char *end = NULL;
    if (!text_starts_with(name, PREFIX))
        return -1;
    long number = strtol(name + strlen(PREFIX), &end, 10);
    if (end == name + strlen(PREFIX) || number < 0 || number >= ROUTER_BACKENDS)
        return -1;
    if (ret_end)
        *ret_end = end;
    return (int)number;
}

/* ---- services --------------------------------------------------------------------- */

int router_find(const struct router *router, const char *service)
{
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        if (strcmp(router->services[i], service) == 0)
            return i;
    return -1;
}

/* The map as HAProxy has it in memory: a key that is there twice would be harmless. */
static int map_command(const struct router *router, const char *verb, const char *service,
                       const char *value, struct error *err)
{
    CLEANUP(free_ptr)
    char *command =
        xasprintf("%s map %s/services.map %s %s", verb, router->folder, service, value);
    return tell(router, command, NULL, err);
}

int router_service(struct router *router, const char *service, int *ret_backend,
                   struct error *err)
{
    char pool[16];
    int backend = router_find(router, service);
    if (backend < 0) {
        backend = router_find(router, "");
        if (backend < 0)
            return error_set(err, E_BUSY, "more than %d services", ROUTER_BACKENDS);
        snprintf(pool, sizeof pool, "pool%d", backend);
        int failed = map_command(router, "add", service, pool, err);
        if (failed)
            return failed;
        snprintf(router->services[backend], ROUTER_NAME_SIZE, "%s", service);
        failed = router_write_map(router, err); /* for who adopts */
        if (failed)
            return failed;
    }
    *ret_backend = backend;
    return 0;
}

int router_forget(struct router *router, const char *service, struct error *err)
{
    int backend = router_find(router, service);
    if (backend < 0)
        return 0;
    int failed = map_command(router, "del", service, "", err);
    if (failed)
        return failed;
    router->services[backend][0] = '\0';
    return router_write_map(router, err);
}

/* ---- servers ---------------------------------------------------------------------- */

int router_remove(struct router *router, int backend, const char *name, struct error *err)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    CLEANUP(free_ptr)
    char *command = xasprintf(
        "set server pool%1$d/%2$s state maint; shutdown sessions server pool%1$d/%2$s; "
        "del server pool%1$d/%2$s",
        backend, name);
    int failed = router_ask(router, command, &answer, err);
    if (failed)
        return failed;
    if (strstr(answer.bytes, "Server deleted") || strstr(answer.bytes, "No such server"))
        return 0;
    const char *words = answer.bytes + strspn(answer.bytes, "\n ");
    return error_set(err, E_BUSY, "HAProxy: cannot delete server %s: %.*s", name,
                     (int)strcspn(words, "\n"), words);
}

int router_add(struct router *router, const struct router_target *target, struct error *err)
{
    int failed = router_remove(router, target->backend, target->name, err);
    if (failed)
        return failed;
    assert(target->weight >= 1 && target->weight <= ROUTER_WEIGHT_MAX);
    CLEANUP(free_ptr)
    char *command = xasprintf("add server pool%d/%s 127.0.0.1:%d weight %d check inter 500ms "
                              "fastinter 200ms fall 3 rise 1 pool-purge-delay 30s",
                              target->backend, target->name, target->port, target->weight);
    failed = tell(router, command, "New server registered", err);
    if (failed)
        return failed;
    CLEANUP(free_ptr)
    char *enable = xasprintf("enable health pool%1$d/%2$s; enable server pool%1$d/%2$s",
                             target->backend, target->name);
    return tell(router, enable, NULL, err);
}

int router_weigh(struct router *router, int backend, const char *name, int weight,
                 struct error *err)
{
    CLEANUP(free_ptr)
    char *command = xasprintf("set server pool%d/%s weight %d", backend, name, weight);
    return tell(router, command, NULL, err);
}

int router_drain(struct router *router, int backend, const char *name, struct error *err)
{
    CLEANUP(free_ptr)
    char *command = xasprintf("set server pool%d/%s state drain", backend, name);
    return tell(router, command, NULL, err);
}

/* ---- statistics ------------------------------------------------------------------- */

/* The columns we read; found by name in the header, as versions add some. */
enum column {
    COLUMN_PROXY,
    COLUMN_SERVER,
    COLUMN_STATUS,
    COLUMN_SESSIONS,
    COLUMN_WEIGHT,
    COLUMN_OTHER_2XX,
    COLUMN_1XX,
    COLUMN_3XX,
    COLUMN_4XX,
    COLUMN_5XX,
    COLUMN_COUNT
};
static const char *const COLUMN_NAMES[COLUMN_COUNT] = {
    "# pxname", "svname",   "status",   "scur",     "weight",
    "hrsp_2xx", "hrsp_1xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx"};

/* Cuts a line at its commas in place. */
static int split(char *line, char *fields[STAT_COLUMNS_MAX])
{
    int count = 0;
    for (char *field; count < STAT_COLUMNS_MAX && (field = strsep(&line, ","));)
        fields[count++] = field;
    return count;
}

static void find_columns(char *header, int columns[COLUMN_COUNT])
{
    char *fields[STAT_COLUMNS_MAX];
    int count = split(header, fields);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        columns[c] = -1;
        for (int i = 0; i < count; i++)
            if (strcmp(fields[i], COLUMN_NAMES[c]) == 0)
                columns[c] = i;
    }
}

static enum router_server_state server_state(const char *status)
{
    if (strncmp(status, "MAINT", 5) == 0)
        return SERVER_MAINTENANCE;
    if (strncmp(status, "DRAIN", 5) == 0)
        return SERVER_DRAIN;
    return strncmp(status, "UP", 2) == 0 || strcmp(status, "no check") == 0 ? SERVER_UP
                                                                            : SERVER_DOWN;
}

static void read_row(char *row, const int columns[COLUMN_COUNT],
                     struct router_statistics *statistics)
{
    char *fields[STAT_COLUMNS_MAX];
    const char *value[COLUMN_COUNT];
    int count = split(row, fields);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        if (columns[c] < 0 || columns[c] >= count)
            return;
        value[c] = fields[columns[c]];
    }
    int backend = router_pool_number(value[COLUMN_PROXY], NULL);
    if (backend < 0)
        return;
    if (strcmp(value[COLUMN_SERVER], "BACKEND") == 0) {
        struct router_backend *entry = vec_push(&statistics->backends);
        entry->backend = backend;
        entry->failed = strtoull(value[COLUMN_5XX], NULL, 10);
        entry->requests = entry->failed;
        for (int c = COLUMN_OTHER_2XX; c <= COLUMN_4XX; c++)
            entry->requests += strtoull(value[c], NULL, 10);
        return;
    }
    struct router_server *entry = vec_push(&statistics->servers);
    *entry = (struct router_server){.backend = backend,
                                    .state = server_state(value[COLUMN_STATUS]),
                                    .sessions = (int)strtol(value[COLUMN_SESSIONS], NULL, 10),
                                    .weight = (int)strtol(value[COLUMN_WEIGHT], NULL, 10)};
    snprintf(entry->name, sizeof entry->name, "%s", value[COLUMN_SERVER]);
}

int router_read(struct router *router, struct router_statistics *ret_statistics,
                struct error *err)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    int columns[COLUMN_COUNT];
    int failed = router_ask(router, "show stat -1 6 -1", &answer, err);
    if (failed)
        return failed;
    char *rest = answer.bytes;
    char *line = strsep(&rest, "\n");
    if (!text_starts_with(line, "# pxname"))
        return error_set(err, E_IO, "HAProxy: unexpected statistics: %.80s", line);
    find_columns(line, columns);
    while ((line = strsep(&rest, "\n")))
        read_row(line, columns, ret_statistics);
    return 0;
}
