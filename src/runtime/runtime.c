/* SPDX-License-Identifier: Apache-2.0
 *
 * See runtime.h. Here: units towards what is wanted of them, and the life of the whole.
 */
#include "runtime/runtime.h"

#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/state_folder.h"
#include "slice/slice.h"

#define SECOND_NS          INT64_C(1000000000)
#define STATISTICS_NS      (SECOND_NS / 2)
#define START_TIMEOUT_NS   (180 * SECOND_NS)
#define TUNE_RETRY_NS      (SECOND_NS / 2)
#define HANG_NS            (5 * SECOND_NS)
#define BACKOFF_FIRST_NS   (SECOND_NS / 5)
#define BACKOFF_LONGEST_NS (10 * SECOND_NS)
#define LAST_REQUESTS_NS   (10 * SECOND_NS)
enum { BACKOFF_DOUBLINGS_MAX = 6 };

static const char *const PHASE_NAMES[PHASE_COUNT] = {[PHASE_STARTING] = "starting",
                                                     [PHASE_SERVING] = "serving",
                                                     [PHASE_CHANGING] = "changing",
                                                     [PHASE_ENDING] = "ending",
                                                     [PHASE_ENDED] = "ended"};

const char *runtime_phase_name(enum runtime_phase phase)
{
    assert(phase < PHASE_COUNT);
    return PHASE_NAMES[phase];
}

/* ---- units ------------------------------------------------------------------------ */

struct unit *runtime_find_unit(const struct runtime *runtime, int gpu, int start)
{
    for (size_t i = 0; i < runtime->units.count; i++)
        if (runtime->units.data[i]->gpu == gpu && runtime->units.data[i]->start == start)
            return runtime->units.data[i];
    return NULL;
}

struct unit *runtime_add_unit(struct runtime *runtime, int gpu, const struct plan *plan,
                              const struct plan_instance *instance)
{
    const struct machine_gpu *mine = &runtime->machine.gpus.data[gpu];
    struct unit *unit = xcalloc(1, sizeof *unit);
    assert(instance->service >= 0);
    snprintf(unit->key, sizeof unit->key, "n%d-%d", mine->number, instance->start);
    snprintf(unit->service, sizeof unit->service, "%s",
             plan->services.data[instance->service].name);
    unit->gpu = gpu;
    unit->slice = mine->board->profiles[instance->profile].name;
    unit->start = instance->start;
    unit->batch = instance->batch;
    unit->procs = instance->procs;
    unit->max_wait_ms = instance->max_wait_ms;
    unit->rate_rps = instance->rate_rps;
    unit->training = runtime_is_training(runtime, unit->service);
    vec_add(&runtime->units, unit);
    return unit;
}

void runtime_remove_unit(struct runtime *runtime, struct unit *unit)
{
    for (size_t i = 0; i < runtime->units.count; i++)
        if (runtime->units.data[i] == unit)
            runtime->units.data[i] = runtime->units.data[--runtime->units.count];
    free(unit);
}

bool runtime_unit_works(const struct unit *unit)
{
    return unit->training ? unit->ready && unit->keeper.pid
                          : unit->routed && unit->router_state == SERVER_UP;
}

double runtime_capacity_rps(const struct runtime *runtime, const char *service)
{
    double sum = 0;
    for (size_t i = 0; i < runtime->units.count; i++) {
        const struct unit *unit = runtime->units.data[i];
        if (unit->want == UNIT_SERVE && runtime_unit_works(unit) &&
            strcmp(unit->service, service) == 0)
            sum += unit->rate_rps;
    }
    return sum;
}

static void describe_unit(const struct runtime *runtime, const struct unit *unit, char *text,
                          size_t size)
{
    const char *id = runtime->machine.gpus.data[unit->gpu].id;
    snprintf(text, size, "%s on %s %s@%d", unit->service, id ? id : "?", unit->slice,
             unit->start);
}

static void say(struct runtime *runtime, enum log_level level, const struct unit *unit,
                const char *what)
{
    char text[256];
    describe_unit(runtime, unit, text, sizeof text);
    events_add(&runtime->events, level, "%s: %s", text, what);
}

/* ---- the spec of a unit ----------------------------------------------------------- */

static double number_setting(const struct runtime *runtime, const char *key)
{
    return json_number_value(json_object_get(runtime->settings, key));
}

static double cpu_cores_of(const struct runtime *runtime, const struct mig_board *board,
                           const char *slice)
{
    double full = number_setting(runtime, "cpu_full_slice");
    int profile = mig_profile_find(board, slice);
    assert(profile >= 0);
    return board->has_mig
               ? full * board->profiles[profile].compute_slices / board->compute_slices
               : full;
}

/* The newest checkpoint of a service, of whichever instance, or NULL: an instance that comes
 * takes up what another one has learnt. */
static char *newest_checkpoint(const char *folder)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    char *newest = NULL;
    struct timespec newest_time = {0};
    while (listing && (entry = readdir(listing))) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, entry->d_name);
        struct stat status;
        if (entry->d_name[0] == '.' || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        bool newer = status.st_mtim.tv_sec != newest_time.tv_sec
                         ? status.st_mtim.tv_sec > newest_time.tv_sec
                         : status.st_mtim.tv_nsec > newest_time.tv_nsec;
        if (!newer)
            continue;
        free(newest);
        newest = STEAL(path);
        newest_time = status.st_mtim;
    }
    if (listing)
        closedir(listing);
    return newest;
}

static void add_training(const struct runtime *runtime, const struct unit *unit, json_t *spec)
{
    CLEANUP(free_ptr)
    char *folder = xasprintf("%s/checkpoints/%s", runtime->folder, unit->service);
    CLEANUP(free_ptr) char *parent = state_folder_file(runtime->folder, "checkpoints");
    CLEANUP(free_ptr) char *checkpoint = xasprintf("%s/%s", folder, unit->key);
    mkdir(parent, 0700);
    mkdir(folder, 0700); /* that it cannot be made is told when a checkpoint is written */
    CLEANUP(free_ptr) char *resume = newest_checkpoint(folder);
    json_object_set_new(spec, "task", json_string("training"));
    json_object_set_new(spec, "checkpoint", json_string(checkpoint));
    json_object_set_new(spec, "resume", resume ? json_string(resume) : json_null());
}

int runtime_unit_spec(struct runtime *runtime, const struct unit *unit, json_t **ret_spec,
                      struct error *err)
{
    const struct mig_board *board = runtime->machine.gpus.data[unit->gpu].board;
    const json_t *model = runtime_model(runtime, unit->service);
    const char *path = json_string_value(json_object_get(model, "path"));
    bool cuda = json_is_true(json_object_get(runtime->settings, "cuda"));
    char uuid[GPU_TEXT_SIZE];
    int failed =
        machine_device(&runtime->machine, unit->gpu, unit->slice, unit->start, uuid, err);
    if (failed)
        return failed;
    double cores = cpu_cores_of(runtime, board, unit->slice);
    int memory_mib = board->profiles[mig_profile_find(board, unit->slice)].memory_mib;
    CLEANUP(free_ptr)
    char *identity = xasprintf("%s %s batch %d procs %d on %s", unit->service, path,
                               unit->batch, unit->procs, uuid);
    json_t *spec = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:f, s:i, s:O, s:O, s:f, s:O, s:O, s:s}", "service",
        unit->service, "model", path, "provider", cuda ? "cuda" : "cpu", "batch", unit->batch,
        "procs", unit->procs, "max_wait_ms", isnan(unit->max_wait_ms) ? 0.0 : unit->max_wait_ms,
        "threads", cuda || cores <= 1 ? 1 : (int)ceil(cores), "program",
        json_object_get(runtime->settings, "program"), "ort_library",
        json_object_get(runtime->settings, "ort_library"), "cpu_cores", cuda ? 0.0 : cores,
        "period_ms", json_object_get(runtime->settings, "period_ms"), "method",
        json_object_get(runtime->settings, "slice_method"), "identity", identity);
    assert(spec);
    json_object_set_new(spec, "uuid", cuda ? json_string(uuid) : json_null());
    json_object_set_new(spec, "memory_mib",
                        json_integer(cuda || memory_mib <= 0 ? 0 : memory_mib));
    if (unit->training)
        add_training(runtime, unit, spec);
    *ret_spec = spec;
    return 0;
}

/* ---- routing ---------------------------------------------------------------------- */

/* Weights in proportion to rate_rps: the largest of the service has the most there is. */
static void weigh_service(struct runtime *runtime, const char *service)
{
    double largest = 0;
    struct error err = {0};
    int backend = router_find(&runtime->router, service);
    for (size_t i = 0; i < runtime->units.count; i++)
        if (runtime->units.data[i]->routed &&
            strcmp(runtime->units.data[i]->service, service) == 0)
            largest = fmax(largest, runtime->units.data[i]->rate_rps);
    for (size_t i = 0; i < runtime->units.count && backend >= 0; i++) {
        struct unit *unit = runtime->units.data[i];
        if (!unit->routed || strcmp(unit->service, service) != 0)
            continue;
        int weight = largest > 0 ? (int)round(ROUTER_WEIGHT_MAX * unit->rate_rps / largest) : 1;
        weight = weight < 1 ? 1 : weight;
        if (weight != unit->weight &&
            router_weigh(&runtime->router, backend, unit->key, weight, &err) == 0)
            unit->weight = weight;
    }
}

static void route(struct runtime *runtime, struct unit *unit)
{
    struct error err = {0};
    int backend = router_find(&runtime->router, unit->service);
    bool fresh = backend < 0;
    int failed = router_service(&runtime->router, unit->service, &backend, &err);
    if (!failed && fresh)
        traffic_reset(&runtime->traffic, backend, runtime_objective_ms(runtime, unit->service));
    struct router_target target = {
        .backend = backend, .name = unit->key, .port = unit->port, .weight = 1};
    if (!failed)
        failed = router_add(&runtime->router, &target, &err);
    if (failed) {
        say(runtime, LOG_WARN, unit, err.text);
        return;
    }
    unit->routed = true;
    unit->drained_in_router = false;
    unit->weight = 1;
    unit->failures = 0;
    unit->down_since_ns = 0;
    runtime->statistics_ns = 0; /* look again soon */
    weigh_service(runtime, unit->service);
    say(runtime, LOG_INFO, unit, "serving");
}

static bool unroute(struct runtime *runtime, struct unit *unit)
{
    struct error err = {0};
    int backend = router_find(&runtime->router, unit->service);
    if (unit->routed && backend >= 0 &&
        router_remove(&runtime->router, backend, unit->key, &err) != 0)
        return false;
    unit->routed = false;
    unit->router_state = SERVER_DOWN;
    weigh_service(runtime, unit->service);
    return true;
}

static void drain(struct runtime *runtime, struct unit *unit)
{
    struct error err = {0};
    int backend = router_find(&runtime->router, unit->service);
    if (!unit->routed || unit->drained_in_router || backend < 0)
        return;
    if (router_drain(&runtime->router, backend, unit->key, &err) != 0)
        return;
    unit->drained_in_router = true;
    unit->router_state = SERVER_UP; /* until statistics tell otherwise */
    unit->down_since_ns = clock_now_ns(clock_real());
    runtime->statistics_ns = 0;
}

/* ---- one unit, one tick ----------------------------------------------------------- */

static int64_t backoff_ns(int failures)
{
    int doublings = failures < BACKOFF_DOUBLINGS_MAX ? failures : BACKOFF_DOUBLINGS_MAX;
    int64_t wait_ns = BACKOFF_FIRST_NS << doublings;
    return wait_ns < BACKOFF_LONGEST_NS ? wait_ns : BACKOFF_LONGEST_NS;
}

static void note_end(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    char text[128];
    if (!unroute(runtime, unit))
        return;
    process_id_wait(&unit->server, SECOND_NS);
    snprintf(text, sizeof text, "the %s %s; starting it again (log/%s.log)",
             unit->training ? "training" : "server", unit->ready ? "died" : "did not start",
             unit->key);
    say(runtime, LOG_WARN, unit, text);
    unit->retry_ns = now_ns + (unit->ready ? 0 : backoff_ns(unit->failures));
    unit->failures++;
    unit->keeper = unit->server = (struct process_id){0};
    unit->ready = false;
}

static void launch(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    CLEANUP(json_decref_ptr) json_t *spec = NULL;
    struct error err = {0};
    int failed = runtime_unit_spec(runtime, unit, &spec, &err);
    if (!failed)
        failed = unit_launch(unit, runtime->folder, spec, &err);
    if (!failed)
        return;
    unit->retry_ns = now_ns + backoff_ns(unit->failures++);
    say(runtime, LOG_ERROR, unit, err.text);
}

/* What was found running is kept only when it is what shall run. */
static bool adopt(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    CLEANUP(json_decref_ptr) json_t *spec = NULL;
    struct error err = {0};
    if (unit->adopted)
        return true;
    if (!unit->identity[0]) /* it has not said yet what it is */
        return false;
    unit->started_ns = now_ns;
    if (unit->want != UNIT_SERVE ||
        (runtime_unit_spec(runtime, unit, &spec, &err) == 0 && unit_runs(unit, spec))) {
        unit->adopted = true;
        return true;
    }
    say(runtime, LOG_WARN, unit, "another server runs in its place; it is ended");
    unit_end(unit, true);
    return false;
}

static void tune(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    CLEANUP(json_decref_ptr) json_t *spec = NULL;
    struct error err = {0};
    if (unit_is_tuned(unit) || now_ns - unit->tuned_ns < TUNE_RETRY_NS)
        return;
    unit->tuned_ns = now_ns;
    int failed = runtime_unit_spec(runtime, unit, &spec, &err);
    if (!failed)
        failed = unit_retune(unit, runtime->folder, spec, &err);
    if (failed)
        say(runtime, LOG_ERROR, unit, err.text);
}

static void watch_health(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    if (unit->router_state != SERVER_DOWN) {
        unit->down_since_ns = 0;
    } else if (unit->down_since_ns == 0) {
        unit->down_since_ns = now_ns;
    } else if (now_ns - unit->down_since_ns > HANG_NS) {
        say(runtime, LOG_WARN, unit, "the server does not answer; it is killed");
        unit_end(unit, true);
    }
}

static void tick_serving(struct runtime *runtime, struct unit *unit, bool alive, int64_t now_ns)
{
    if (!alive) {
        if (unit->keeper.pid)
            note_end(runtime, unit, now_ns);
        else if (now_ns >= unit->retry_ns)
            launch(runtime, unit, now_ns);
    } else if (!adopt(runtime, unit, now_ns)) {
        return;
    } else if (!unit->ready) {
        if (now_ns - unit->started_ns > START_TIMEOUT_NS)
            unit_end(unit, true);
    } else if (unit->training) {
        unit->failures = 0; /* its keeper ends it when it falls silent */
    } else if (!unit->routed) {
        route(runtime, unit);
    } else {
        tune(runtime, unit, now_ns);
        watch_health(runtime, unit, now_ns);
    }
}

/* Training has no requests to wait for: it ends after its step, with a checkpoint. */
static void end_training(struct runtime *runtime, struct unit *unit, bool alive)
{
    if (alive) {
        unit_end(unit, false);
        return;
    }
    process_id_wait(&unit->server, SECOND_NS);
    unit->keeper = unit->server = (struct process_id){0};
    unit->ready = false;
    unit_clean(unit, runtime->folder);
}

static void tick_stopping(struct runtime *runtime, struct unit *unit, bool alive,
                          int64_t now_ns)
{
    drain(runtime, unit);
    bool idle =
        unit->drained_in_router && unit->router_state != SERVER_UP && unit->sessions == 0;
    bool late = now_ns - unit->down_since_ns > LAST_REQUESTS_NS;
    if (unit->routed && alive && !idle && !late)
        return;
    if (unit->routed && !unroute(runtime, unit))
        return;
    if (alive) {
        unit_end(unit, false);
        return;
    }
    process_id_wait(&unit->server, SECOND_NS);
    unit->keeper = unit->server = (struct process_id){0};
    unit_clean(unit, runtime->folder);
}

static void tick_unit(struct runtime *runtime, struct unit *unit, int64_t now_ns)
{
    bool alive = unit_look(unit, runtime->folder);
    if (unit->training && unit->want != UNIT_SERVE) {
        end_training(runtime, unit, alive);
        return;
    }
    switch (unit->want) {
    case UNIT_SERVE:
        tick_serving(runtime, unit, alive, now_ns);
        break;
    case UNIT_DRAIN:
        drain(runtime, unit);
        if (!alive && unit->routed)
            unroute(runtime, unit);
        break;
    case UNIT_STOP:
        tick_stopping(runtime, unit, alive, now_ns);
        break;
    }
}

/* ---- HAProxy ---------------------------------------------------------------------- */

static void restart_router(struct runtime *runtime)
{
    struct error err = {0};
    events_add(&runtime->events, LOG_ERROR, "HAProxy has ended; starting it again");
    for (size_t i = 0; i < runtime->statistics.backends.count; i++) {
        const struct router_backend *backend = &runtime->statistics.backends.data[i];
        runtime->requests_before[backend->backend] += backend->requests;
        runtime->failed_before[backend->backend] += backend->failed;
    }
    vec_clear(&runtime->statistics.backends);
    for (size_t i = 0; i < runtime->units.count; i++) {
        struct unit *unit = runtime->units.data[i];
        unit->routed = unit->drained_in_router = false;
        unit->router_state = SERVER_DOWN;
        unit->sessions = 0;
    }
    if (router_start(&runtime->router, NULL, &err) != 0)
        events_add(&runtime->events, LOG_ERROR, "%s", err.text);
}

static struct unit *unit_of_server(struct runtime *runtime, const struct router_server *server)
{
    for (size_t i = 0; i < runtime->units.count; i++) {
        struct unit *unit = runtime->units.data[i];
        if (strcmp(unit->key, server->name) == 0 &&
            router_find(&runtime->router, unit->service) == server->backend)
            return unit;
    }
    return NULL;
}

/* A server that HAProxy has although this runtime did not put it there. */
static void adopt_server(struct runtime *runtime, struct unit *unit,
                         const struct router_server *server)
{
    struct error ignored;
    bool serves = unit->want == UNIT_SERVE && server->state == SERVER_UP;
    bool drains = unit->want != UNIT_SERVE && server->state != SERVER_MAINTENANCE;
    if (unit->ready && (serves || drains)) {
        unit->routed = true;
        unit->drained_in_router = server->state == SERVER_DRAIN;
        unit->weight = server->weight;
    } else if (unit->keeper.pid == 0) {
        router_remove(&runtime->router, server->backend, server->name, &ignored);
    }
}

static void read_statistics(struct runtime *runtime, int64_t now_ns)
{
    struct error err = {0};
    struct router_statistics now = {0};
    if (router_read(&runtime->router, &now, &err) != 0) {
        router_statistics_done(&now);
        return;
    }
    router_statistics_done(&runtime->statistics);
    runtime->statistics = now;
    runtime->statistics_ns = now_ns;
    runtime->statistics_read = true;
    for (size_t i = 0; i < now.servers.count; i++) {
        const struct router_server *server = &now.servers.data[i];
        struct unit *unit = unit_of_server(runtime, server);
        if (!unit) { /* left by a runtime that died */
            router_remove(&runtime->router, server->backend, server->name, &err);
            continue;
        }
        unit->router_state = server->state;
        unit->sessions = server->sessions;
        if (!unit->routed)
            adopt_server(runtime, unit, server);
    }
}

void runtime_refresh(struct runtime *runtime)
{
    int64_t now_ns = clock_now_ns(clock_real());
    if (!runtime->router_open || !runtime->statistics_read)
        return;
    traffic_receive(&runtime->traffic, now_ns);
    read_statistics(runtime, now_ns);
}

/* ---- what nobody wants ------------------------------------------------------------ */

static bool is_known(const struct runtime *runtime, const char *key)
{
    for (size_t i = 0; i < runtime->units.count; i++)
        if (strcmp(runtime->units.data[i]->key, key) == 0)
            return true;
    return false;
}

/* Removes the unfinished files of processes that were killed while they wrote. */
static void sweep_unfinished(const char *folder)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    while (listing && (entry = readdir(listing))) {
        struct process_id writer;
        static const char PREFIX[] = ".tranche-"; /* then the writer's pid */
        if (!text_starts_with(entry->d_name, PREFIX) ||
            process_id_of((pid_t)strtol(entry->d_name + strlen(PREFIX), NULL, 10), &writer))
            continue;
        CLEANUP(free_ptr) char *path = state_folder_file(folder, entry->d_name);
        unlink(path);
    }
    if (listing)
        closedir(listing);
}

/* Ends keepers that belong to no unit. */
static void sweep_keepers(struct runtime *runtime)
{
    CLEANUP(free_ptr) char *folder = state_folder_file(runtime->folder, "units");
    sweep_unfinished(runtime->folder);
    sweep_unfinished(folder);
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    while (listing && (entry = readdir(listing))) {
        struct unit unit = {0};
        size_t length = strcspn(entry->d_name, ".");
        if (length == 0 || length >= sizeof unit.key)
            continue;
        memcpy(unit.key, entry->d_name, length);
        if (is_known(runtime, unit.key))
            continue;
        if (unit_look(&unit, runtime->folder))
            unit_end(&unit, true);
        unit_clean(&unit, runtime->folder);
    }
    if (listing)
        closedir(listing);
}

/* Control groups that killed keepers left: opening a slice sweeps them. */
static void sweep_groups(void)
{
    struct slice_options options = {.cpu_cores = 0.5};
    struct slice *slice = NULL;
    struct error ignored;
    if (slice_open(&options, &slice, &ignored) == 0)
        slice_free(slice);
}

/* ---- the whole -------------------------------------------------------------------- */

static bool everything_serves(const struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->units.count; i++) {
        const struct unit *unit = runtime->units.data[i];
        if (unit->want == UNIT_SERVE && !runtime_unit_works(unit))
            return false;
    }
    return true;
}

static void forget(struct runtime *runtime)
{
    static const char *const NAMES[] = {"haproxy.cfg",  "haproxy.sock", "haproxy.json",
                                        "services.map", "control.sock", "journal.jsonl"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        CLEANUP(free_ptr) char *path = state_folder_file(runtime->folder, NAMES[i]);
        unlink(path);
    }
    runtime->phase = PHASE_ENDED;
}

static void tick_ending(struct runtime *runtime)
{
    struct error err = {0};
    for (size_t i = 0; i < runtime->units.count; i++)
        if (runtime->units.data[i]->keeper.pid || runtime->units.data[i]->routed)
            return;
    sweep_keepers(runtime);
    sweep_groups();
    if (runtime->router_open)
        router_stop(&runtime->router);
    if (machine_restore(&runtime->machine, &err) != 0) {
        int64_t now_ns = clock_now_ns(clock_real());
        if (now_ns - runtime->blocked_said_ns > 5 * SECOND_NS)
            events_add(&runtime->events, LOG_ERROR,
                       "the layout found cannot be restored: %s; trying again", err.text);
        runtime->blocked_said_ns = now_ns;
        return;
    }
    forget(runtime);
}

void runtime_down(struct runtime *runtime)
{
    struct error err = {0};
    if (runtime->phase >= PHASE_ENDING)
        return;
    /* Should it not be recorded (a full disk), a restart carries on serving. */
    runtime_record(runtime, json_pack("{s:s}", "record", "down"), &err);
    events_add(&runtime->events, LOG_INFO, "going down");
    change_free(runtime->change);
    runtime->change = NULL;
    runtime->phase = PHASE_ENDING;
}

void runtime_tick(struct runtime *runtime)
{
    int64_t now_ns = clock_now_ns(clock_real());
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    if (!router_alive(&runtime->router) && runtime->phase < PHASE_ENDING)
        restart_router(runtime);
    if (runtime->router_open)
        traffic_receive(&runtime->traffic, now_ns);
    bool often = runtime->phase != PHASE_SERVING;
    if (often || now_ns - runtime->statistics_ns >= STATISTICS_NS)
        read_statistics(runtime, now_ns);
    for (size_t i = 0; i < runtime->units.count; i++) {
        if (runtime->phase == PHASE_ENDING)
            runtime->units.data[i]->want = UNIT_STOP;
        tick_unit(runtime, runtime->units.data[i], now_ns);
    }
    if (!runtime->statistics_read)
        return; /* what HAProxy has is not known yet */
    if (runtime->phase == PHASE_CHANGING)
        change_tick(runtime, now_ns);
    else if (runtime->phase == PHASE_ENDING)
        tick_ending(runtime);
    else if (runtime->phase == PHASE_STARTING && everything_serves(runtime)) {
        runtime->phase = PHASE_SERVING;
        sweep_keepers(runtime);
        events_add(&runtime->events, LOG_INFO, "every server answers");
    }
}

void runtime_abandon(struct runtime *runtime)
{
    struct error ignored;
    for (size_t i = 0; i < runtime->units.count; i++)
        unit_end(runtime->units.data[i], true);
    sweep_keepers(runtime);
    if (runtime->router_open)
        router_stop(&runtime->router);
    if (runtime->machine_open)
        machine_restore(&runtime->machine, &ignored);
    forget(runtime);
}

void runtime_free(struct runtime *runtime)
{
    if (!runtime)
        return;
    for (size_t i = 0; i < runtime->units.count; i++)
        free(runtime->units.data[i]);
    vec_done(&runtime->units);
    change_free(runtime->change);
    plan_done(&runtime->plan);
    machine_done(&runtime->machine);
    router_done(&runtime->router);
    router_statistics_done(&runtime->statistics);
    traffic_done(&runtime->traffic);
    json_decref(runtime->last_change);
    json_decref(runtime->settings);
    close_fd(&runtime->lock_fd);
    free(runtime->folder);
    free(runtime->journal_path);
    free(runtime);
}
