/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting, asking and stopping MPS control daemons; see mps.h.
 */
#include "gpu/mps.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "gpu/program.h"

enum { CONTROL_TIMEOUT_S = 20, DEVICE_LENGTH_MAX = 80 };

#define CONTROL_PROGRAM "nvidia-cuda-mps-control"

/* The daemon's folders and environment as text. */
struct place {
    struct str pipe, log;                                  /* folders */
    struct str visible_setting, pipe_setting, log_setting; /* NAME=VALUE */
    const char *environment[4];
};

#define PLACE_EMPTY                                                                            \
    ((struct place){STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY, {NULL}})

static void place_done(struct place *place)
{
    str_done(&place->pipe);
    str_done(&place->log);
    str_done(&place->visible_setting);
    str_done(&place->pipe_setting);
    str_done(&place->log_setting);
}

void mps_status_done(struct mps_status *status)
{
    for (size_t i = 0; i < status->servers.count; i++)
        vec_done(&status->servers.data[i].clients);
    vec_done(&status->servers);
}

void mps_folder(struct str *path)
{
    const char *set = getenv("TRANCHE_MPS_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");

    if (set && *set)
        str_add(path, set);
    else if (!geteuid())
        str_add(path, "/run/tranche/mps");
    else if (runtime && *runtime)
        str_addf(path, "%s/tranche/mps", runtime);
    else
        str_addf(path, "/tmp/tranche-%u/mps", (unsigned)geteuid());
}

/* --- what the user gives --- */

static int check_device(const char *device, struct error *err)
{
    static const char letters[] = "0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZ-";
    bool prefix = text_starts_with(device, "GPU-") || text_starts_with(device, "MIG-");

    if (!prefix || strlen(device) > DEVICE_LENGTH_MAX ||
        device[strspn(device, letters)] != '\0')
        return error_set(err, E_INPUT,
                         "\"%.80s\" is no device: expected a UUID, GPU-… or MIG-…", device);
    return 0;
}

static int check_limits(const struct mps_options *options, struct error *err)
{
    const char *memory = options->pinned_memory;

    if (options->active_thread_percent < 0 || options->active_thread_percent > 100)
        return error_set(err, E_INPUT,
                         "active threads: expected a percentage above 0, up to 100");
    if (!memory)
        return 0;
    size_t digits = strspn(memory, "0123456789");
    if (!digits || digits > 9 || !strchr("MG", memory[digits]) || !memory[digits] ||
        memory[digits + 1])
        return error_set(err, E_INPUT,
                         "pinned memory \"%.20s\": expected a size such as 512M or 4G", memory);
    return 0;
}

static int find_place(const struct mps_options *options, struct place *ret, struct error *err)
{
    struct place place = PLACE_EMPTY;
    assert(options->device && options->folder);
    const size_t socket_max = sizeof((struct sockaddr_un *)0)->sun_path;

    int r = check_device(options->device, err);
    if (!r)
        r = check_limits(options, err);
    if (r)
        return r;
    str_addf(&place.pipe, "%s/%s/pipe", options->folder, options->device);
    str_addf(&place.log, "%s/%s/log", options->folder, options->device);
    str_addf(&place.visible_setting, "CUDA_VISIBLE_DEVICES=%s", options->device);
    str_addf(&place.pipe_setting, "CUDA_MPS_PIPE_DIRECTORY=%s", place.pipe.bytes);
    str_addf(&place.log_setting, "CUDA_MPS_LOG_DIRECTORY=%s", place.log.bytes);
    *ret = place;
    /* Checked here: what the daemon says of a socket with too long a name does not name it. */
    if (place.pipe.length + strlen("/control_privileged") >= socket_max) {
        r = error_set(err, E_INPUT,
                      "%s is too long for a socket (%zu bytes); choose a shorter --folder",
                      place.pipe.bytes, socket_max);
        place_done(ret);
        return r;
    }
    return 0;
}

static const char *const *environment_of(struct place *place)
{
    assert(place->pipe.length && place->log.length);
    place->environment[0] = place->visible_setting.bytes;
    place->environment[1] = place->pipe_setting.bytes;
    place->environment[2] = place->log_setting.bytes;
    return place->environment;
}

/* Makes a folder; refuses one that others could have made or could enter: through the pipe
 * folder a stranger would speak for the daemon. */
static int make_private(const char *path, struct error *err)
{
    struct stat status;

    int r = file_make_dirs(path, 0700, err);
    if (r)
        return r;
    if (lstat(path, &status))
        return error_set_errno(err, E_IO, "%s", path);
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 077)
        return error_set(err, E_IO, "%s is not a folder of ours alone (mode 0700); remove it",
                         path);
    return 0;
}

/* --- speaking with the daemon --- */

/* One command; its answer without the final newline. The program ends with a status other
 * than 0 when there is no daemon. */
static int ask(const struct mps_options *options, struct place *place, const char *command,
               struct str *answer, struct error *err)
{
    const char *words[] = {options->control ? options->control : CONTROL_PROGRAM, NULL};
    CLEANUP(str_done) struct str line = STR_EMPTY;
    int status;

    assert(!strchr(command, '\n'));
    str_addf(&line, "%s\n", command);
    struct program program = {.words = words,
                              .environment = environment_of(place),
                              .input = line.bytes,
                              .timeout_s = CONTROL_TIMEOUT_S};
    int r = program_run(&program, answer, &status, err);
    while (answer->length && answer->bytes[answer->length - 1] == '\n')
        answer->bytes[--answer->length] = '\0';
    if (!r && status)
        return error_set(err, E_IO, "%s: \"%s\" failed (status %d): %.300s", words[0], command,
                         status, answer->bytes);
    return r;
}

/* Whether a daemon answers in this place. E_MISSING when the program is not there. */
static int is_running(const struct mps_options *options, struct place *place, bool *ret,
                      struct error *err)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    struct stat status;

    *ret = false;
    if (stat(place->pipe.bytes, &status))
        return 0;
    int r = ask(options, place, "get_server_list", &answer, err);
    *ret = !r;
    return r == -E_IO ? 0 : r;
}

static int set_limits(const struct mps_options *options, struct place *place, struct error *err)
{
    CLEANUP(str_done) struct str command = STR_EMPTY;
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    int r = 0;

    if (options->active_thread_percent > 0) {
        str_add(&command, "set_default_active_thread_percentage ");
        str_add_number(&command, options->active_thread_percent);
        r = ask(options, place, command.bytes, &answer, err);
    }
    str_clear(&command);
    str_clear(&answer);
    /* Device 0 is the only one that the daemon sees. */
    if (!r && options->pinned_memory) {
        str_addf(&command, "set_default_device_pinned_mem_limit 0 %s", options->pinned_memory);
        r = ask(options, place, command.bytes, &answer, err);
    }
    return r;
}

static int start_daemon(const struct mps_options *options, struct place *place,
                        struct error *err)
{
    const char *words[] = {options->control ? options->control : CONTROL_PROGRAM, "-d", NULL};
    CLEANUP(str_done) struct str output = STR_EMPTY;
    int status;
    struct program program = {
        .words = words, .environment = environment_of(place), .timeout_s = CONTROL_TIMEOUT_S};

    int r = program_run(&program, &output, &status, err);
    if (!r && status)
        return error_set(err, E_IO, "%s -d for %s failed (status %d): %.300s", words[0],
                         options->device, status, output.bytes);
    return r;
}

int mps_start(const struct mps_options *options, struct error *err)
{
    CLEANUP(place_done) struct place place = PLACE_EMPTY;
    bool running;

    int r = find_place(options, &place, err);
    if (!r)
        r = is_running(options, &place, &running, err);
    if (!r && running)
        return error_set(err, E_BUSY, "MPS runs already for %s; stop it first to start anew",
                         options->device);
    if (r || (r = make_private(place.pipe.bytes, err)) ||
        (r = make_private(place.log.bytes, err)) || (r = start_daemon(options, &place, err)))
        return r;
    if ((r = set_limits(options, &place, err)))
        mps_stop(options, 1, NULL); /* no daemon without the limits that were asked for */
    return r;
}

int mps_stop(const struct mps_options *options, int timeout_s, struct error *err)
{
    CLEANUP(place_done) struct place place = PLACE_EMPTY;
    CLEANUP(str_done) struct str command = STR_EMPTY;
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    bool running;

    int r = find_place(options, &place, err);
    if (!r)
        r = is_running(options, &place, &running, err);
    if (r)
        return r;
    if (!running)
        return error_set(err, E_NOT_FOUND, "no MPS runs for %s (no daemon answers in %s)",
                         options->device, place.pipe.bytes);
    str_add(&command, "quit");
    if (timeout_s > 0)
        str_addf(&command, " -t %d", timeout_s);
    return ask(options, &place, command.bytes, &answer, err);
}

/* Adds each whole number of a text that has one a line. */
static long next_number(const char **text)
{
    char *end;

    while (**text) {
        long number = strtol(*text, &end, 10);
        bool found = end != *text;
        *text = found ? end : *text + 1;
        if (found && number > 0)
            return number;
    }
    return 0;
}

static int read_server(const struct mps_options *options, struct place *place, long pid,
                       struct mps_status *status, struct error *err)
{
    CLEANUP(str_done) struct str command = STR_EMPTY;
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    struct mps_server *server = vec_push(&status->servers);
    long client;

    assert(pid > 0);
    server->pid = pid;
    str_addf(&command, "get_client_list %ld", pid);
    int r = ask(options, place, command.bytes, &answer, err);
    for (const char *text = answer.bytes; !r && (client = next_number(&text));)
        vec_add(&server->clients, client);
    return r;
}

static int read_status(const struct mps_options *options, struct place *place,
                       struct mps_status *status, struct error *err)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    CLEANUP(str_done) struct str servers = STR_EMPTY;
    long pid;

    int r = ask(options, place, "get_default_active_thread_percentage", &answer, err);
    if (r)
        return r;
    status->active_thread_percent = NAN;
    text_to_double(answer.bytes, &status->active_thread_percent);
    r = ask(options, place, "get_server_list", &servers, err);
    for (const char *text = servers.bytes; !r && (pid = next_number(&text));)
        r = read_server(options, place, pid, status, err);
    return r;
}

int mps_status(const struct mps_options *options, struct mps_status *ret_status,
               struct error *err)
{
    CLEANUP(place_done) struct place place = PLACE_EMPTY;
    struct mps_status status = {.active_thread_percent = NAN};

    int r = find_place(options, &place, err);
    if (!r)
        r = is_running(options, &place, &status.running, err);
    if (!r && status.running)
        r = read_status(options, &place, &status, err);
    if (r)
        mps_status_done(&status);
    else
        *ret_status = status;
    return r;
}

/* --- a client's environment --- */

json_t *mps_env_to_json(const struct mps_options *options)
{
    CLEANUP(place_done) struct place place = PLACE_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_t *json = json_object();

    if (find_place(options, &place, NULL))
        return json;
    json_object_set_new(json, "CUDA_VISIBLE_DEVICES", json_string(options->device));
    json_object_set_new(json, "CUDA_MPS_PIPE_DIRECTORY", json_string(place.pipe.bytes));
    json_object_set_new(json, "CUDA_MPS_LOG_DIRECTORY", json_string(place.log.bytes));
    if (options->active_thread_percent > 0) {
        str_add_number(&text, options->active_thread_percent);
        json_object_set_new(json, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", json_string(text.bytes));
    }
    if (options->pinned_memory) {
        str_clear(&text);
        str_addf(&text, "0=%s", options->pinned_memory);
        json_object_set_new(json, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", json_string(text.bytes));
    }
    return json;
}

/* 'value' for a shell, an apostrophe as '\''. */
static void add_quoted(struct str *text, const char *value)
{
    str_add_char(text, '\'');
    for (; *value; value++) {
        if (*value == '\'')
            str_add(text, "'\\''");
        else
            str_add_char(text, *value);
    }
    str_add_char(text, '\'');
}

int mps_env(const struct mps_options *options, struct str *text, struct error *err)
{
    CLEANUP(place_done) struct place place = PLACE_EMPTY;
    const char *name;
    json_t *value;

    int r = find_place(options, &place, err);
    if (r)
        return r;
    json_t *json = mps_env_to_json(options);
    json_object_foreach(json, name, value)
    {
        str_addf(text, "export %s=", name);
        add_quoted(text, json_string_value(value));
        str_add_char(text, '\n');
    }
    json_decref(json);
    return 0;
}

json_t *mps_status_to_json(const struct mps_status *status)
{
    json_t *servers = json_array();

    for (size_t i = 0; i < status->servers.count; i++) {
        const struct mps_server *server = &status->servers.data[i];
        json_t *clients = json_array();
        for (size_t j = 0; j < server->clients.count; j++)
            json_array_append_new(clients, json_integer(server->clients.data[j]));
        json_array_append_new(servers, json_pack("{s:I, s:o}", "pid", (json_int_t)server->pid,
                                                 "clients", clients));
    }
    return json_pack("{s:b, s:o, s:o}", "running", status->running, "active_thread_percent",
                     isnan(status->active_thread_percent)
                         ? json_null()
                         : json_real(status->active_thread_percent),
                     "servers", servers);
}
