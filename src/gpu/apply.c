/* SPDX-License-Identifier: Apache-2.0
 *
 * Executing a change; see apply.h. The order of one GPU: mode on, read again, destroy,
 * create, mode off. GPUs are changed one after another, so that at most one is disturbed at
 * any moment.
 */
#include "gpu/apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "gpu/holders.h"
#include "gpu/journal.h"

/* One run of apply, from lock to verdict. */
struct run {
    const struct gpu_driver *driver;
    const struct gpu_apply_options *options;
    struct gpu_apply_report *report;
    struct gpu_inventory inventory;
    struct gpu_target_list targets; /* every start known once planned */
    struct gpu_journal journal;     /* of this change, or of the same one cut short */
    struct str journal_path;
    int lock_fd;
    uint32_t created[MIG_UNITS_MAX]; /* GPU-instance id by start, on the GPU at hand */
    bool restoring;                  /* stopping waits: the way back is gone to its end */
    bool repacked;                   /* the GPU at hand had compute instances moved together */
};

void gpu_apply_report_init(struct gpu_apply_report *report)
{
    *report = (struct gpu_apply_report){.plan = STR_EMPTY, .notes = STR_EMPTY};
}

void gpu_apply_report_done(struct gpu_apply_report *report)
{
    str_done(&report->plan);
    str_done(&report->notes);
    json_decref(report->change);
    report->change = NULL;
}

static void run_done(struct run *run)
{
    gpu_inventory_done(&run->inventory);
    gpu_target_list_done(&run->targets);
    gpu_journal_done(&run->journal);
    str_done(&run->journal_path);
    close_fd(&run->lock_fd);
}

static int run_read(struct run *run, struct error *err)
{
    gpu_inventory_done(&run->inventory);
    run->inventory = (struct gpu_inventory){0};
    if (run->options->only)
        return gpu_inventory_read_one(run->driver, run->options->only, &run->inventory, err);
    return gpu_inventory_read(run->driver, &run->inventory, err);
}

/* Lock (unless a dry run only looks) and first reading. */
static int run_open(struct run *run, const struct gpu_driver *driver,
                    const struct gpu_apply_options *options, struct gpu_apply_report *report,
                    struct error *err)
{
    CLEANUP(str_done) struct str lock = STR_EMPTY;

    assert(driver->ops && options->state_dir);
    *run = (struct run){.driver = driver,
                        .options = options,
                        .report = report,
                        .journal_path = STR_EMPTY,
                        .lock_fd = -1};
    gpu_target_list_init(&run->targets);
    gpu_journal_path(options->state_dir, &run->journal_path);
    str_addf(&lock, "%s/gpu.lock", options->state_dir);
    int r = options->dry_run ? 0 : file_make_dirs(options->state_dir, 0700, err);
    if (!r && !options->dry_run)
        r = file_lock(lock.bytes, &run->lock_fd, err);
    if (r)
        return error_wrap(err, "no second writer may change GPUs meanwhile");
    return run_read(run, err);
}

/* --- single steps --- */

/* The compute-instance profile of this width with the most SMs: on boards with two profiles
 * of one width the first is not always the whole one (user report G6). */
static int choose_ci_profile(const struct run *run, const struct gpu *gpu, uint32_t gi,
                             int ci_slices, int *ret_profile_id, struct error *err)
{
    struct gpu_live_ci_profile profiles[GPU_CI_PROFILES_MAX];
    int count, best = -1;

    int r = run->driver->ops->ci_profiles(run->driver->self, gpu->identity.uuid, gi, profiles,
                                          &count, err);
    if (r)
        return r;
    for (int i = 0; i < count; i++)
        if (profiles[i].compute_slices == ci_slices && profiles[i].max_instances > 0 &&
            (best < 0 || profiles[i].sm > profiles[best].sm))
            best = i;
    if (best < 0)
        return error_set(err, E_UNSUPPORTED,
                         "GPU instance %u has no compute-instance profile of %d slices", gi,
                         ci_slices);
    *ret_profile_id = profiles[best].profile_id;
    return 0;
}

static int create_gi(struct run *run, const struct gpu *gpu, const struct gpu_step *step,
                     struct error *err)
{
    const struct mig_profile *profile = &gpu->live->profiles[step->instance.profile];
    struct gpu_placement placement = {.start = step->instance.start,
                                      .size = profile->placement_size};

    assert(step->instance.start >= 0 && step->instance.start < MIG_UNITS_MAX);
    return run->driver->ops->create_gi(run->driver->self, gpu->identity.uuid,
                                       profile->profile_id, placement,
                                       &run->created[step->instance.start], err);
}

static int create_ci(struct run *run, const struct gpu *gpu, const struct gpu_step *step,
                     struct error *err)
{
    assert(step->ci_slices > 0);
    uint32_t gi = step->gi != GPU_NO_INSTANCE ? step->gi : run->created[step->instance.start];
    uint32_t ci;
    int profile_id = -1;

    int r = choose_ci_profile(run, gpu, gi, step->ci_slices, &profile_id, err);
    return r ? r
             : run->driver->ops->create_ci(run->driver->self, gpu->identity.uuid, gi,
                                           profile_id, &ci, err);
}

/* Sets the mode and reads it back: a driver that only notes the change says 0. */
static int change_mode(struct run *run, const struct gpu *gpu, bool enabled, struct error *err)
{
    const char *uuid = gpu->identity.uuid;
    struct gpu_mode_result result = {0};
    struct gpu_mig_mode mode;
    CLEANUP(str_done) struct str holders = STR_EMPTY;

    int r = run->driver->ops->set_mig_mode(run->driver->self, uuid, enabled, &result, err);
    if (!r)
        r = run->driver->ops->mig_mode(run->driver->self, uuid, &mode, err);
    if (r || mode.current == enabled)
        return r;
    gpu_holders_describe(run->options->proc ? run->options->proc : "/proc", gpu->identity.minor,
                         &holders);
    return error_set(
        err, E_NO,
        "MIG is pending %s: the driver says %s; %s%sthis GPU owes a reset: stop its "
        "clients and run nvidia-smi --gpu-reset -i %s, or reboot, then apply again",
        enabled ? "enable" : "disable", result.reason[0] ? result.reason : "nothing more",
        holders.bytes, holders.length ? "; " : "", gpu->identity.pci_bus_id);
}

static int do_step(struct run *run, const struct gpu_step *step, struct error *err)
{
    const struct gpu *gpu = &run->inventory.gpus.data[step->gpu];
    const struct gpu_driver *driver = run->driver;

    switch (step->kind) {
    case GPU_STEP_DESTROY_CI:
        return driver->ops->destroy_ci(driver->self, gpu->identity.uuid, step->gi, step->ci,
                                       err);
    case GPU_STEP_DESTROY_GI:
        return driver->ops->destroy_gi(driver->self, gpu->identity.uuid, step->gi, err);
    case GPU_STEP_ENABLE_MIG:
        return change_mode(run, gpu, true, err);
    case GPU_STEP_DISABLE_MIG:
        return change_mode(run, gpu, false, err);
    case GPU_STEP_CREATE_GI:
        return create_gi(run, gpu, step, err);
    case GPU_STEP_CREATE_CI:
        return create_ci(run, gpu, step, err);
    case GPU_STEP_KIND_COUNT:
        break;
    }
    assert(!"no such step");
    return 0;
}

/* A driver's "in use" names nobody when a monitor holds the GPU: look for who it is. */
static void add_holders(const struct run *run, const struct gpu *gpu, struct error *err)
{
    CLEANUP(str_done) struct str holders = STR_EMPTY;

    if (err->code != E_BUSY)
        return;
    gpu_holders_describe(run->options->proc ? run->options->proc : "/proc", gpu->identity.minor,
                         &holders);
    CLEANUP(free_ptr) char *text = xstrdup(err->text);
    error_set(err, E_BUSY, "%s; %s", text,
              holders.length
                  ? holders.bytes
                  : "no holder is seen: look for DCGM, an exporter, persistenced or a "
                    "display (as root all processes are seen)");
}

/* Compute instances that stay can lie so that a wanted one, which would fit beside them, has
 * no place; NVML alone knows the places. Then they all go, unless one is busy, and are made
 * anew, widest first. Once for each GPU. */
static bool repack(struct run *run, const struct gpu_step *step)
{
    const struct gpu *gpu = &run->inventory.gpus.data[step->gpu];
    const struct gpu_driver *driver = run->driver;
    struct gpu_gi_list list;
    const struct gpu_gi *gi = NULL;

    if (run->repacked || step->kind != GPU_STEP_CREATE_CI || step->gi == GPU_NO_INSTANCE ||
        gpu_instance_is_busy(gpu, step->gi, GPU_NO_INSTANCE) ||
        driver->ops->instances(driver->self, gpu->identity.uuid, &list, NULL))
        return false;
    run->repacked = true;
    for (int i = 0; i < list.count; i++)
        if (list.gi[i].id == step->gi)
            gi = &list.gi[i];
    for (int i = 0; gi && i < gi->ci_count; i++)
        if (driver->ops->destroy_ci(driver->self, gpu->identity.uuid, gi->id, gi->ci[i].id,
                                    NULL))
            return false;
    return gi != NULL;
}

/* Does the steps up to the end, or to the point (*ret_again) where the rest is to be planned
 * again: the mode was changed, or compute instances were moved together. */
static int do_steps(struct run *run, const struct gpu_change *change, bool *ret_again,
                    struct error *err)
{
    *ret_again = false;
    for (size_t i = 0; i < change->steps.count && !*ret_again; i++) {
        const struct gpu_step *step = &change->steps.data[i];
        CLEANUP(str_done) struct str words = STR_EMPTY;
        struct error why = {0};

        gpu_step_describe(&run->inventory, step, &words);
        if (run->options->stop && *run->options->stop && !run->restoring)
            return error_set(err, E_INTERRUPTED, "stopped before: %s", words.bytes);
        if (run->options->progress)
            run->options->progress(run->options->progress_context, words.bytes);
        int r = do_step(run, step, &why);
        *ret_again =
            r ? r == -E_CONFLICT && repack(run, step) : step->kind == GPU_STEP_ENABLE_MIG;
        if (r && !*ret_again) {
            add_holders(run, &run->inventory.gpus.data[step->gpu], &why);
            return error_set(err, why.code, "%s: %s", words.bytes, why.text);
        }
    }
    return 0;
}

/* Reads a GPU again; the target's profiles, which are positions in the board as it was, are
 * looked up by name in the board as it is. */
static int refresh(struct run *run, struct gpu_target *target, struct error *err)
{
    struct gpu *gpu = &run->inventory.gpus.data[target->gpu];
    CLEANUP(str_done) struct str layout = STR_EMPTY;

    gpu_layout_format(&gpu->live->board, &target->layout, &layout);
    int r = gpu_inventory_refresh(run->driver, gpu, err);
    return r ? r : gpu_layout_parse(gpu->live, layout.bytes, &target->layout, err);
}

/* Brings one GPU to its target; planned anew after its mode changed, and once after its
 * compute instances were moved together. */
static int do_target(struct run *run, struct gpu_target *target, struct error *err)
{
    const int rounds = 3; /* mode, repacking, the rest */
    bool again = true;
    int r = 0;

    run->repacked = false;
    for (int round = 0; !r && again && round < rounds; round++) {
        struct gpu_target_list one = {.notes = STR_EMPTY};
        struct gpu_change change = {0};
        vec_add(&one.items, *target);
        r = gpu_change_plan(&run->inventory, &one, &change, err);
        if (!r)
            r = do_steps(run, &change, &again, err);
        gpu_change_done(&change);
        gpu_target_list_done(&one);
        if (!r && again)
            r = refresh(run, target, err);
    }
    return r;
}

/* Every target; a pending mode is kept for the end, so that the other GPUs are still done. */
static int do_targets(struct run *run, struct error *err)
{
    struct error pending = {0};

    for (size_t i = 0; i < run->targets.items.count; i++) {
        struct error why = {0};
        if (!do_target(run, &run->targets.items.data[i], &why))
            continue;
        if (why.code != E_NO)
            return error_set(err, why.code, "%s", why.text);
        if (!pending.code)
            pending = why;
    }
    return pending.code ? error_set(err, pending.code, "%s", pending.text) : 0;
}

/* --- verdict --- */

/* A full-width compute instance with fewer SMs than its GPU instance is said, not hidden. */
static void note_small_cis(struct run *run, const struct gpu *gpu)
{
    for (int i = 0; gpu->live && i < gpu->instances.count; i++) {
        const struct gpu_gi *gi = &gpu->instances.gi[i];
        int index = live_board_profile_of_gi(gpu->live, gi);
        if (index < 0 || gi->ci_count != 1)
            continue;
        const struct mig_profile *profile = &gpu->live->profiles[index];
        if (gi->ci[0].compute_slices == profile->compute_slices && gi->ci[0].sm > 0 &&
            gi->ci[0].sm < profile->sm)
            str_addf(&run->report->notes,
                     "GPU %d: the compute instance of %s@%d has %d of its %d SMs\n",
                     gpu->identity.index, profile->name, gi->start, gi->ci[0].sm, profile->sm);
    }
}

/* Reads everything again and compares. */
static int verify(struct run *run, struct error *err)
{
    CLEANUP(str_done) struct str differences = STR_EMPTY;

    int r = run_read(run, err);
    if (r)
        return error_wrap(err, "reading back");
    if (gpu_targets_compare(&run->inventory, &run->targets, &differences)) {
        differences.bytes[differences.length - 1] = '\0';
        return error_set(err, E_NO, "after the change the GPUs are not as requested:\n%s",
                         differences.bytes);
    }
    for (size_t i = 0; i < run->targets.items.count; i++)
        note_small_cis(run, &run->inventory.gpus.data[run->targets.items.data[i].gpu]);
    return 0;
}

/* Takes the GPUs to one side of the journal and reads back. */
static int go_to(struct run *run, enum gpu_journal_side side, struct error *err)
{
    int r = run_read(run, err);

    gpu_target_list_done(&run->targets);
    gpu_target_list_init(&run->targets);
    if (!r)
        r = gpu_journal_targets(&run->journal, side, &run->inventory, &run->targets, err);
    if (!r)
        r = do_targets(run, err);
    return r ? r : verify(run, err);
}

/* After a failure: restores what was there, and says in *err how that went. What is merely
 * pending or different is not taken back: it is owed to a reset, or to be looked at. */
static int fail(struct run *run, struct error *err)
{
    assert(err->code != E_NONE);
    struct error cause = *err, why = {0};
    static const char ways[] = "carry on with gpu apply --resume, go back with gpu apply "
                               "--rollback";

    if (cause.code == E_NO)
        return -cause.code;
    if (run->options->no_rollback)
        return error_set(err, cause.code, "%s\nthe GPUs are left as they are; %s", cause.text,
                         ways);
    run->restoring = true;
    if (go_to(run, GPU_JOURNAL_BEFORE, &why))
        return error_set(err, cause.code, "%s\nrestoring the old layout failed too: %s\n%s",
                         cause.text, why.text, ways);
    unlink(run->journal_path.bytes);
    return error_set(err, cause.code, "%s\nthe old layout was restored", cause.text);
}

/* --- the whole --- */

/* Replaces the open starts of the targets by those that the plan chose. */
static void fix_starts(struct run *run, const struct gpu_change *change)
{
    for (size_t i = 0; i < run->targets.items.count; i++)
        for (size_t j = 0; j < change->effects.count; j++)
            if (run->targets.items.data[i].gpu == change->effects.data[j].gpu)
                run->targets.items.data[i].layout = change->effects.data[j].result;
}

/* Plans; fills the report. *ret_steps: how many steps there are. */
static int plan(struct run *run, size_t *ret_steps, struct error *err)
{
    struct gpu_change change;

    assert(ret_steps);
    int r = gpu_change_plan(&run->inventory, &run->targets, &change, err);
    if (r)
        return r;
    gpu_change_describe(&run->inventory, &change, &run->report->plan);
    json_decref(run->report->change);
    run->report->change = gpu_change_to_json(&run->inventory, &change);
    fix_starts(run, &change);
    *ret_steps = change.steps.count;
    gpu_change_done(&change);
    return 0;
}

/* Process lists that could not be read are said: the driver itself refuses to destroy what
 * is in use, but later and with fewer words. */
static void note_unknown_processes(struct run *run)
{
    for (size_t i = 0; i < run->targets.items.count; i++) {
        const struct gpu *gpu = &run->inventory.gpus.data[run->targets.items.data[i].gpu];
        if (gpu->processes_unknown.length)
            str_addf(&run->report->notes, "GPU %d: its processes are not known: %s\n",
                     gpu->identity.index, gpu->processes_unknown.bytes);
    }
}

/* From targets to verdict. resumed: run->journal is that of the same request cut short, and
 * keeps what there was before the cut. */
static int execute(struct run *run, const char *request, bool resumed, struct error *err)
{
    size_t steps;

    note_unknown_processes(run);
    int r = plan(run, &steps, err);
    if (r)
        return r;
    run->report->outcome = GPU_APPLY_PLANNED;
    if (run->options->dry_run)
        return 0;
    run->report->outcome = resumed ? GPU_APPLY_DONE : GPU_APPLY_UNCHANGED;
    if (!resumed && steps) {
        gpu_journal_make(&run->inventory, &run->targets, request, &run->journal);
        if ((r = gpu_journal_write(&run->journal, run->journal_path.bytes, err)))
            return r;
        run->report->outcome = GPU_APPLY_DONE;
    }
    r = steps ? do_targets(run, err) : 0;
    if (!r && steps)
        r = verify(run, err);
    if (r)
        return fail(run, err);
    unlink(run->journal_path.bytes);
    return 0;
}

/* Looks for a change cut short. *ret_same: it was this request, and run->targets are its
 * own, so that the starts chosen then stay chosen. Another request replaces it. */
static int find_journal(struct run *run, const struct gpu_request *request, bool *ret_same,
                        struct error *err)
{
    struct error why;

    *ret_same = false;
    int r = gpu_journal_read(run->journal_path.bytes, &run->journal, &why);
    if (r == -E_NOT_FOUND)
        return 0;
    if (r) {
        str_addf(&run->report->notes, "%s; it is replaced\n", why.text);
        return 0;
    }
    *ret_same = !strcmp(run->journal.request, request->text);
    str_addf(&run->report->notes, "an earlier change (%s) was cut short; %s\n",
             run->journal.request, *ret_same ? "carrying on with it" : "this one replaces it");
    if (*ret_same)
        return gpu_journal_targets(&run->journal, GPU_JOURNAL_TARGET, &run->inventory,
                                   &run->targets, err);
    gpu_journal_done(&run->journal);
    return 0;
}

int gpu_apply(const struct gpu_driver *driver, const struct gpu_request *request,
              const struct gpu_apply_options *options, struct gpu_apply_report *report,
              struct error *err)
{
    CLEANUP(run_done) struct run run;
    bool same = false;

    assert(request->targets && request->text);
    int r = run_open(&run, driver, options, report, err);
    if (!r)
        r = find_journal(&run, request, &same, err);
    if (!r && !same)
        r = request->targets(request->context, &run.inventory, &run.targets, err);
    if (r)
        return r;
    str_add(&report->notes, run.targets.notes.bytes);
    return execute(&run, request->text, same, err);
}

static int finish(const struct gpu_driver *driver, const struct gpu_apply_options *options,
                  enum gpu_journal_side side, struct gpu_apply_report *report,
                  struct error *err)
{
    CLEANUP(run_done) struct run run;
    size_t steps;

    int r = run_open(&run, driver, options, report, err);
    if (!r)
        r = gpu_journal_read(run.journal_path.bytes, &run.journal, err);
    if (!r)
        r = gpu_journal_targets(&run.journal, side, &run.inventory, &run.targets, err);
    if (!r)
        r = plan(&run, &steps, err);
    report->outcome = options->dry_run ? GPU_APPLY_PLANNED : GPU_APPLY_DONE;
    if (!r && !options->dry_run && !(r = go_to(&run, side, err)))
        unlink(run.journal_path.bytes);
    return r;
}

int gpu_apply_resume(const struct gpu_driver *driver, const struct gpu_apply_options *options,
                     struct gpu_apply_report *report, struct error *err)
{
    return finish(driver, options, GPU_JOURNAL_TARGET, report, err);
}

int gpu_apply_rollback(const struct gpu_driver *driver, const struct gpu_apply_options *options,
                       struct gpu_apply_report *report, struct error *err)
{
    return finish(driver, options, GPU_JOURNAL_BEFORE, report, err);
}

void gpu_state_dir(enum gpu_driver_kind kind, struct str *path)
{
    const char *set = getenv("TRANCHE_STATE_DIR"), *sim = getenv("TRANCHE_SIM_STATE"),
               *runtime = getenv("XDG_RUNTIME_DIR");

    if (set && *set)
        str_add(path, set);
    else if (kind == GPU_DRIVER_SIM && sim && *sim)
        str_addf(path, "%s.tranche", sim);
    else if (kind == GPU_DRIVER_NVML && !geteuid())
        str_add(path, "/run/tranche");
    else if (runtime && *runtime)
        str_addf(path, "%s/tranche", runtime);
    else
        str_addf(path, "/tmp/tranche-%u", (unsigned)geteuid());
}
