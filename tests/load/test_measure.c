/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring with made-up workloads (shell scripts that speak the protocol): what the
 * figures are when the steps are known, and what each way to fail becomes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "load/measure.h"

#define READY "echo '{\"event\":\"ready\",\"framework\":\"sh\",\"waits\":true}'; read go; "
/* Steps of 1 ms each, back to back on a made-up clock from now on, 4 samples each. */
#define STEPS                                                                                  \
    "t=$(awk '{printf \"%.0f\", ($1 + 0.001) * 1e9}' /proc/uptime); i=0; trap 'stop=1' TERM; " \
    "while [ -z \"$stop\" ]; do "                                                              \
    "echo \"{\\\"event\\\":\\\"step\\\",\\\"i\\\":$i,\\\"t_ns\\\":$t,"                         \
    "\\\"dur_ns\\\":1000000,\\\"items\\\":4}\"; "                                              \
    "t=$((t + 1000000)); i=$((i + 1)); sleep 0.001; done; "
#define DONE "echo '{\"event\":\"done\",\"steps\":1,\"peak_mem_bytes\":1048576}'"

static struct measure_cell cell;
static struct measure_settings settings;
static const char *words[4];

static void use(const char *script, int procs)
{
    words[0] = "sh";
    words[1] = "-c";
    words[2] = script;
    cell = (struct measure_cell){.name = "m",
                                 .model = "m",
                                 .board = mig_board_find("a100-40gb"),
                                 .batch = 4,
                                 .procs = procs};
    cell.profile = mig_profile_find(cell.board, "7g");
    settings = (struct measure_settings){.command = words,
                                         .cpu_full_slice = 1,
                                         .period_ns = 20000000,
                                         .duration_ns = 100000000,
                                         .longest_ns = 20000000000,
                                         .min_steps = 5,
                                         .ready_timeout_ns = 400000000,
                                         .silence_timeout_ns = 400000000};
}

static void steps_become_figures(void **state)
{
    (void)state;
    use(READY STEPS DONE, 2);
    settings.ready_timeout_ns = settings.silence_timeout_ns = 20000000000;
    struct measure_result result;
    struct error err;
    if (measure_closed(&cell, &settings, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.status, STATUS_OK);
    assert_true(hist_count(result.latency) >= 5);
    assert_true(llabs(hist_percentile_ns(result.latency, 99) - 1000000) < 2000);
    /* Two processes, 4 samples a millisecond each, by the steps' own clock. */
    assert_float_equal(result.throughput_rps, 8000, 1);
    assert_int_equal(result.memory_peak_bytes, 2 << 20);
    assert_string_equal(result.ready.framework, "sh");
    assert_float_equal(result.cpu_quota_cores, 1, 0);
    measure_result_done(&result);
}

struct ending {
    const char *script;
    int code; /* of measure_closed() */
    enum measurement_status status;
    const char *says;
};

static const struct ending endings[] = {
    {"echo '{\"event\":\"error\",\"class\":\"oom\",\"text\":\"too big\"}'; exit 3", 0,
     STATUS_OOM, "too big"},
    {"echo '{\"event\":\"error\",\"class\":\"unsupported\",\"text\":\"batch\"}'; exit 2", 0,
     STATUS_UNSUPPORTED, "batch"},
    {"echo '{\"event\":\"error\",\"class\":\"init\",\"text\":\"no model\"}'; exit 2", E_MISSING,
     STATUS_ERROR, "no model"},
    {"echo 'Traceback' >&2; exit 7", E_MISSING, STATUS_ERROR, "exit status 7: Traceback"},
    {READY "kill -SEGV $$", 0, STATUS_ERROR, "signal 11"},
    {READY "echo 'std::bad_alloc' >&2; kill -ABRT $$", 0, STATUS_OOM, "out of memory"},
    {READY "exit 0", 0, STATUS_ERROR, "ended early with exit status 0"},
    {READY DONE, 0, STATUS_ERROR, "before anything was measured"},
    {"sleep 10", 0, STATUS_TIMEOUT, "not ready"},
    {READY "sleep 10", 0, STATUS_TIMEOUT, "silent"},
    {READY "echo '{\"event\":\"step\"}'; sleep 10", 0, STATUS_ERROR, "broke the protocol"},
    {READY "head -c 70000 /dev/zero | tr '\\0' x; sleep 10", 0, STATUS_ERROR, "over 64 KiB"},
};

static void each_failure_has_its_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const struct ending *want = &endings[i];
        struct measure_result result;
        struct error err = {0};
        use(want->script, 1);
        if (want->status != STATUS_TIMEOUT)
            settings.silence_timeout_ns = 20000000000;
        if (strcmp(want->says, "not ready") != 0)
            settings.ready_timeout_ns = 20000000000;
        int got = measure_closed(&cell, &settings, &result, &err);
        if (got != -want->code || result.status != want->status ||
            !strstr(result.reason, want->says))
            fail_msg("%s: %d, status %d, \"%s\" (%s)", want->script, got, result.status,
                     result.reason, err.text);
        assert_float_equal(result.throughput_rps, 0, 0);
        measure_result_done(&result);
    }
}

static void ctrl_c_interrupts(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop = 1;
    struct measure_result result;
    struct error err;
    use(READY STEPS DONE, 1);
    settings.stop = &stop;
    assert_int_equal(measure_closed(&cell, &settings, &result, &err), -E_INTERRUPTED);
    measure_result_done(&result);
}

static void wrong_outputs_are_seen(void **state)
{
    (void)state;
    static const char script[] =
        "echo '{\"event\":\"ready\",\"waits\":true,\"outputs\":[{\"sum\":1.00005,"
        "\"absolute_sum\":2,\"count\":3}]}'; read go; " STEPS DONE;
    static const struct {
        struct output_summary want;
        int count;
        bool wrong;
    } cases[] = {
        {{1, 2, 3}, 1, false},    {{1.001, 2, 3}, 1, true}, {{1, 2.001, 3}, 1, true},
        {{1, 2, 4}, 1, true},     {{1, 2, 3}, 2, true},     {{1, 2, 3}, 0, true},
        {{NAN, NAN, 3}, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measure_result result;
        struct error err;
        struct ready_event reference = {.output_count = cases[i].count,
                                        .outputs = {cases[i].want}};
        use(script, 1);
        settings.ready_timeout_ns = settings.silence_timeout_ns = 20000000000;
        settings.reference = &reference;
        if (measure_closed(&cell, &settings, &result, &err))
            fail_msg("%s", err.text);
        assert_int_equal(result.status, STATUS_OK);
        assert_int_equal(result.verdict.reasons >> REASON_WRONG_OUTPUT & 1, cases[i].wrong);
        measure_result_done(&result);
    }
}

static void verdicts_of_the_slice(void **state)
{
    (void)state;
    struct measure_result result = {.latency = hist_new(),
                                    .steady = {.steady = true},
                                    .cpu_quota_cores = 0.5,
                                    .cpu_cores = 0.46};
    hist_record_many(result.latency, 1000, 5);
    use("", 1);
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 0);
    result.cpu_cores = 0.44;
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 1u << REASON_CPU_SHORT);
    result.cpu_quota_cores = 2; /* one process need not fill two cores */
    result.cpu_cores = 1;
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 0);
    cell.procs = 2;
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 1u << REASON_CPU_SHORT);
    cell.procs = 1;
    settings.min_steps = 6;
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 1u << REASON_TOO_FEW);
    settings.min_steps = 1;
    settings.uuid = "MIG-1";
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons,
                     1u << REASON_WRONG_DEVICE);
    result.steady.steady = false;
    snprintf(result.ready.visible, sizeof result.ready.visible, "MIG-1");
    assert_int_equal(measure_judge(&cell, &settings, &result).reasons, 1u << REASON_UNSTEADY);
    measure_result_done(&result);
}

static void repetitions_are_merged(void **state)
{
    (void)state;
    struct measure_result result;
    struct error err;
    use(READY STEPS DONE, 1);
    settings.ready_timeout_ns = settings.silence_timeout_ns = 20000000000;
    if (measure_repeated(&cell, &settings, 3, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.repetitions_rps.count, 3);
    assert_true(hist_count(result.latency) >= 15);
    assert_float_equal(result.throughput_rps, 4000, 1);
    measure_result_done(&result);
}

static void quotas(void **state)
{
    (void)state;
    const struct mig_board *a100 = mig_board_find("a100-40gb"),
                           *a30 = mig_board_find("a30-24gb");
    const struct mig_board *t4 = mig_board_find("t4-16gb");
    assert_float_equal(measure_cpu_quota(a100, mig_profile_find(a100, "3g"), 1), 3.0 / 7,
                       1e-12);
    assert_float_equal(measure_cpu_quota(a100, mig_profile_find(a100, "7g"), 2), 2, 1e-12);
    assert_float_equal(measure_cpu_quota(a30, mig_profile_find(a30, "1g"), 1), 0.25, 1e-12);
    assert_float_equal(measure_cpu_quota(t4, mig_profile_find(t4, "whole"), 1.5), 1.5, 1e-12);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_become_figures),
        cmocka_unit_test(each_failure_has_its_status),
        cmocka_unit_test(ctrl_c_interrupts),
        cmocka_unit_test(wrong_outputs_are_seen),
        cmocka_unit_test(verdicts_of_the_slice),
        cmocka_unit_test(repetitions_are_merged),
        cmocka_unit_test(quotas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
