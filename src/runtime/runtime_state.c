/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runtime knows from its journal: read again from the first record to the last.
 */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/journal.h"
#include "runtime/runtime.h"
#include "runtime/state_folder.h"

int runtime_record(struct runtime *runtime, json_t *record_stolen, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *record = record_stolen;
    return journal_append(runtime->journal_path, record, err);
}

/* ---- settings --------------------------------------------------------------------- */

const json_t *runtime_model(const struct runtime *runtime, const char *service)
{
    return json_object_get(json_object_get(runtime->settings, "models"), service);
}

double runtime_objective_ms(const struct runtime *runtime, const char *service)
{
    const json_t *value = json_object_get(runtime_model(runtime, service), "latency_ms");
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool runtime_is_training(const struct runtime *runtime, const char *service)
{
    const char *task =
        json_string_value(json_object_get(runtime_model(runtime, service), "task"));
    return task && strcmp(task, "training") == 0;
}

static void merge_models(struct runtime *runtime, const json_t *models)
{
    json_t *mine = json_object_get(runtime->settings, "models");
    if (json_is_object(models))
        json_object_update(mine, (json_t *)models);
}

/* ---- one record ------------------------------------------------------------------- */

static int replay_up(struct runtime *runtime, const json_t *record, struct error *err)
{
    struct json_place place = {.file = runtime->journal_path};
    const json_t *settings, *models;
    int failed = json_get_object(&place, record, "settings", true, &settings, err);
    if (!failed)
        failed = json_get_object(&place, settings, "models", true, &models, err);
    if (!failed)
        failed = plan_from_json(runtime->journal_path, json_object_get(record, "plan"),
                                &runtime->plan, err);
    if (!failed)
        runtime->settings = json_deep_copy(settings);
    return failed;
}

static int replay_transition(struct runtime *runtime, const json_t *record, struct error *err)
{
    struct transition transition;
    struct plan to;
    transition_init(&transition);
    plan_init(&to);
    int failed = transition_from_json(runtime->journal_path,
                                      json_object_get(record, "document"), &transition, err);
    if (!failed)
        failed =
            plan_from_json(runtime->journal_path, json_object_get(record, "plan"), &to, err);
    if (failed) {
        transition_done(&transition);
        plan_done(&to);
        return failed;
    }
    merge_models(runtime, json_object_get(record, "models"));
    const json_t *at = json_object_get(record, "at");
    runtime->change = change_new(
        &transition, &to, json_is_number(at) ? json_number_value(at) : timeline_wall_s());
    timeline_note_gap(&runtime->change->timeline);
    runtime->phase = PHASE_CHANGING;
    runtime->change_number = 1;
    return 0;
}

static int replay_action(struct runtime *runtime, const json_t *record, bool done,
                         struct error *err)
{
    const char *id = json_string_value(json_object_get(record, "action"));
    int action =
        runtime->change && id ? transition_find_action(&runtime->change->transition, id) : -1;
    if (action < 0)
        return error_set(err, E_INPUT, "%s: an action of no transition", runtime->journal_path);
    struct timeline *timeline = &runtime->change->timeline;
    const json_t *at = json_object_get(record, "at");
    (done ? runtime->change->done : runtime->change->begun)[action] = true;
    if (json_is_number(at))
        (done ? timeline->done_s : timeline->begun_s)[action] =
            json_number_value(at) - timeline->started_unix_s;
    return 0;
}

static int replay_record(struct runtime *runtime, const json_t *record, struct error *err)
{
    const char *kind = json_string_value(json_object_get(record, "record"));
    if (!kind)
        kind = "";
    if (strcmp(kind, "up") == 0 && !runtime->settings)
        return replay_up(runtime, record, err);
    if (!runtime->settings)
        return error_set(err, E_INPUT, "%s: does not begin with what was brought up",
                         runtime->journal_path);
    if (strcmp(kind, "gpu") == 0)
        return machine_retake(&runtime->machine, record, err);
    if (strcmp(kind, "transition") == 0)
        return replay_transition(runtime, record, err);
    if (strcmp(kind, "begin") == 0 || strcmp(kind, "done") == 0)
        return replay_action(runtime, record, *kind == 'd', err);
    if (strcmp(kind, "down") == 0) {
        runtime->phase = PHASE_ENDING;
        return 0;
    }
    return error_set(err, E_INPUT, "%s: unknown record '%s'", runtime->journal_path, kind);
}

/* ---- units out of plan and actions ------------------------------------------------ */

static void add_plan_units(struct runtime *runtime)
{
    for (size_t g = 0; g < runtime->plan.gpus.count; g++) {
        const struct plan_gpu *gpu = &runtime->plan.gpus.data[g];
        int index = machine_find(&runtime->machine, gpu->id);
        for (size_t i = 0; i < gpu->instances.count && index >= 0; i++)
            if (gpu->instances.data[i].service >= 0)
                runtime_add_unit(runtime, index, &runtime->plan, &gpu->instances.data[i]);
    }
}

int runtime_replay(struct runtime *runtime, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *records = NULL;
    int failed = journal_read(runtime->journal_path, &records, err);
    if (!failed && json_array_size(records) == 0)
        failed =
            error_set(err, E_NOT_FOUND, "%s: nothing was brought up here", runtime->folder);
    for (size_t i = 0; i < json_array_size(records) && !failed; i++)
        failed = replay_record(runtime, json_array_get(records, i), err);
    if (failed)
        return failed;
    return 0;
}

/* After the GPUs are known. Actions stand in an order in which each comes after those that it
 * waits for, so one pass makes of the plan's units what was decided. */
static void enact_begun(struct runtime *runtime)
{
    struct change *change = runtime->change;
    for (size_t a = 0; change && a < change->transition.actions.count; a++) {
        if (change->begun[a] || change->done[a])
            change_enact(runtime, (int)a);
        if (change->done[a])
            change_settle(runtime, (int)a);
    }
}

/* ---- shortening ------------------------------------------------------------------- */

int runtime_compact(struct runtime *runtime, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *records = json_array();
    json_array_append_new(records,
                          json_pack("{s:s, s:O, s:o}", "record", "up", "settings",
                                    runtime->settings, "plan", plan_to_json(&runtime->plan)));
    for (size_t i = 0; i < runtime->machine.gpus.count; i++)
        json_array_append_new(records, machine_gpu_to_json(&runtime->machine.gpus.data[i]));
    return journal_replace(runtime->journal_path, records, err);
}

/* ---- opening ---------------------------------------------------------------------- */

int runtime_prepare(const char *folder, const json_t *settings, const json_t *plan,
                    struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(folder, "journal.jsonl");
    CLEANUP(free_ptr) char *lock = state_folder_file(folder, "runtime.lock");
    CLEANUP(close_fd) int fd = -1;
    int failed = state_folder_make(folder, err);
    if (!failed)
        failed = file_lock(lock, &fd, err);
    if (failed)
        return failed;
    if (access(path, F_OK) == 0)
        return error_set(err, E_BUSY,
                         "a plan was brought up here already (%s): `tranche apply` changes it, "
                         "`tranche down` ends it, `tranche up` without a plan carries on",
                         folder);
    CLEANUP(json_decref_ptr)
    json_t *records =
        json_pack("[{s:s, s:O, s:O}]", "record", "up", "settings", settings, "plan", plan);
    return journal_replace(path, records, err);
}

/* Variables that choose the driver and the library, as they were at `up`. */
static void set_environment(const struct runtime *runtime)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(runtime->settings, "environment"), name, value)
        setenv(name, json_string_value(value), 0);
}

static const char *setting(const struct runtime *runtime, const char *key)
{
    return json_string_value(json_object_get(runtime->settings, key));
}

int runtime_open(const char *folder, struct runtime **ret_runtime, struct error *err)
{
    CLEANUP(runtime_free_ptr) struct runtime *runtime = xcalloc(1, sizeof *runtime);
    CLEANUP(free_ptr) char *lock = state_folder_file(folder, "runtime.lock");
    runtime->folder = xstrdup(folder);
    runtime->journal_path = state_folder_file(folder, "journal.jsonl");
    runtime->lock_fd = -1;
    plan_init(&runtime->plan);
    traffic_init(&runtime->traffic);
    if (access(runtime->journal_path, F_OK) != 0)
        return error_set(err, E_NOT_FOUND, "%s: nothing was brought up here", folder);
    int failed = file_lock(lock, &runtime->lock_fd, err);
    if (!failed)
        failed = runtime_replay(runtime, err);
    if (failed)
        return failed;
    set_environment(runtime);
    *ret_runtime = STEAL(runtime);
    return 0;
}

bool runtime_is_first_start(const struct runtime *runtime)
{
    return runtime->machine.gpus.count == 0 && runtime->phase == PHASE_STARTING;
}

/* ---- starting --------------------------------------------------------------------- */

static int take_plan_gpus(struct runtime *runtime, struct error *err)
{
    int failed = 0, index;
    for (size_t g = 0; g < runtime->plan.gpus.count && !failed; g++) {
        const struct plan_gpu *gpu = &runtime->plan.gpus.data[g];
        if (machine_find(&runtime->machine, gpu->id) >= 0)
            continue;
        failed = machine_take(&runtime->machine, gpu->id, gpu->board, &index, err);
        if (!failed)
            failed = runtime_record(
                runtime, machine_gpu_to_json(&runtime->machine.gpus.data[index]), err);
    }
    return failed;
}

static int open_machine(struct runtime *runtime, struct error *err)
{
    struct machine known = runtime->machine; /* what replay found */
    int failed = machine_open(&runtime->machine, setting(runtime, "driver"),
                              setting(runtime, "library"), err);
    memcpy(&runtime->machine.gpus, &known.gpus, sizeof known.gpus);
    if (failed)
        return failed;
    runtime->machine_open = true;
    if (!runtime->change) /* a change that was refused leaves GPUs with ids for it */
        machine_forget_ids(&runtime->machine, &runtime->plan);
    failed = machine_resume(&runtime->machine, err);
    if (!failed && runtime->phase != PHASE_ENDING)
        failed = take_plan_gpus(runtime, err);
    if (!failed && runtime->change)
        failed = change_take_gpus(runtime, err);
    if (!failed && runtime->phase == PHASE_STARTING)
        failed = machine_apply_plan(&runtime->machine, &runtime->plan, err);
    return failed;
}

static int open_router(struct runtime *runtime, struct error *err)
{
    bool adopted = false;
    router_init(&runtime->router, runtime->folder, setting(runtime, "address"),
                (int)json_integer_value(json_object_get(runtime->settings, "port")));
    int failed = router_start(&runtime->router, &adopted, err);
    if (failed)
        return failed;
    traffic_open(&runtime->traffic, runtime->folder);
    traffic_receive(&runtime->traffic, clock_now_ns(clock_real()));
    runtime->router_open = true;
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        if (runtime->router.services[i][0])
            traffic_reset(&runtime->traffic, i,
                          runtime_objective_ms(runtime, runtime->router.services[i]));
    return 0;
}

int runtime_start(struct runtime *runtime, struct error *err)
{
    int failed = open_machine(runtime, err);
    if (!failed)
        failed = open_router(runtime, err);
    if (failed)
        return failed;
    add_plan_units(runtime);
    enact_begun(runtime);
    for (size_t i = 0; i < runtime->units.count; i++)
        unit_look(runtime->units.data[i], runtime->folder);
    return 0;
}
