/* SPDX-License-Identifier: Apache-2.0
 *
 * See autopilot.h.
 */
#include "runtime/autopilot.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "plan/run.h"

enum { BISECTIONS = 7, MINUTES_OF_DAY = 24 * 60 };
#define LEAST_FACTOR 0.01
#define TOLERANCE    1e-9

/* "22:30" and then `end`, as minutes of the day (24:00 is its end); -1 for anything else. */
static int minutes(const char *text, char end)
{
    for (int i = 0; i < 5; i++)
        if (i == 2 ? text[i] != ':' : text[i] < '0' || text[i] > '9')
            return -1;
    int hour = (text[0] - '0') * 10 + text[1] - '0';
    int minute = (text[3] - '0') * 10 + text[4] - '0';
    int total = hour * 60 + minute;
    return text[5] == end && minute < 60 && total <= MINUTES_OF_DAY ? total : -1;
}

int autopilot_hours_parse(const char *text, struct autopilot_hours *ret_hours,
                          struct error *err)
{
    int from = minutes(text, '-');
    const char *dash = strchr(text, '-');
    int to = dash ? minutes(dash + 1, '\0') : -1;
    if (from < 0 || to < 0 || from >= MINUTES_OF_DAY)
        return error_set(err, E_USAGE, "quiet hours '%s': expected HH:MM-HH:MM", text);
    *ret_hours = (struct autopilot_hours){from, to};
    return 0;
}

static bool is_quiet(const struct autopilot_settings *settings, int minute)
{
    for (size_t i = 0; i < settings->quiet.count; i++) {
        const struct autopilot_hours *hours = &settings->quiet.data[i];
        bool after = minute >= hours->from_minute, before = minute < hours->to_minute;
        if (hours->from_minute <= hours->to_minute ? after && before : after || before)
            return true;
    }
    return false;
}

void autopilot_init(struct autopilot *autopilot, const struct autopilot_settings *settings,
                    struct service_set *services, const struct measurement_set *rows)
{
    size_t count = services->services.count;
    *autopilot = (struct autopilot){.settings = *settings, .services = services, .rows = rows};
    autopilot->stated_rps = xcalloc(count, sizeof(double));
    autopilot->forecast_rps = xcalloc(count, sizeof(double));
    for (int k = 0; k < 2; k++)
        autopilot->recent_rps[k] = xcalloc(count, sizeof(double));
    for (size_t i = 0; i < count; i++) {
        autopilot->stated_rps[i] = services->services.data[i].rate_rps;
        autopilot->recent_rps[0][i] = autopilot->recent_rps[1][i] = NAN;
    }
}

void autopilot_done(struct autopilot *autopilot)
{
    free(autopilot->stated_rps);
    free(autopilot->forecast_rps);
    free(autopilot->recent_rps[0]);
    free(autopilot->recent_rps[1]);
    *autopilot = (struct autopilot){0};
}

void autopilot_decision_done(struct autopilot_decision *decision)
{
    plan_done(&decision->plan);
    str_done(&decision->reason);
}

/* ---- forecast --------------------------------------------------------------------- */

static double forecast(const struct autopilot *autopilot, size_t service)
{
    double least = autopilot->settings.least_share * autopilot->stated_rps[service];
    double now = autopilot->recent_rps[0][service];
    double before = autopilot->recent_rps[1][service];
    if (isnan(now)) /* nothing was seen yet: what was stated */
        return autopilot->stated_rps[service];
    if (isnan(before))
        before = now;
    double rate = fmax(fmax(now, before), now + fmax(0, now - before));
    return fmax(least, (1 + autopilot->settings.headroom) * rate);
}

void autopilot_observe(struct autopilot *autopilot, const double *rates_rps)
{
    for (size_t i = 0; i < autopilot->services->services.count; i++) {
        if (isnan(rates_rps[i]))
            continue;
        assert(rates_rps[i] >= 0);
        autopilot->recent_rps[1][i] = autopilot->recent_rps[0][i];
        autopilot->recent_rps[0][i] = rates_rps[i];
    }
    for (size_t i = 0; i < autopilot->services->services.count; i++)
        autopilot->forecast_rps[i] = forecast(autopilot, i);
}

/* ---- planning --------------------------------------------------------------------- */

/* A plan for the forecast, each service's times its factor. A plan that leaves a service out
 * counts as infeasible: cutting is done here, not there. */
static int plan_for(struct autopilot *autopilot, const double *factors,
                    const struct plan *current, struct plan *ret_plan, struct error *err)
{
    struct service_set *set = autopilot->services;
    for (size_t i = 0; i < set->services.count; i++)
        set->services.data[i].rate_rps = autopilot->forecast_rps[i] * factors[i];
    struct plan_request request = plan_request_default(set, autopilot->rows);
    request.from = current;
    request.max_moves = autopilot->settings.max_moves;
    int failed = plan_run(&request, ret_plan, err);
    if (!failed && ret_plan->infeasible.count > 0)
        ret_plan->status = PLAN_INFEASIBLE;
    return failed;
}

static int lowest_priority_above(const struct service_set *set, int priority)
{
    int lowest = INT_MAX;
    for (size_t i = 0; i < set->services.count; i++)
        if (set->services.data[i].priority > priority &&
            set->services.data[i].priority < lowest)
            lowest = set->services.data[i].priority;
    return lowest;
}

static void set_factor(const struct service_set *set, int priority, double factor,
                       double *factors)
{
    for (size_t i = 0; i < set->services.count; i++)
        if (set->services.data[i].priority == priority)
            factors[i] = factor;
}

/* Whether the plan with these factors is feasible; it replaces *ret_plan when it is. */
static int try_factors(struct autopilot *autopilot, const double *factors,
                       const struct plan *current, struct plan *ret_plan, bool *ret_feasible,
                       struct error *err)
{
    struct plan plan;
    plan_init(&plan);
    int failed = plan_for(autopilot, factors, current, &plan, err);
    *ret_feasible = !failed && plan.status != PLAN_INFEASIBLE;
    if (*ret_feasible) {
        plan_done(ret_plan);
        *ret_plan = plan;
    } else {
        plan_done(&plan);
    }
    return failed;
}

/* Cuts the lowest priority as little as is needed; when cutting it whole does not do, the next
 * one too. *ret_plan stays infeasible when nothing does. */
static int degrade(struct autopilot *autopilot, const struct plan *current, double *factors,
                   struct plan *ret_plan, struct error *err)
{
    const struct service_set *set = autopilot->services;
    bool feasible = false;
    int failed = 0;
    for (int priority = lowest_priority_above(set, INT_MIN); priority != INT_MAX && !feasible;
         priority = lowest_priority_above(set, priority)) {
        double low = LEAST_FACTOR, high = 1;
        set_factor(set, priority, low, factors);
        failed = try_factors(autopilot, factors, current, ret_plan, &feasible, err);
        if (failed)
            return failed;
        for (int i = 0; feasible && i < BISECTIONS; i++) {
            bool better;
            double middle = (low + high) / 2;
            set_factor(set, priority, middle, factors);
            failed = try_factors(autopilot, factors, current, ret_plan, &better, err);
            if (failed)
                return failed;
            *(better ? &low : &high) = middle;
        }
        set_factor(set, priority, low, factors);
    }
    return 0;
}

/* ---- deciding --------------------------------------------------------------------- */

static double promised_rps(const struct plan *plan, const char *service)
{
    int index = plan_find_service(plan, service);
    return index < 0 ? 0 : plan->services.data[index].provided_rps;
}

/* Appends each service whose forecast is above what the plan promises; how many. */
static int add_short(const struct autopilot *autopilot, const struct plan *current,
                     const double *factors, struct str *text)
{
    int count = 0;
    for (size_t i = 0; i < autopilot->services->services.count; i++) {
        const char *name = autopilot->services->services.data[i].name;
        double promised = promised_rps(current, name);
        double wanted = autopilot->forecast_rps[i] * factors[i];
        if (wanted <= promised * (1 + TOLERANCE))
            continue;
        str_addf(text, "%s%s: forecast %.1f above the %.1f promised", count++ ? "; " : "", name,
                 wanted, promised);
    }
    return count;
}

static void add_degraded(const struct autopilot *autopilot, const double *factors,
                         struct str *text)
{
    for (size_t i = 0; i < autopilot->services->services.count; i++) {
        const struct service *service = &autopilot->services->services.data[i];
        if (factors[i] < 1)
            str_addf(text, "; the fleet is too small: %s (priority %d) is given %.1f of %.1f",
                     service->name, service->priority, autopilot->forecast_rps[i] * factors[i],
                     autopilot->forecast_rps[i]);
    }
}

/* The verdict on a feasible candidate. */
static void judge(struct autopilot *autopilot, const struct plan *current,
                  const double *factors, struct autopilot_decision *decision)
{
    CLEANUP(str_done) struct str lacking = STR_EMPTY;
    double saving = current->cost - decision->plan.cost;
    decision->verdict = AUTOPILOT_KEEP;
    if (add_short(autopilot, current, factors, &lacking) > 0) {
        autopilot->cheaper_looks = 0;
        decision->verdict = AUTOPILOT_CHANGE;
        str_addf(&decision->reason, "grow: %s", lacking.bytes);
    } else if (saving <= TOLERANCE * fabs(current->cost)) {
        autopilot->cheaper_looks = 0;
        str_add(&decision->reason, "the plan holds the forecast at the least cost");
    } else if (++autopilot->cheaper_looks < autopilot->settings.hold) {
        str_addf(&decision->reason, "cost could fall by %g, seen %d of %d times", saving,
                 autopilot->cheaper_looks, autopilot->settings.hold);
    } else {
        autopilot->cheaper_looks = 0;
        decision->verdict = AUTOPILOT_CHANGE;
        str_addf(&decision->reason, "shrink: cost falls by %g", saving);
    }
    add_degraded(autopilot, factors, &decision->reason);
}

static void keep_infeasible(const struct plan *plan, struct autopilot_decision *decision)
{
    str_add(&decision->reason, "no plan within the budget holds the forecast");
    for (size_t i = 0; i < plan->infeasible.count; i++)
        str_addf(&decision->reason, "%s %s (%s)", i ? "," : ":",
                 plan->infeasible.data[i].service, plan->infeasible.data[i].reason);
    decision->verdict = AUTOPILOT_WAIT;
}

int autopilot_decide(struct autopilot *autopilot, const struct plan *current, int minute,
                     struct autopilot_decision *ret_decision, struct error *err)
{
    size_t count = autopilot->services->services.count;
    CLEANUP(free_ptr) double *factors = xcalloc(count, sizeof *factors);
    struct autopilot_decision decision = {.reason = STR_EMPTY};
    assert(minute >= 0 && minute < MINUTES_OF_DAY);
    for (size_t i = 0; i < count; i++)
        factors[i] = 1;
    plan_init(&decision.plan);
    int failed = plan_for(autopilot, factors, current, &decision.plan, err);
    if (!failed && decision.plan.status == PLAN_INFEASIBLE) {
        decision.degraded = true;
        failed = degrade(autopilot, current, factors, &decision.plan, err);
    }
    if (failed) {
        autopilot_decision_done(&decision);
        return failed;
    }
    if (decision.plan.status == PLAN_INFEASIBLE)
        keep_infeasible(&decision.plan, &decision);
    else
        judge(autopilot, current, factors, &decision);
    if (decision.verdict == AUTOPILOT_CHANGE && is_quiet(&autopilot->settings, minute)) {
        decision.verdict = AUTOPILOT_WAIT;
        str_add(&decision.reason, "; not in quiet hours");
    }
    *ret_decision = decision;
    return 0;
}
