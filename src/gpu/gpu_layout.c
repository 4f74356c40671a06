/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts with compute instances as values, and their text; see gpu_layout.h.
 */
#include "gpu/gpu_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct gpu_slice gpu_slice_default(const struct mig_board *board, struct mig_instance gi)
{
    struct gpu_slice slice = {.gi = gi};

    assert(gi.profile >= 0 && gi.profile < board->profile_count);
    gpu_slice_add_ci(&slice, board->profiles[gi.profile].compute_slices);
    return slice;
}

void gpu_slice_add_ci(struct gpu_slice *slice, int ci_slices)
{
    int i = slice->ci_count++;

    assert(slice->ci_count <= GPU_CI_MAX && ci_slices > 0);
    for (; i > 0 && slice->ci_slices[i - 1] < ci_slices; i--)
        slice->ci_slices[i] = slice->ci_slices[i - 1];
    slice->ci_slices[i] = (uint8_t)ci_slices;
}

bool gpu_slice_same_cis(const struct gpu_slice *a, const struct gpu_slice *b)
{
    assert(a->ci_count <= GPU_CI_MAX && b->ci_count <= GPU_CI_MAX);
    return a->ci_count == b->ci_count &&
           !memcmp(a->ci_slices, b->ci_slices, (size_t)a->ci_count);
}

static int most_of_width(const struct mig_profile *profile, int ci_slices)
{
    assert(ci_slices > 0);
    for (int i = 0; i < profile->ci_profile_count; i++)
        if (profile->ci_profiles[i].compute_slices == ci_slices)
            return profile->ci_profiles[i].max_in_gi;
    return 0;
}

bool gpu_slice_has_room(const struct mig_board *board, const struct gpu_slice *slice,
                        int ci_slices)
{
    const struct mig_profile *profile = &board->profiles[slice->gi.profile];
    int sum = ci_slices, same = 1;

    assert(ci_slices > 0);
    for (int i = 0; i < slice->ci_count; i++) {
        sum += slice->ci_slices[i];
        same += slice->ci_slices[i] == ci_slices;
    }
    return slice->ci_count < GPU_CI_MAX && sum <= profile->compute_slices &&
           same <= most_of_width(profile, ci_slices);
}

static void assert_slice(const struct mig_board *board, const struct gpu_slice *slice)
{
    int sum = 0;

    assert(slice->gi.profile >= 0 && slice->gi.profile < board->profile_count);
    assert(slice->gi.start >= MIG_START_ANY && slice->gi.start < MIG_UNITS_MAX);
    assert(slice->ci_count >= 0 && slice->ci_count <= GPU_CI_MAX);
    for (int i = 0; i < slice->ci_count; i++) {
        assert(slice->ci_slices[i] > 0 &&
               (!i || slice->ci_slices[i - 1] >= slice->ci_slices[i]));
        sum += slice->ci_slices[i];
    }
    assert(sum <= board->profiles[slice->gi.profile].compute_slices);
    (void)sum;
}

static struct gpu_slice *find_room(const struct mig_board *board, struct gpu_layout *layout,
                                   int profile, int ci_slices)
{
    assert(profile >= 0 && profile < board->profile_count && ci_slices > 0);
    for (int i = 0; i < layout->count; i++)
        if (layout->slices[i].gi.profile == profile &&
            gpu_slice_has_room(board, &layout->slices[i], ci_slices))
            return &layout->slices[i];
    return NULL;
}

int gpu_layout_add_devices(const struct mig_board *board, struct gpu_layout *layout,
                           struct gpu_device_request request, struct error *err)
{
    const struct mig_profile *profile = &board->profiles[request.profile];
    int width = request.ci_slices ? request.ci_slices : profile->compute_slices;

    assert(request.profile >= 0 && request.profile < board->profile_count);
    if (!most_of_width(profile, width))
        return error_set(err, E_INPUT, "%s has no compute instance of %d slices", profile->name,
                         width);
    for (int i = 0; i < request.count; i++) {
        struct gpu_slice *slice = find_room(board, layout, request.profile, width);
        if (!slice && layout->count == MIG_INSTANCES_MAX)
            return error_set(err, E_NO,
                             "%d of %s and what else is asked for are more than the "
                             "%d instances of %s",
                             request.count, profile->name, board->max_instances, board->slug);
        if (!slice) {
            slice = &layout->slices[layout->count++];
            *slice = (struct gpu_slice){
                .gi = {.profile = (int8_t)request.profile, .start = MIG_START_ANY}};
        }
        gpu_slice_add_ci(slice, width);
    }
    return 0;
}

/* Starts, then profiles, then compute instances: a total order of different slices. */
static int compare_slices(const void *a, const void *b)
{
    const struct gpu_slice *x = a, *y = b;

    if (x->gi.start != y->gi.start)
        return x->gi.start - y->gi.start;
    if (x->gi.profile != y->gi.profile)
        return x->gi.profile - y->gi.profile;
    if (x->ci_count != y->ci_count)
        return x->ci_count - y->ci_count;
    return memcmp(x->ci_slices, y->ci_slices, sizeof x->ci_slices);
}

void gpu_layout_assert(const struct mig_board *board, const struct gpu_layout *layout)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < layout->count; i++) {
        assert_slice(board, &layout->slices[i]);
        assert(!i || compare_slices(&layout->slices[i - 1], &layout->slices[i]) <= 0);
    }
}

void gpu_layout_sort(struct gpu_layout *layout)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    qsort(layout->slices, (size_t)layout->count, sizeof layout->slices[0], compare_slices);
}

static bool same_slice(const struct gpu_slice *a, const struct gpu_slice *b)
{
    return a->gi.profile == b->gi.profile && a->gi.start == b->gi.start &&
           gpu_slice_same_cis(a, b);
}

bool gpu_layout_equal(const struct gpu_layout *a, const struct gpu_layout *b)
{
    assert(a && b);
    for (int i = 0; i < a->count && a->count == b->count; i++)
        if (!same_slice(&a->slices[i], &b->slices[i]))
            return false;
    return a->count == b->count;
}

/* Takes the first unused slice of `actual` that is what `wanted` asks for. */
static bool take_partner(const struct gpu_layout *actual, const struct gpu_slice *wanted,
                         unsigned *used)
{
    for (int i = 0; i < actual->count; i++) {
        const struct gpu_slice *slice = &actual->slices[i];
        if (*used >> i & 1 || slice->gi.profile != wanted->gi.profile ||
            !gpu_slice_same_cis(slice, wanted) ||
            (wanted->gi.start != MIG_START_ANY && wanted->gi.start != slice->gi.start))
            continue;
        *used |= 1U << i;
        return true;
    }
    return false;
}

bool gpu_layout_satisfies(const struct gpu_layout *actual, const struct gpu_layout *wanted)
{
    unsigned used = 0;

    /* Fixed starts choose first: an open one takes any partner that is left. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < wanted->count; i++)
            if ((wanted->slices[i].gi.start == MIG_START_ANY) == (pass == 1) &&
                !take_partner(actual, &wanted->slices[i], &used))
                return false;
    return actual->count == wanted->count;
}

void gpu_layout_instances(const struct gpu_layout *layout, struct mig_layout *ret)
{
    assert(layout->count <= MIG_INSTANCES_MAX);
    *ret = (struct mig_layout){.count = layout->count};
    for (int i = 0; i < layout->count; i++)
        ret->instances[i] = layout->slices[i].gi;
    mig_layout_sort(ret);
}

/* --- text --- */

static bool is_default(const struct mig_board *board, const struct gpu_slice *slice)
{
    return slice->ci_count == 1 &&
           slice->ci_slices[0] == board->profiles[slice->gi.profile].compute_slices;
}

void gpu_layout_format(const struct mig_board *board, const struct gpu_layout *layout,
                       struct str *text)
{
    if (!layout->count)
        str_add_char(text, '-');
    for (int i = 0; i < layout->count; i++) {
        const struct gpu_slice *slice = &layout->slices[i];
        str_addf(text, "%s%s", i ? " " : "", board->profiles[slice->gi.profile].name);
        if (slice->gi.start != MIG_START_ANY)
            str_addf(text, "@%d", slice->gi.start);
        if (is_default(board, slice))
            continue;
        str_add(text, slice->ci_count ? ":" : ":-");
        for (int j = 0; j < slice->ci_count; j++)
            str_addf(text, "%s%dc", j ? "+" : "", slice->ci_slices[j]);
    }
}

/* What one word says. */
struct word {
    char repeat[8];           /* "3x" or "" */
    char name[GPU_TEXT_SIZE]; /* profile */
    char start[8];            /* "@4" or "" */
    const char *cis;          /* behind the colon; NULL: none given */
};

static int bad_word(const char *word, const char *why, struct error *err)
{
    return error_set(
        err, E_INPUT,
        "layout entry \"%.60s\": %s; expected [COUNTx]PROFILE[@START][:WIDTHS], as "
        "in 3g.20gb@4, 3x1g or 3g@4:2c+1c",
        word, why);
}

static int split_word(const char *text, struct word *ret, struct error *err)
{
    struct word word = {.cis = strchr(text, ':')};
    size_t length = word.cis ? (size_t)(word.cis++ - text) : strlen(text);
    size_t digits = strspn(text, "0123456789");
    size_t skip = digits && text[digits] == 'x' ? digits + 1 : 0;
    const char *at = memchr(text, '@', length);
    size_t name = (at ? (size_t)(at - text) : length) - skip;
    size_t start = length - skip - name;

    if (skip >= sizeof word.repeat || name >= sizeof word.name || start >= sizeof word.start)
        return bad_word(text, "too long", err);
    memcpy(word.repeat, text, skip);
    memcpy(word.name, text + skip, name);
    memcpy(word.start, text + skip + name, start);
    *ret = word;
    return name ? 0 : bad_word(text, "there is no profile", err);
}

/* Reads "2c+1c" or "-" into *slice. */
static int read_widths(const struct mig_board *board, const char *word, const char *text,
                       struct gpu_slice *slice, struct error *err)
{
    slice->ci_count = 0;
    if (!strcmp(text, "-"))
        return 0;
    while (*text) {
        char *end;
        long width = strtol(text, &end, 10);
        if (end == text || *end != 'c' || (end[1] && end[1] != '+') || width < 1 ||
            width > GPU_CI_MAX)
            return bad_word(word, "the compute instances must read like 2c+1c, or -", err);
        if (!gpu_slice_has_room(board, slice, (int)width))
            return bad_word(word, "these compute instances do not fit the GPU instance", err);
        gpu_slice_add_ci(slice, (int)width);
        text = end + 1;
        if (*text == '+' && !*++text)
            return bad_word(word, "a width is missing after +", err);
    }
    return slice->ci_count ? 0 : bad_word(word, "no width after the colon", err);
}

/* "1c.3g.20gb": the width of a compute-instance device name, 0 for a plain name. */
static int device_width(const char **name)
{
    const char *text = *name;

    if (text[0] < '1' || text[0] > '9' || !text_starts_with(text + 1, "c."))
        return 0;
    *name += strlen("1c.");
    return text[0] - '0';
}

static int add_word(const struct live_board *live, const char *text, struct gpu_layout *layout,
                    struct error *err)
{
    struct word word = {0};
    struct mig_layout instances;
    int profile = -1;
    CLEANUP(str_done) struct str plain = STR_EMPTY;

    int r = split_word(text, &word, err);
    if (r)
        return r;
    const char *name = word.name;
    int width = device_width(&name);
    if ((r = live_board_profile_get(live, name, &profile, NULL, err)))
        return r;
    if (width && !word.start[0] && !word.cis)
        return gpu_layout_add_devices(
            &live->board, layout,
            (struct gpu_device_request){
                .profile = profile,
                .ci_slices = width,
                .count = word.repeat[0] ? (int)strtol(word.repeat, NULL, 10) : 1},
            err);
    if (width)
        return bad_word(text, "write the start and the widths as 3g@4:1c+1c", err);
    str_addf(&plain, "%s%s%s", word.repeat, live->profiles[profile].name, word.start);
    if ((r = mig_layout_parse(&live->board, plain.bytes, &instances, err)))
        return r;
    for (int i = 0; i < instances.count; i++) {
        struct gpu_slice slice = gpu_slice_default(&live->board, instances.instances[i]);
        if (word.cis && (r = read_widths(&live->board, text, word.cis, &slice, err)))
            return r;
        if (layout->count == MIG_INSTANCES_MAX)
            return error_set(err, E_NO, "rule 5 (instances): %s holds at most %d",
                             live->board.slug, live->board.max_instances);
        layout->slices[layout->count++] = slice;
    }
    return 0;
}

int gpu_layout_parse(const struct live_board *live, const char *text,
                     struct gpu_layout *ret_layout, struct error *err)
{
    static const char separators[] = " \t\r\n,";
    struct gpu_layout layout = {0};
    CLEANUP(str_done) struct str word = STR_EMPTY;
    const char *rest = text + strspn(text, separators);

    if (!*rest)
        return error_set(err, E_INPUT, "layout: no text; expected instances, or - for none");
    while (*rest) {
        size_t length = strcspn(rest, separators);
        str_clear(&word);
        str_add_bytes(&word, rest, length);
        rest += length + strspn(rest + length, separators);
        if (!strcmp(word.bytes, "-") && !*rest && !layout.count)
            break;
        int r = add_word(live, word.bytes, &layout, err);
        if (r)
            return r;
    }
    gpu_layout_sort(&layout);
    gpu_layout_assert(&live->board, &layout);
    *ret_layout = layout;
    return 0;
}

int gpu_layout_from_list(const struct live_board *live, const struct gpu_gi_list *list,
                         struct gpu_layout *ret_layout, struct error *err)
{
    struct gpu_layout layout = {0};

    if (list->count > MIG_INSTANCES_MAX)
        return error_set(err, E_IO, "%d GPU instances on one GPU; at most %d are known of",
                         list->count, MIG_INSTANCES_MAX);
    for (int i = 0; i < list->count; i++) {
        const struct gpu_gi *gi = &list->gi[i];
        struct gpu_slice *slice = &layout.slices[layout.count++];
        int profile = live_board_profile_of_gi(live, gi);
        if (profile < 0)
            return error_set(err, E_IO,
                             "GPU instance %u has profile id %d, which %s does not "
                             "list",
                             gi->id, gi->profile_id, live->board.slug);
        if (gi->start >= MIG_UNITS_MAX)
            return error_set(err, E_UNSUPPORTED,
                             "GPU instance %u starts at memory unit %d; %d are known of",
                             gi->id, gi->start, MIG_UNITS_MAX);
        slice->gi =
            (struct mig_instance){.profile = (int8_t)profile, .start = (int8_t)gi->start};
        for (int j = 0; j < gi->ci_count; j++)
            gpu_slice_add_ci(slice, gi->ci[j].compute_slices);
    }
    gpu_layout_sort(&layout);
    *ret_layout = layout;
    return 0;
}
