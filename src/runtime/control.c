/* SPDX-License-Identifier: Apache-2.0
 *
 * See control.h.
 */
#include "runtime/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "runtime/state_folder.h"
#include "runtime/status.h"

enum { LINE_LIMIT = 64 << 20, CLIENT_TIMEOUT_S = 5, ANSWER_TIMEOUT_S = 120, BACKLOG = 16 };

static void set_address(const char *folder, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "%s/control.sock", folder);
}

static void set_timeout(int fd, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

static bool send_line(int fd, const json_t *json)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_write_line(json, &text);
    str_add_char(&text, '\n');
    for (size_t sent = 0; sent < text.length;) {
        ssize_t now = send(fd, text.bytes + sent, text.length - sent, MSG_NOSIGNAL);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return false;
        sent += (size_t)now;
    }
    return true;
}

static bool receive_line(int fd, struct str *line)
{
    char bytes[65536];
    ssize_t got;
    while (!memchr(line->bytes, '\n', line->length) && line->length < LINE_LIMIT) {
        got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        str_add_bytes(line, bytes, (size_t)got);
    }
    return line->length < LINE_LIMIT;
}

int control_listen(const char *folder, int *ret_fd, struct error *err)
{
    struct sockaddr_un address;
    set_address(folder, &address);
    unlink(address.sun_path); /* we hold the lock: its owner is gone */
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (bound != 0 || listen(fd, BACKLOG) != 0)
        return error_set_errno(err, E_IO, "%s: cannot listen", address.sun_path);
    *ret_fd = steal_fd(&fd);
    return 0;
}

static json_t *refusal(const struct error *err)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "code", error_code_name(err->code), "text",
                     err->text);
}

static json_t *answer_apply(struct runtime *runtime, const json_t *question)
{
    struct error err = {0};
    int spare = (int)json_integer_value(json_object_get(question, "spare"));
    int failed = runtime_apply(runtime, json_object_get(question, "plan"),
                               json_object_get(question, "models"), spare, &err);
    if (failed)
        return refusal(&err);
    return json_pack("{s:b, s:i, s:I}", "ok", 1, "change", runtime->change_number, "actions",
                     (json_int_t)runtime->change->transition.actions.count);
}

static json_t *answer(struct runtime *runtime, const json_t *question)
{
    const char *what = json_string_value(json_object_get(question, "do"));
    struct error err = {0};
    if (what && strcmp(what, "status") == 0) {
        runtime_refresh(runtime);
        return status_to_json(runtime);
    }
    if (what && strcmp(what, "apply") == 0)
        return answer_apply(runtime, question);
    if (what && strcmp(what, "down") == 0) {
        runtime_down(runtime);
        return json_pack("{s:b}", "ok", 1);
    }
    error_set(&err, E_USAGE, "unknown command '%.40s'", what ? what : "");
    return refusal(&err);
}

void control_serve(int fd, struct runtime *runtime)
{
    CLEANUP(close_fd) int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    CLEANUP(str_done) struct str line = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *question = NULL, *reply = NULL;
    struct error err = {0};
    if (client < 0)
        return;
    set_timeout(client, CLIENT_TIMEOUT_S);
    if (!receive_line(client, &line))
        return;
    if (json_parse("command", line.bytes, line.length, &question, &err) != 0)
        reply = refusal(&err);
    else
        reply = answer(runtime, question);
    send_line(client, reply);
}

static int refusal_to_error(const json_t *reply, struct error *err)
{
    const char *name = json_string_value(json_object_get(reply, "code"));
    const char *text = json_string_value(json_object_get(reply, "text"));
    for (int code = 1; name && code < E_CODE_COUNT; code++)
        if (strcmp(error_code_name((enum error_code)code), name) == 0)
            return error_set(err, (enum error_code)code, "%s", text ? text : name);
    return error_set(err, E_IO, "the runtime refused");
}

int control_ask(const char *folder, const json_t *question, json_t **ret_answer,
                struct error *err)
{
    struct sockaddr_un address;
    CLEANUP(str_done) struct str line = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *reply = NULL;
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_address(folder, &address);
    set_timeout(fd, ANSWER_TIMEOUT_S);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return error_set(err, E_NOT_FOUND,
                         "no runtime answers in %s (`tranche up` starts one; after a crash, "
                         "without a plan, it carries on)",
                         folder);
    if (!send_line(fd, question) || !receive_line(fd, &line))
        return error_set(err, E_IO, "the runtime in %s does not answer", folder);
    int failed = json_parse("runtime", line.bytes, line.length, &reply, err);
    if (failed)
        return failed;
    if (json_is_false(json_object_get(reply, "ok")))
        return refusal_to_error(reply, err);
    *ret_answer = STEAL(reply);
    return 0;
}
