/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche autopilot`: watches what the running plan is asked for, and changes it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plan_inputs.h"
#include "cli/running.h"
#include "runtime/autopilot.h"
#include "runtime/control.h"

struct autopilot_options {
    const char *state_dir, *services, *measurements, *fleet;
    struct option_list quiet;
    double interval, headroom, least_share;
    long long hold, max_moves, spare, looks;
    bool dry_run, json;
};

static const struct option_spec options[] = {
    OPTION_TEXT_REQUIRED('s', "services", struct autopilot_options, services, "FILE",
                         "services and fleet; the rates are the first forecast"),
    OPTION_TEXT_REQUIRED('m', "measurements", struct autopilot_options, measurements, "FILE",
                         "measurements"),
    OPTION_TEXT(0, "fleet", struct autopilot_options, fleet, "FLEET", NULL,
                "GPUs by board instead of the services file's fleet"),
    OPTION_NUMBER('i', "interval", struct autopilot_options, interval, "SECONDS", "60", 0.5,
                  86400, "time between two looks"),
    OPTION_INT(0, "looks", struct autopilot_options, looks, "N", "0", 0, 1e9,
               "end after so many; 0: at Ctrl-C"),
    OPTION_NUMBER(0, "headroom", struct autopilot_options, headroom, "SHARE", "0.15", 0, 10,
                  "what is added to the rates seen"),
    OPTION_NUMBER(0, "least-share", struct autopilot_options, least_share, "SHARE", "0.05",
                  0.001, 1, "share of the stated rate that is always planned for"),
    OPTION_INT(0, "hold", struct autopilot_options, hold, "N", "3", 1, 1000,
               "looks in a row in which a plan must be cheaper before it is taken"),
    OPTION_INT(0, "max-moves", struct autopilot_options, max_moves, "N", "-1", -1, 1e9,
               "most instances that a change may move; -1: any number"),
    OPTION_INT(0, "spare", struct autopilot_options, spare, "N", "0", 0, 10000,
               "GPUs that a change may borrow"),
    OPTION_LIST(0, "quiet", struct autopilot_options, quiet, "HH:MM-HH:MM",
                "hours (local time) in which nothing is changed"),
    OPTION_FLAG('n', "dry-run", struct autopilot_options, dry_run,
                "say what would be done and why; change nothing"),
    OPTION_FLAG(0, "json", struct autopilot_options, json, "one JSON object a look"),
    RUNNING_STATE_OPTION(struct autopilot_options),
};

/* What one look needs, beside the core. */
struct pilot {
    const struct autopilot_options *given;
    char *folder;
    struct autopilot core;
    struct service_set *services;
    double *requests; /* counted at the last look; NAN: none */
    double *rates;
    int64_t looked_ns;
};

/* NAN: none are counted, as of training. */
static double requests_of(const json_t *service)
{
    const json_t *requests = json_object_get(service, "requests");
    return json_is_number(requests) ? json_number_value(requests) : NAN;
}

/* Arrival rates since the last look, out of HAProxy's counters. */
static void take_rates(struct pilot *pilot, const json_t *status)
{
    int64_t now_ns = clock_now_ns(clock_real());
    double seconds = (double)(now_ns - pilot->looked_ns) / 1e9;
    const json_t *list = json_object_get(status, "services");
    for (size_t i = 0; i < pilot->services->services.count; i++) {
        double counted = NAN;
        size_t index;
        json_t *service;
        json_array_foreach(list, index, service)
        {
            const char *name = json_string_value(json_object_get(service, "name"));
            if (name && strcmp(name, pilot->services->services.data[i].name) == 0)
                counted = requests_of(service);
        }
        double rate = (counted - pilot->requests[i]) / seconds;
        pilot->rates[i] = rate >= 0 ? rate : NAN; /* a counter that began anew tells nothing */
        pilot->requests[i] = counted;
    }
    pilot->looked_ns = now_ns;
}

static const char *verdict_name(const struct pilot *pilot, enum autopilot_verdict verdict)
{
    if (verdict == AUTOPILOT_CHANGE)
        return pilot->given->dry_run ? "would change" : "change";
    return verdict == AUTOPILOT_WAIT ? "wait" : "keep";
}

static int print_look(const struct pilot *pilot, const struct autopilot_decision *decision,
                      struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *rates = json_object();
    char time[21];
    clock_wall_text(time);
    str_addf(&text, "%s %s: %s (", time, verdict_name(pilot, decision->verdict),
             decision->reason.bytes);
    for (size_t i = 0; i < pilot->services->services.count; i++) {
        const char *name = pilot->services->services.data[i].name;
        double rate = pilot->core.recent_rps[0][i];
        str_addf(&text, "%s%s %.1f", i ? ", " : "", name, isnan(rate) ? 0 : rate);
        json_object_set_new(rates, name,
                            json_pack("{s:o, s:f}", "rate_rps",
                                      isnan(rate) ? json_null() : json_real(rate),
                                      "forecast_rps", pilot->core.forecast_rps[i]));
    }
    str_add(&text, " req/s)\n");
    if (pilot->given->json) {
        CLEANUP(json_decref_ptr)
        json_t *json =
            json_pack("{s:s, s:s, s:s, s:b, s:O}", "time", time, "verdict",
                      verdict_name(pilot, decision->verdict), "reason", decision->reason.bytes,
                      "degraded", decision->degraded, "services", rates);
        str_clear(&text);
        json_write_line(json, &text);
        str_add_char(&text, '\n');
    }
    int failed = output_write(NULL, &text, err);
    fflush(stdout);
    return failed;
}

static int carry_out(const struct pilot *pilot, const struct plan *plan, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *answer = NULL;
    CLEANUP(json_decref_ptr)
    json_t *question = json_pack("{s:s, s:o, s:i}", "do", "apply", "plan", plan_to_json(plan),
                                 "spare", (int)pilot->given->spare);
    int failed = control_ask(pilot->folder, question, &answer, err);
    if (failed && (err->code == E_NO || err->code == E_BUSY || err->code == E_MISSING)) {
        fprintf(stderr, "tranche autopilot: not changed: %s\n", err->text);
        err->code = E_NONE;
        return 0;
    }
    return failed;
}

static int minute_of_day(void)
{
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    return local.tm_hour * 60 + local.tm_min;
}

static int look(struct pilot *pilot, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *status = NULL;
    CLEANUP(plan_done) struct plan current;
    struct autopilot_decision decision;
    plan_init(&current);
    int failed = running_ask(pilot->folder, "status", &status, err);
    if (failed)
        return failed;
    take_rates(pilot, status);
    const char *phase = json_string_value(json_object_get(status, "phase"));
    if (!phase || strcmp(phase, "serving") != 0)
        return 0; /* a change is under way: its traffic is not judged */
    autopilot_observe(&pilot->core, pilot->rates);
    failed = plan_from_json("running plan", json_object_get(status, "plan"), &current, err);
    if (!failed)
        failed = autopilot_decide(&pilot->core, &current, minute_of_day(), &decision, err);
    if (failed)
        return failed;
    failed = print_look(pilot, &decision, err);
    if (!failed && decision.verdict == AUTOPILOT_CHANGE && !pilot->given->dry_run)
        failed = carry_out(pilot, &decision.plan, err);
    autopilot_decision_done(&decision);
    return failed;
}

static int watch(struct pilot *pilot, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *status = NULL;
    int failed = running_ask(pilot->folder, "status", &status, err);
    if (failed)
        return failed;
    take_rates(pilot, status); /* where counting begins */
    running_catch_signals();
    for (long long i = 0; pilot->given->looks == 0 || i < pilot->given->looks; i++) {
        if (!running_sleep(pilot->given->interval))
            return 0;
        failed = look(pilot, err);
        if (failed)
            return failed;
    }
    return 0;
}

static int read_settings(const struct autopilot_options *given,
                         struct autopilot_settings *settings, struct error *err)
{
    *settings = (struct autopilot_settings){.headroom = given->headroom,
                                            .least_share = given->least_share,
                                            .hold = (int)given->hold,
                                            .max_moves = (int)given->max_moves};
    for (size_t i = 0; i < given->quiet.count; i++) {
        struct autopilot_hours hours;
        int failed = autopilot_hours_parse(given->quiet.items[i], &hours, err);
        if (failed)
            return failed;
        vec_add(&settings->quiet, hours);
    }
    return 0;
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct autopilot_options *given = parsed;
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(free_ptr) char *folder = running_folder(given->state_dir);
    struct autopilot_settings settings = {0};
    (void)arguments;
    int failed = read_settings(given, &settings, err);
    if (!failed)
        failed =
            plan_inputs_read(&inputs, given->services, given->measurements, given->fleet, err);
    if (!failed) {
        size_t count = inputs.services.services.count;
        CLEANUP(free_ptr) double *requests = xcalloc(count, sizeof(double));
        CLEANUP(free_ptr) double *rates = xcalloc(count, sizeof(double));
        struct pilot pilot = {.given = given,
                              .folder = folder,
                              .services = &inputs.services,
                              .requests = requests,
                              .rates = rates};
        for (size_t i = 0; i < count; i++)
            requests[i] = NAN;
        autopilot_init(&pilot.core, &settings, &inputs.services, &inputs.rows);
        failed = watch(&pilot, err);
        autopilot_done(&pilot.core);
    }
    vec_done(&settings.quiet);
    return failed;
}

const struct command cmd_autopilot = {
    .name = "autopilot",
    .summary = "follow demand: re-plan and change the running plan",
    .arguments_max = 0,
    .description =
        "Looks at the arrival rates every --interval, forecasts the next from the last two "
        "(the higher of both, a rise goes on, --headroom on top), and plans for the forecast "
        "from the running plan with as few moves as the least cost allows. It grows at once, "
        "when a forecast is above what is promised, and shrinks when that was cheaper --hold "
        "times in a row. Demand beyond the fleet is cut by priority, lowest first, and it says "
        "so. Each look is one line with the reason.",
    .examples =
        "tranche autopilot -s services.yaml -m measurements.csv --dry-run\n"
        "tranche autopilot -s services.yaml -m measurements.csv --max-moves 4 --spare 1 "
        "--quiet 22:00-06:00",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct autopilot_options),
    .run = run,
};
