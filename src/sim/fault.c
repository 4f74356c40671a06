/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fault.h"

#include <assert.h>
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/str.h"
#include "base/vec.h"

enum { WORDS_MAX = 16, WORD_SIZE = 80 };
static const long long count_max = 1000000000, hang_max_ms = 3600000;

enum turn { TURN_NTH, TURN_FROM, TURN_EVERY };

struct rule {
    char pattern[WORD_SIZE]; /* without "nvml" */
    int gpu;                 /* −1: any */
    enum turn turn;
    long long n;
    long long seen; /* matching calls so far */
    struct sim_fault_effects effects;
};

struct sim_faults {
    VEC(struct rule) rules;
};

static const struct {
    const char *name;
    nvmlReturn_t code;
} codes[] = {
#define X(name) {#name, name},
    NVML_RETURNS(X)
#undef X
};

static const char *without_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncasecmp(text, prefix, length) == 0 ? text + length : text;
}

bool sim_return_parse(const char *text, nvmlReturn_t *ret_code)
{
    const char *bare = without_prefix(without_prefix(text, "NVML_"), "ERROR_");
    long long number = -1;
    bool numeric = text_to_int(text, 0, 999, &number);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *name = without_prefix(without_prefix(codes[i].name, "NVML_"), "ERROR_");
        if (numeric ? (long long)codes[i].code != number : strcasecmp(name, bare) != 0)
            continue;
        *ret_code = codes[i].code;
        return true;
    }
    return false;
}

const char *sim_return_name(nvmlReturn_t code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "NVML_ERROR_?";
}

/* ---- parsing ---- */

struct words {
    int count, next;
    char text[WORDS_MAX][WORD_SIZE];
};

/* Splits at blanks; ":" and "," stand alone. */
static int split(const char *rule, struct words *ret_words, struct error *err)
{
    *ret_words = (struct words){0};
    for (const char *c = rule; *c;) {
        if (isspace((unsigned char)*c)) {
            c++;
            continue;
        }
        size_t length = strchr(":,", *c) ? 1 : strcspn(c, ":, \t\r\n");
        if (ret_words->count == WORDS_MAX || length >= WORD_SIZE)
            return error_set(err, E_INPUT, "fault plan: '%.60s' is too long", rule);
        snprintf(ret_words->text[ret_words->count++], WORD_SIZE, "%.*s", (int)length, c);
        c += length;
    }
    return 0;
}

static const char *peek(const struct words *words)
{
    return words->next < words->count ? words->text[words->next] : "";
}

static bool take(struct words *words, const char *word)
{
    if (strcasecmp(peek(words), word) != 0)
        return false;
    words->next++;
    return true;
}

static int take_number(struct words *words, long long minimum, long long *ret,
                       struct error *err)
{
    if (!text_to_int(peek(words), minimum, count_max, ret))
        return error_set(err, E_INPUT, "fault plan: '%s' where a number from %lld is expected",
                         peek(words), minimum);
    words->next++;
    return 0;
}

static int parse_turn(struct words *words, struct rule *rule, struct error *err)
{
    if (take(words, "every")) {
        rule->turn = TURN_EVERY;
        return 0;
    }
    bool from = take(words, "from");
    if (!from && !take(words, "nth"))
        return 0;
    rule->turn = from ? TURN_FROM : TURN_NTH;
    return take_number(words, 1, &rule->n, err);
}

static int parse_when(struct words *words, struct rule *rule, struct error *err)
{
    *rule = (struct rule){.gpu = -1, .turn = TURN_NTH, .n = 1};
    int status = 0;
    if (take(words, "call")) {
        snprintf(rule->pattern, sizeof rule->pattern, "*");
        status = take_number(words, 1, &rule->n, err);
    } else {
        snprintf(rule->pattern, sizeof rule->pattern, "%s",
                 without_prefix(peek(words), "nvml"));
        words->next++;
    }
    if (status == 0 && take(words, "gpu")) {
        long long gpu = 0;
        status = take_number(words, 0, &gpu, err);
        rule->gpu = (int)gpu;
    }
    if (status == 0)
        status = parse_turn(words, rule, err);
    if (status == 0 && !take(words, ":"))
        status = error_set(err, E_INPUT, "fault plan: '%s' where ':' is expected", peek(words));
    return status;
}

static int parse_hang(struct words *words, int64_t *ret_ms, struct error *err)
{
    char digits[WORD_SIZE];
    const char *text = peek(words);
    size_t length = strspn(text, "0123456789");
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    long long scale = strcmp(text + length, "s") == 0    ? 1000
                      : strcmp(text + length, "ms") == 0 ? 1
                                                         : 0;
    long long value = 0;
    if (scale == 0 || !text_to_int(digits, 0, hang_max_ms / scale, &value))
        return error_set(err, E_INPUT,
                         "fault plan: '%s' where a time up to an hour is expected (250ms, 2s)",
                         text);
    *ret_ms = value * scale;
    words->next++;
    return 0;
}

static int parse_effect(struct words *words, struct sim_fault_effects *effects,
                        struct error *err)
{
    if (take(words, "hang"))
        return parse_hang(words, &effects->hang_ms, err);
    if (take(words, "kill")) {
        bool *when = take(words, "after")    ? &effects->kill_after
                     : take(words, "commit") ? &effects->kill_commit
                                             : &effects->kill_before;
        *when = true;
        return 0;
    }
    if (!take(words, "error"))
        return error_set(err, E_INPUT, "fault plan: '%s' where error, hang or kill is expected",
                         peek(words));
    nvmlReturn_t code = NVML_SUCCESS;
    if (!sim_return_parse(peek(words), &code) || code == NVML_SUCCESS)
        return error_set(err, E_INPUT, "fault plan: '%s' is no error code of NVML",
                         peek(words));
    words->next++;
    if (take(words, "after"))
        effects->error_after = code;
    else
        effects->error_before = code;
    return 0;
}

static int parse_rule(const char *text, struct sim_faults *faults, struct error *err)
{
    struct words words;
    int status = split(text, &words, err);
    if (status < 0 || words.count == 0)
        return status;
    struct rule rule;
    status = parse_when(&words, &rule, err);
    do
        status = status == 0 ? parse_effect(&words, &rule.effects, err) : status;
    while (status == 0 && take(&words, ","));
    if (status == 0 && words.next < words.count)
        status = error_set(err, E_INPUT, "fault plan: '%s' is one word too many", peek(&words));
    if (status == 0)
        vec_add(&faults->rules, rule);
    return status;
}

int sim_faults_parse(const char *text, struct sim_faults **ret_faults, struct error *err)
{
    CLEANUP(sim_faults_free_ptr) struct sim_faults *faults = xcalloc(1, sizeof *faults);
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *line_state = NULL;
    for (char *line = strtok_r(copy, "\n", &line_state); line;
         line = strtok_r(NULL, "\n", &line_state)) {
        line[strcspn(line, "#")] = '\0';
        char *rule_state = NULL;
        for (char *rule = strtok_r(line, ";", &rule_state); rule;
             rule = strtok_r(NULL, ";", &rule_state)) {
            int status = parse_rule(rule, faults, err);
            if (status < 0)
                return status;
        }
    }
    *ret_faults = STEAL(faults);
    return 0;
}

void sim_faults_free(struct sim_faults *faults)
{
    if (!faults)
        return;
    vec_done(&faults->rules);
    free(faults);
}

/* ---- matching ---- */

/* "nvmlInit_v2" matches "nvmlInit_v2" and "Init"; "nvmlInit" matches both versions. */
static bool matches(const struct rule *rule, const char *function, int gpu)
{
    if (rule->gpu >= 0 && rule->gpu != gpu)
        return false;
    const char *name = without_prefix(function, "nvml");
    if (fnmatch(rule->pattern, name, 0) == 0)
        return true;
    char bare[WORD_SIZE];
    size_t length = strlen(name);
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v')
        length -= 3;
    snprintf(bare, sizeof bare, "%.*s", (int)length, name);
    return fnmatch(rule->pattern, bare, 0) == 0;
}

static bool is_turn(const struct rule *rule)
{
    switch (rule->turn) {
    case TURN_NTH:
        return rule->seen == rule->n;
    case TURN_FROM:
        return rule->seen >= rule->n;
    case TURN_EVERY:
        return true;
    }
    return false;
}

static void add_effects(struct sim_fault_effects *sum, const struct sim_fault_effects *more)
{
    sum->hang_ms += more->hang_ms;
    sum->kill_before |= more->kill_before;
    sum->kill_commit |= more->kill_commit;
    sum->kill_after |= more->kill_after;
    if (sum->error_before == NVML_SUCCESS)
        sum->error_before = more->error_before;
    if (sum->error_after == NVML_SUCCESS)
        sum->error_after = more->error_after;
}

struct sim_fault_effects sim_faults_next(struct sim_faults *faults, const char *function,
                                         int gpu)
{
    struct sim_fault_effects sum = {0};
    for (size_t i = 0; faults && i < faults->rules.count; i++) {
        struct rule *rule = &faults->rules.data[i];
        if (!matches(rule, function, gpu))
            continue;
        rule->seen++;
        assert(rule->seen > 0);
        if (is_turn(rule))
            add_effects(&sum, &rule->effects);
    }
    return sum;
}
