/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche serve`: one model on one instance, until SIGTERM. Which instance is decided
 * outside, by what the process may see (CUDA_VISIBLE_DEVICES, its control group): `tranche
 * up` starts one for each instance of a plan.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "engine/made_inputs.h"
#include "engine/session.h"
#include "serve/server.h"

struct serve_options {
    const char *name, *address, *provider, *ort_library, *shapes;
    long long port, batch, procs, queue, threads, connections, idle_timeout_s;
    double max_wait_ms, body_limit_mib, bodies_limit_mib;
    bool cold, commands;
};

enum { MAX_WAIT_MS_MAX = 60000, COMMAND_MAX = 4096 };

static const struct option_spec options[] = {
    OPTION_TEXT('n', "name", struct serve_options, name, "NAME", NULL,
                "name of the model in the protocol (default: the file's, without .onnx)"),
    OPTION_TEXT(0, "address", struct serve_options, address, "ADDRESS", "127.0.0.1",
                "IPv4 address to listen on"),
    OPTION_INT('p', "port", struct serve_options, port, "PORT", "0", 0, 65535,
               "port; 0 takes a free one"),
    OPTION_INT('b', "batch", struct serve_options, batch, "N", "1", 1, 4096,
               "most rows in a batch"),
    OPTION_INT(0, "procs", struct serve_options, procs, "N", "1", 1, 64,
               "batches that run at once"),
    OPTION_NUMBER(0, "max-wait-ms", struct serve_options, max_wait_ms, "MS", "0", 0, 60000,
                  "longest that a request waits for its batch to fill"),
    OPTION_INT(0, "queue", struct serve_options, queue, "ROWS", "1024", 1, 1000000,
               "rows that may wait; beyond, the answer is 503"),
    OPTION_INT(0, "threads", struct serve_options, threads, "N", "1", 1, 256,
               "threads of an operator"),
    OPTION_CHOICE(0, "provider", struct serve_options, provider, "cpu|cuda|tensorrt", "cpu",
                  "what runs the model"),
    OPTION_TEXT(0, "ort-library", struct serve_options, ort_library, "FILE", NULL,
                "the ONNX Runtime library"),
    OPTION_TEXT(0, "shapes", struct serve_options, shapes, "SHAPES", NULL,
                "shapes for the first run, like x=Nx3x320x320 (default: made up)"),
    OPTION_FLAG(0, "cold", struct serve_options, cold, "be ready without a first run"),
    OPTION_FLAG(0, "commands", struct serve_options, commands,
                "take commands on standard input, one a line: \"max-wait-ms MS\""),
    OPTION_NUMBER(0, "body-limit-mib", struct serve_options, body_limit_mib, "MIB", "64", 0.001,
                  4096, "largest request body"),
    OPTION_NUMBER(0, "bodies-limit-mib", struct serve_options, bodies_limit_mib, "MIB", "512",
                  0.001, 65536, "request bodies held at once"),
    OPTION_INT(0, "connections", struct serve_options, connections, "N", "4096", 1, 60000,
               "connections held at once"),
    OPTION_INT(0, "idle-timeout", struct serve_options, idle_timeout_s, "SECONDS", "60", 1,
               3600, "close a connection on which nothing moves for so long"),
};

/* "models/ppocr_det.onnx" → "ppocr_det" */
static char *default_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t length = strlen(file);
    if (text_ends_with(file, ".onnx"))
        length -= strlen(".onnx");
    return xstrndup(file, length);
}

static int check_name(const char *name, struct error *err)
{
    static const char ALLOWED[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*name || strspn(name, ALLOWED) != strlen(name))
        return error_set(err, E_USAGE,
                         "model name '%s': expected letters, digits, '.', '_', '-'", name);
    return 0;
}

/* Runs a full batch of made-up inputs, so that the first request finds memory allocated and
 * kernels chosen. */
static int warm_up(struct session *session, const struct serve_options *given,
                   struct error *err)
{
    CLEANUP(made_inputs_free_ptr) struct made_inputs *inputs = NULL;
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(session);
    int failed = made_inputs_new(session, (int)given->batch, given->shapes, 1, &inputs, err);
    for (size_t i = 0; !failed && i < inputs->count; i++)
        failed = session_call_bind(call, i, &inputs->tensors[i], err);
    if (!failed)
        failed = session_call_run(call, err);
    if (failed)
        error_wrap(err, "first run (--shapes gives other sizes, --cold leaves it out)");
    return failed;
}

static int announce(const struct server *server, const char *name,
                    const struct onnx_runtime *runtime, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *event = json_object();
    CLEANUP(str_done) struct str line = STR_EMPTY;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    json_object_set_new(event, "event", json_string("ready"));
    json_object_set_new(event, "model", json_string(name));
    json_object_set_new(event, "port", json_integer(server_port(server)));
    json_object_set_new(event, "pid", json_integer(getpid()));
    json_object_set_new(event, "runtime", json_string(onnx_runtime_version(runtime)));
    /* What a measurement through this server asks of a workload. */
    json_object_set_new(event, "framework", json_string("onnxruntime"));
    json_object_set_new(event, "version", json_string(onnx_runtime_version(runtime)));
    json_object_set_new(event, "visible", visible ? json_string(visible) : json_null());
    json_write_line(event, &line);
    str_add_char(&line, '\n');
    return output_write(NULL, &line, err);
}

static struct server_options server_options_of(const struct serve_options *given,
                                               const char *name)
{
    return (struct server_options){
        .address = given->address,
        .port = (uint16_t)given->port,
        .model = name,
        .body_bytes_max = (size_t)(given->body_limit_mib * (1 << 20)),
        .bodies_bytes_max = (size_t)(given->bodies_limit_mib * (1 << 20)),
        .connections_max = (unsigned)given->connections,
        .idle_timeout_s = (unsigned)given->idle_timeout_s,
        .batcher = {.batch_max = (int)given->batch,
                    .procs = (int)given->procs,
                    .max_wait_ms = given->max_wait_ms,
                    .queue_rows_max = (int)given->queue},
    };
}

/* ---- until the end ---------------------------------------------------------------- */

static void obey(struct server *server, const char *line)
{
    static const char MAX_WAIT[] = "max-wait-ms ";
    double value;
    if (text_starts_with(line, MAX_WAIT) && text_to_double(line + strlen(MAX_WAIT), &value) &&
        value >= 0 && value <= MAX_WAIT_MS_MAX) {
        server_set_max_wait(server, value);
        log_write(LOG_INFO, "batching", "max_wait_ms=%g", value);
    } else {
        log_write(LOG_WARN, "unknown command", "line=\"%.60s\"", line);
    }
}

/* Obeys the whole lines of what standard input has; false at its end. */
static bool read_commands(struct server *server, struct str *lines)
{
    char bytes[512];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    str_add_bytes(lines, bytes, (size_t)got);
    for (char *end; (end = strchr(lines->bytes, '\n'));) {
        *end = '\0';
        obey(server, lines->bytes);
        size_t used = (size_t)(end - lines->bytes) + 1;
        memmove(lines->bytes, lines->bytes + used, lines->length - used + 1);
        lines->length -= used;
    }
    if (lines->length > COMMAND_MAX)
        str_clear(lines);
    return true;
}

/* Returns the signal that ends the server. */
static int wait_for_end(const sigset_t *ends, struct server *server, bool commands)
{
    CLEANUP(str_done) struct str lines = STR_EMPTY;
    CLEANUP(close_fd) int fd = signalfd(-1, ends, SFD_CLOEXEC);
    struct signalfd_siginfo info;
    assert(fd >= 0);
    while (commands) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents)
            break;
        commands = read_commands(server, &lines);
    }
    while (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        ;
    return (int)info.ssi_signo;
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct serve_options *given = parsed;
    const char *path = arguments.items[0];
    CLEANUP(free_ptr) char *name = given->name ? xstrdup(given->name) : default_name(path);
    int failed = check_name(name, err);
    if (failed)
        return failed;

    /* Before any thread starts, so that all inherit the mask and only sigwait() sees them. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);

    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = NULL;
    CLEANUP(session_free_ptr) struct session *session = NULL;
    CLEANUP(server_free_ptr) struct server *server = NULL;
    struct session_options session_options = {.threads = (int)given->threads};
    bool known = session_provider_find(given->provider, &session_options.provider);
    assert(known);
    failed = onnx_runtime_open(given->ort_library, &runtime, err);
    if (!failed)
        failed = session_open_file(runtime, path, &session_options, &session, err);
    if (!failed && !given->cold)
        failed = warm_up(session, given, err);
    struct server_options server_options = server_options_of(given, name);
    if (!failed)
        failed = server_start(session, &server_options, &server, err);
    if (!failed)
        failed = announce(server, name, runtime, err);
    if (failed)
        return failed;

    int signal_number = wait_for_end(&ends, server, given->commands);
    log_write(LOG_INFO, "draining", "model=%s signal=%d", name, signal_number);
    return 0; /* cleanup drains the server before the session goes */
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "serve a model over the KServe v2 protocol",
    .positionals = "MODEL.onnx",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Serves one ONNX model with ONNX Runtime over the KServe v2 (Open Inference) REST "
        "protocol, "
        "with dynamic batching: a batch starts when a process is free and either --batch rows "
        "wait "
        "or the oldest request has waited --max-wait-ms. Prometheus text is under /metrics.\n\n"
        "Once it answers, one line of JSON with the port goes to standard output. SIGTERM or "
        "Ctrl-C ends it: new requests are refused with 503, those accepted are answered.",
    .examples = "tranche serve models/ppocr_det.onnx --port 8000 --batch 8 --max-wait-ms 20\n"
                "curl -s localhost:8000/v2/models/ppocr_det",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct serve_options),
    .run = run,
};
