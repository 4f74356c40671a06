/* SPDX-License-Identifier: Apache-2.0
 *
 * Torture: for each change of layouts on boards of four kinds, the n-th NVML call fails, for
 * every n, and the process is killed after the n-th call, for every n. Then a plain re-run of
 * the same request must reach the target (whatever the first run did: restored, failed half
 * way, died). After each half: no GPU instance lacks the compute instances of the layout it
 * belongs to once the change is over, and an instance that both layouts share is the very
 * same one as before (the simulation numbers its instances, so it was never destroyed).
 *
 * A run without kill must itself end in the old layout or the new one. TRANCHE_TORTURE=full
 * takes every ordered pair of each board's layouts.
 *
 *     test_gpu_torture [BOARD]    one board of the table below, or all of them
 */
#include "support.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "sim/store.h"

struct scenario {
    const char *fleet;
    const char *layouts[8]; /* by pairs in this order: 0→1, 1→2, …; full: every pair */
};

static const struct scenario scenarios[] = {
    {"a100-40gb:1",
     {"-", "4g.20gb@0 2g.10gb@4 1g.5gb@6", "4g.20gb@0 1g.5gb@4 1g.5gb@5",
      "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4", "3g.20gb@0:2c+1c 3g.20gb@4", "7g.40gb@0",
      "off"}},
    {"a30-24gb:1",
     {"off", "2g.12gb@0 1g.6gb@2 1g.6gb@3", "2g.12gb@0:1c+1c 2g.12gb@2", "4g.24gb@0", "-"}},
    {"h100-80gb-sxm5:1",
     {"off", "1g.20gb@0 2g.20gb@2 3g.40gb@4", "1g.20gb@0 1g.10gb+me@2 3g.40gb@4:1c+1c+1c",
      "7g.80gb@0"}},
    {"rtxpro6000-96gb:1",
     {"-", "2g.48gb@0 1g.24gb@6 1g.24gb+gfx@9", "2g.48gb@0 2g.48gb-me@6", "4g.96gb@0"}},
};

static const char *const error_names[] = {"IN_USE", "INSUFFICIENT_RESOURCES", "UNKNOWN",
                                          "GPU_IS_LOST", "NO_PERMISSION"};

/* Under a sanitizer every call of every change would take half an hour: each change then takes
 * every STRIDE-th call, from another one on. Without, every call. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 9 };
#else
enum { STRIDE = 1 };
#endif

struct tally {
    size_t calls, failed, killed, hit, restored, reached;
};

static struct sim_box box;
static struct tally tally;

/* --- states as files --- */

static void copy_file(const char *from, const char *to)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    CLEANUP(close_fd) int fd = -1;

    assert_int_equal(file_read(from, FILE_SIZE_LIMIT, &bytes, NULL), 0);
    fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes.bytes, bytes.length), (ssize_t)bytes.length);
}

static void restore_state(void)
{
    char saved[128], journal[128];

    snprintf(saved, sizeof saved, "%s/saved", box.folder);
    snprintf(journal, sizeof journal, "%s/gpu-journal.json", box.state_dir);
    copy_file(saved, box.state);
    unlink(journal);
}

/* --- children: every apply has a library of its own, as a program would --- */

static int child_apply(const char *layouts)
{
    struct error err;
    int r = box_apply(&box, layouts, &err);

    if (r && getenv("TRANCHE_TORTURE_TALK"))
        fprintf(stderr, "# %s\n", err.text);
    return r ? 1 : 0;
}

/* Runs apply with this fault plan in a child; its exit status, or −1 when it was killed. */
static int run_apply(const char *layouts, const char *faults)
{
    fflush(NULL);
    pid_t pid = fork();
    int status;

    if (!pid) {
        if (faults)
            setenv("TRANCHE_SIM_FAULTS", faults, 1);
        _exit(child_apply(layouts));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t count_calls(const char *layouts)
{
    char path[128];
    CLEANUP(str_done) struct str trace = STR_EMPTY;
    size_t lines = 0;

    snprintf(path, sizeof path, "%s/trace", box.folder);
    unlink(path);
    setenv("TRANCHE_SIM_TRACE", path, 1);
    assert_int_equal(run_apply(layouts, NULL), 0);
    unsetenv("TRANCHE_SIM_TRACE");
    assert_int_equal(file_read(path, FILE_SIZE_LIMIT, &trace, NULL), 0);
    for (size_t i = 0; i < trace.length; i++)
        lines += trace.bytes[i] == '\n';
    return lines;
}

/* --- what must hold --- */

/* The machine at one moment, straight from the state file: its layout, and by start the id
 * and generation of each GPU instance, which tell it from a new one. */
struct picture {
    char *layout;
    uint32_t ids[MIG_UNITS_MAX], generations[MIG_UNITS_MAX], ci_generations[MIG_UNITS_MAX];
};

static void add_instance(const struct mig_board *board, const struct sim_gi *gi, unsigned id,
                         struct gpu_layout *layout, struct picture *ret)
{
    struct gpu_slice *slice = &layout->slices[layout->count++];

    slice->gi =
        (struct mig_instance){.profile = (int8_t)gi->profile, .start = (int8_t)gi->start};
    ret->ids[gi->start] = id + 1;
    ret->generations[gi->start] = gi->generation;
    for (int i = 0; i < SIM_CI_IDS; i++)
        if (gi->cis[i].used) {
            gpu_slice_add_ci(
                slice,
                board->profiles[gi->profile].ci_profiles[gi->cis[i].profile].compute_slices);
            ret->ci_generations[gi->start] += gi->cis[i].generation;
        }
}

static void take_picture(struct picture *ret)
{
    static struct sim_store store;
    struct str text = STR_EMPTY;
    struct gpu_layout layout = {0};
    struct error err;

    if (sim_store_open(&store, &err) || sim_store_lock(&store, false, &err))
        fail_msg("%s", err.text);
    const struct sim_gpu *gpu = &store.machine.gpus[0];
    const struct mig_board *board = mig_board_find(gpu->board);
    *ret = (struct picture){0};
    for (unsigned i = 0; i < SIM_GI_IDS; i++)
        if (gpu->gis[i].used)
            add_instance(board, &gpu->gis[i], i, &layout, ret);
    gpu_layout_sort(&layout);
    if (gpu->mig_current)
        gpu_layout_format(board, &layout, &text);
    else
        str_add(&text, "off");
    sim_store_unlock(&store, false);
    sim_store_close(&store);
    ret->layout = str_take(&text);
}

/* Whether a layout text has this word. */
static bool has_word(const char *layout, const char *word, size_t length)
{
    for (const char *at = layout; (at = strstr(at, word)); at++)
        if ((at == layout || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

/* An instance of both texts, compute instances included, is still the same one. */
static void check_shared(const struct picture *old, const struct picture *now,
                         const char *target, const char *where)
{
    char word[64];

    for (const char *at = old->layout; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        const char *start = strchr(word, '@');
        at += length;
        if (!start || !has_word(target, word, length))
            continue;
        int unit = atoi(start + 1);
        if (!has_word(now->layout, word, length))
            fail_msg("%s: %s was lost; there is %s", where, word, now->layout);
        if (now->ids[unit] != old->ids[unit] ||
            now->generations[unit] != old->generations[unit] ||
            now->ci_generations[unit] != old->ci_generations[unit])
            fail_msg("%s: %s is not the same instance as before", where, word);
    }
}

static void check_case(const struct picture *old, const char *target, const char *faults,
                       int status)
{
    struct picture middle, end;
    char where[256];

    snprintf(where, sizeof where, "%s, %s to %s", faults, old->layout, target);
    take_picture(&middle);
    check_shared(old, &middle, target, where);
    if (status >= 0) {
        tally.restored += !strcmp(middle.layout, old->layout);
        tally.reached += !strcmp(middle.layout, target);
        if (status == 0 && strcmp(middle.layout, target))
            fail_msg("%s: success was reported with %s", where, middle.layout);
        if (strcmp(middle.layout, old->layout) && strcmp(middle.layout, target))
            fail_msg("%s: left half way at %s", where, middle.layout);
    }
    if (run_apply(target, NULL))
        fail_msg("%s: the re-run failed at %s", where, middle.layout);
    take_picture(&end);
    if (strcmp(end.layout, target))
        fail_msg("%s: the re-run ended at %s", where, end.layout);
    check_shared(old, &end, target, where);
    free(middle.layout);
    free(end.layout);
}

static void torture(const char *from, const char *to)
{
    struct picture old;
    char saved[128], faults[96];

    restore_state();
    box_must_apply(&box, from);
    snprintf(saved, sizeof saved, "%s/saved", box.folder);
    copy_file(box.state, saved);
    take_picture(&old);
    size_t calls = count_calls(to);
    for (size_t n = 1 + tally.calls % STRIDE; n <= calls; n += STRIDE) {
        restore_state();
        snprintf(faults, sizeof faults, "call %zu: error %s", n,
                 error_names[n % (sizeof error_names / sizeof error_names[0])]);
        int status = run_apply(to, faults);
        tally.failed++;
        tally.hit += status != 0;
        check_case(&old, to, faults, status);
        restore_state();
        snprintf(faults, sizeof faults, "call %zu: kill after", n);
        status = run_apply(to, faults);
        tally.killed++;
        assert_int_equal(status, -1);
        check_case(&old, to, faults, status);
    }
    tally.calls += calls;
    printf("# %s: %s -> %s: %zu calls\n", getenv("TRANCHE_SIM_FLEET"), old.layout, to, calls);
    free(old.layout);
}

static void test_scenario(void **state)
{
    const struct scenario *scenario = *state;
    const char *full = getenv("TRANCHE_TORTURE");
    char saved[128];
    size_t count = 0;

    tally = (struct tally){0};
    box_open(&box, scenario->fleet);
    free(box_layouts()); /* makes the machine */
    snprintf(saved, sizeof saved, "%s/saved", box.folder);
    copy_file(box.state, saved);
    while (count < sizeof scenario->layouts / sizeof scenario->layouts[0] &&
           scenario->layouts[count])
        count++;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (full && !strcmp(full, "full") ? i != j : j == i + 1)
                torture(scenario->layouts[i], scenario->layouts[j]);
    printf("# %s: %zu calls failed (%zu runs told of it; %zu ended at the old layout, %zu at "
           "the new), %zu killed; all converged\n",
           scenario->fleet, tally.failed, tally.hit, tally.restored, tally.reached,
           tally.killed);
    box_close(&box);
}

#define SCENARIO(i)                                                                            \
    {                                                                                          \
        scenarios[i].fleet, test_scenario, NULL, NULL, (void *)&scenarios[i]                   \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {SCENARIO(0), SCENARIO(1), SCENARIO(2), SCENARIO(3)};
    bool found = argc < 2;
    char filter[64];

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        found = found || text_starts_with(tests[i].name, argv[1]);
    if (!found) {
        fprintf(stderr, "no scenario on a board %s\n", argv[1]);
        return 1;
    }
    snprintf(filter, sizeof filter, "%s*", argc < 2 ? "" : argv[1]);
    cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
