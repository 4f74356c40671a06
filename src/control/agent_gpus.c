/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at GPUs and changing them for the node agent; see agent_gpus.h.
 */
#include "control/agent_gpus.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/apply.h"
#include "gpu/journal.h"

/* Xids that the work on a GPU causes, not the GPU: those that NVIDIA's device plugin passes
 * over too. */
static const unsigned long long application_xids[] = {13, 31, 43, 45, 68, 109};

struct agent_gpus {
    struct agent_gpus_options options;
    struct gpu_driver driver; /* closed between failures */
    /* As listed last: a GPU that fell off the bus makes the list fail. */
    struct gpu_identity *identities;
    size_t identity_count;
    struct gpu_xid_list broken; /* the first of each GPU; since the driver was opened */
    bool begun;                 /* a journal of an earlier process was looked for */
};

struct agent_gpus *agent_gpus_new(const struct agent_gpus_options *options)
{
    struct agent_gpus *gpus = xcalloc(1, sizeof *gpus);

    assert(options->state_dir);
    gpus->options = *options;
    return gpus;
}

void agent_gpus_free(struct agent_gpus *gpus)
{
    if (!gpus)
        return;
    gpu_driver_close(&gpus->driver);
    gpu_xid_list_done(&gpus->broken);
    free(gpus->identities);
    free(gpus);
}

/* --- values --- */

void agent_order_set(struct agent_order *order, bool change, const struct node_gpu *gpus,
                     size_t count)
{
    *order = (struct agent_order){.change = change, .count = count};
    struct node_gpu *copies = arena_alloc(&order->arena, count + 1, sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        const struct node_gpu *from = &gpus[i];
        copies[i] = (struct node_gpu){.uuid = arena_strdup(&order->arena, from->uuid),
                                      .board = from->board,
                                      .mig_enabled = from->mig_enabled};
        copies[i].instances.data = arena_alloc(&order->arena, from->instances.count + 1,
                                               sizeof *copies[i].instances.data);
        copies[i].instances.count = from->instances.count;
        for (size_t j = 0; j < from->instances.count; j++)
            copies[i].instances.data[j] =
                (struct node_instance){.profile = from->instances.data[j].profile,
                                       .start = from->instances.data[j].start,
                                       .uuid = ""};
    }
    order->gpus = copies;
}

void agent_order_done(struct agent_order *order)
{
    arena_done(&order->arena);
    *order = (struct agent_order){0};
}

void agent_findings_done(struct agent_findings *findings)
{
    arena_done(&findings->arena);
    vec_done(&findings->troubles);
    str_done(&findings->message);
    *findings = (struct agent_findings){.message = STR_EMPTY};
}

static void say(struct agent_findings *findings, enum agent_outcome outcome, const char *text)
{
    if (outcome > findings->outcome)
        findings->outcome = outcome;
    str_add(&findings->message, findings->message.length ? "; " : "");
    str_add(&findings->message, text);
}

/* … of one GPU: what waiting does not mend is kept for its own message. */
static void say_of(struct agent_findings *findings, const char *uuid,
                   enum agent_outcome outcome, const char *text)
{
    say(findings, outcome, text);
    if (outcome == AGENT_FAILED || outcome == AGENT_INVALID)
        vec_add(&findings->troubles,
                ((struct agent_trouble){arena_strdup(&findings->arena, uuid),
                                        arena_strdup(&findings->arena, text)}));
}

/* Tells each GPU that was found the first of its troubles. */
static void tell_troubles(struct agent_findings *findings)
{
    for (size_t i = findings->troubles.count; i-- > 0;) {
        struct node_gpu *found =
            node_gpu_find(findings->gpus, findings->count, findings->troubles.data[i].uuid);
        if (found)
            found->message = findings->troubles.data[i].text;
    }
}

/* --- changing one GPU --- */

/* The ordered layout of one GPU, and what keeps it from being so at once. */
struct wish {
    const struct node_gpu *gpu;
    struct str waits; /* "1g.5gb@6 is in use" */
};

static int wished_layout(const struct live_board *live, const struct node_gpu *wish,
                         struct mig_layout *ret, struct error *err)
{
    *ret = (struct mig_layout){0};
    if (wish->instances.count > MIG_INSTANCES_MAX)
        return error_set(err, E_INPUT, "%zu instances on one GPU; there is room for %d at most",
                         wish->instances.count, MIG_INSTANCES_MAX);
    for (size_t i = 0; i < wish->instances.count; i++) {
        const struct node_instance *from = &wish->instances.data[i];
        int profile;
        int r = live_board_profile_get(live, wish->board->profiles[from->profile].name,
                                       &profile, NULL, err);
        if (r)
            return r;
        if (from->start < 0 || from->start >= MIG_UNITS_MAX)
            return error_set(err, E_INPUT, "start %d is on no GPU", from->start);
        ret->instances[ret->count++] =
            (struct mig_instance){(int8_t)profile, (int8_t)from->start};
    }
    mig_layout_sort(ret);
    int r = mig_layout_check(&live->board, ret, err);
    return r ? error_set(err, E_INPUT, "%s", err ? err->text : "") : 0;
}

/* Takes out of the layout what overlaps an instance that has to stay for now. */
static void make_room(const struct mig_board *board, struct mig_layout *layout,
                      struct mig_instance stays)
{
    for (int i = layout->count - 1; i >= 0; i--)
        if (mig_instance_span(board, layout->instances[i]) & mig_instance_span(board, stays))
            mig_layout_remove(layout, i);
}

/* Instances in use stay, whatever is wished. */
static void keep_busy(const struct gpu *gpu, struct wish *wish, struct mig_layout *layout)
{
    const struct mig_board *board = &gpu->live->board;

    for (int i = 0; i < gpu->layout.count; i++) {
        struct mig_instance there = gpu->layout.slices[i].gi;
        if (mig_layout_contains(layout, there) || there.start == MIG_START_ANY ||
            !gpu_instance_is_busy(gpu, gpu->instances.gi[i].id, GPU_NO_INSTANCE))
            continue;
        make_room(board, layout, there);
        while (layout->count && !mig_layout_can_add(board, layout, there))
            mig_layout_remove(layout, layout->count - 1);
        mig_layout_add(board, layout, there);
        str_addf(&wish->waits, "%s%s@%d on %s is in use", wish->waits.length ? ", " : "",
                 board->profiles[there.profile].name, there.start, gpu->identity.uuid);
    }
}

/* A kept slice as it is; others with one compute instance of full width. */
static struct gpu_slice slice_of(const struct gpu *gpu, struct mig_instance instance, bool busy)
{
    for (int i = 0; busy && i < gpu->layout.count; i++)
        if (gpu->layout.slices[i].gi.profile == instance.profile &&
            gpu->layout.slices[i].gi.start == instance.start)
            return gpu->layout.slices[i];
    return gpu_slice_default(&gpu->live->board, instance);
}

/* struct gpu_request's targets: the one GPU of the inventory. */
static int make_target(void *context, const struct gpu_inventory *inventory,
                       struct gpu_target_list *ret_targets, struct error *err)
{
    struct wish *wish = context;
    const struct gpu *gpu = &inventory->gpus.data[0];
    struct gpu_target target = {.gpu = 0, .mig_enabled = true};
    struct mig_layout wished, layout;

    assert(inventory->gpus.count == 1 && gpu->live);
    int r = wished_layout(gpu->live, wish->gpu, &wished, err);
    if (r)
        return r;
    layout = wished;
    keep_busy(gpu, wish, &layout);
    for (int i = 0; i < layout.count; i++)
        target.layout.slices[target.layout.count++] = slice_of(
            gpu, layout.instances[i], !mig_layout_contains(&wished, layout.instances[i]));
    gpu_layout_sort(&target.layout);
    gpu_target_list_init(ret_targets);
    return gpu_target_add(inventory, ret_targets, &target, err);
}

/* The words by which the journal knows this change again. */
static void request_text(const struct node_gpu *gpu, struct str *text)
{
    str_addf(text, "agent %s:", gpu->uuid);
    for (size_t i = 0; i < gpu->instances.count; i++)
        str_addf(text, " %s@%d", gpu->board->profiles[gpu->instances.data[i].profile].name,
                 gpu->instances.data[i].start);
}

static enum agent_outcome outcome_of(const struct error *err)
{
    if (err->code == E_BUSY || err->code == E_INTERRUPTED)
        return AGENT_WAITING;
    return err->code == E_INPUT ? AGENT_INVALID : AGENT_FAILED;
}

static void apply_gpu(struct agent_gpus *gpus, const struct gpu_identity *identity,
                      const struct node_gpu *ordered, struct agent_findings *findings)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct wish wish = {.gpu = ordered, .waits = STR_EMPTY};
    struct gpu_apply_report report;
    struct error err;
    struct gpu_apply_options options = {.state_dir = gpus->options.state_dir,
                                        .no_rollback = true,
                                        .only = identity,
                                        .proc = gpus->options.proc,
                                        .stop = gpus->options.stop};

    request_text(ordered, &text);
    struct gpu_request request = {.targets = make_target, .context = &wish, .text = text.bytes};
    gpu_apply_report_init(&report);
    if (gpu_apply(&gpus->driver, &request, &options, &report, &err))
        say_of(findings, ordered->uuid, outcome_of(&err), err.text);
    else if (wish.waits.length)
        say(findings, AGENT_WAITING, wish.waits.bytes);
    findings->changes += report.outcome == GPU_APPLY_DONE;
    str_done(&wish.waits);
    gpu_apply_report_done(&report);
}

/* Whether the GPU holds what is ordered, no more and no less, ready to be used. */
static bool is_as_ordered(const struct node_gpu *found, const struct node_gpu *ordered)
{
    if (found->instances.count != ordered->instances.count ||
        (found->board->has_mig && !found->mig_enabled))
        return false;
    for (size_t i = 0; i < found->instances.count; i++)
        if (!found->instances.data[i].ready ||
            !node_instance_find(ordered, found->instances.data[i].profile,
                                found->instances.data[i].start))
            return false;
    return true;
}

/* --- looking --- */

/* The table's profile of a live one, by name or profile id; -1 when our table has none. */
static int table_profile(const struct live_board *live, const struct mig_board *board,
                         int profile)
{
    int found = mig_profile_find(board, live->profiles[profile].name);

    for (int i = 0; found < 0 && i < board->profile_count; i++)
        if (board->profiles[i].profile_id == live->profiles[profile].profile_id)
            found = i;
    return found;
}

static void find_instances(struct agent_findings *findings, const struct gpu *gpu,
                           struct node_gpu *ret)
{
    ret->instances.data =
        arena_alloc(&findings->arena, MIG_INSTANCES_MAX + 1, sizeof *ret->instances.data);
    for (int i = 0; gpu->live && gpu->mode.current && i < gpu->layout.count; i++) {
        const struct gpu_gi *gi = &gpu->instances.gi[i];
        const struct gpu_slice *slice = &gpu->layout.slices[i];
        int profile = table_profile(gpu->live, ret->board, slice->gi.profile);
        bool whole =
            gi->ci_count == 1 && *gi->ci[0].uuid &&
            slice->ci_slices[0] == gpu->live->profiles[slice->gi.profile].compute_slices;
        if (profile < 0)
            continue;
        ret->instances.data[ret->instances.count++] = (struct node_instance){
            .profile = profile,
            .start = slice->gi.start,
            .uuid = arena_strdup(&findings->arena, gi->ci_count ? gi->ci[0].uuid : ""),
            .ready = whole,
        };
    }
}

/* A board without MIG has its one slice when it is ordered. */
static void find_whole(struct agent_findings *findings, const struct node_gpu *ordered,
                       struct node_gpu *ret)
{
    ret->instances.data = arena_alloc(&findings->arena, 1, sizeof *ret->instances.data);
    if (ordered && ordered->instances.count)
        ret->instances.data[ret->instances.count++] =
            (struct node_instance){.profile = 0, .start = 0, .uuid = ret->uuid, .ready = true};
}

/* One instance's specification; without it no runtime finds the device. */
static void write_cdi(const struct agent_gpus *gpus, const struct gpu *gpu, int index,
                      struct node_instance *instance, struct agent_findings *findings)
{
    struct cdi_device device = {
        .uuid = instance->uuid, .minor = gpu->identity.minor, .gi = -1, .ci = -1};
    struct error err;

    if (index >= 0) {
        device.gi = (int)gpu->instances.gi[index].id;
        device.ci = (int)gpu->instances.gi[index].ci[0].id;
    }
    if (!cdi_write(&gpus->options.cdi, &device, &err))
        return;
    instance->ready = false;
    say_of(findings, gpu->identity.uuid, AGENT_FAILED, err.text);
}

/* The devices that have a specification, by UUID. */
struct cdi_names {
    VEC(const char *) items;
};

/* Specifications of the instances that are ours; names NULL: not now. */
static void write_cdis(const struct agent_gpus *gpus, const struct gpu *gpu,
                       struct node_gpu *found, struct agent_findings *findings,
                       struct cdi_names *names)
{
    for (size_t i = 0; names && gpus->options.cdi.folder && i < found->instances.count; i++) {
        struct node_instance *instance = &found->instances.data[i];
        int index = -1;
        if (!instance->ready)
            continue;
        for (int j = 0; gpu->live && j < gpu->layout.count; j++)
            if (gpu->layout.slices[j].gi.start == instance->start)
                index = j;
        write_cdi(gpus, gpu, index, instance, findings);
        vec_add(&names->items, instance->uuid);
    }
}

static const struct gpu_xid *find_broken(const struct agent_gpus *gpus, const char *uuid)
{
    for (size_t i = 0; i < gpus->broken.items.count; i++)
        if (!strcmp(gpus->broken.items.data[i].uuid, uuid))
            return &gpus->broken.items.data[i];
    return NULL;
}

static bool is_of_application(const struct gpu_xid *xid)
{
    for (size_t i = 0; i < sizeof application_xids / sizeof *application_xids; i++)
        if (application_xids[i] == xid->number)
            return true;
    return false;
}

/* Notes which GPUs reported a critical error. A driver that cannot tell has none. */
static void hear(struct agent_gpus *gpus)
{
    struct gpu_xid_list xids = {0};
    struct error err;

    if (gpus->driver.ops->take_xids)
        (void)gpus->driver.ops->take_xids(gpus->driver.self, &xids, &err);
    for (size_t i = 0; i < xids.items.count; i++)
        if (!is_of_application(&xids.items.data[i]) &&
            !find_broken(gpus, xids.items.data[i].uuid))
            vec_add(&gpus->broken.items, xids.items.data[i]);
    gpu_xid_list_done(&xids);
}

/* It is left out as if it were lost: what still runs there goes on, and is moved away. */
static void say_broken(const struct gpu_xid *xid, bool ordered, struct agent_findings *findings)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    str_addf(&text,
             "%s reported Xid %llu and is left out until the driver or the agent starts anew",
             xid->uuid, xid->number);
    say(findings, ordered ? AGENT_FAILED : AGENT_SYNCED, text.bytes);
    findings->lost++;
}

/* Reads one GPU. False when it is lost. */
static bool look_at(struct agent_gpus *gpus, const struct gpu_identity *identity,
                    const struct agent_order *order, struct agent_findings *findings,
                    struct cdi_names *names)
{
    struct gpu_inventory inventory = {0};
    const struct mig_board *board = mig_board_by_pci(identity->pci_device_id);
    const struct node_gpu *ordered =
        order->change ? node_gpu_find(order->gpus, order->count, identity->uuid) : NULL;
    const struct gpu_xid *xid = find_broken(gpus, identity->uuid);
    struct error err;

    if (xid) {
        say_broken(xid, ordered != NULL, findings);
        return true; /* the driver is there */
    }
    if (gpu_inventory_read_one(&gpus->driver, identity, &inventory, &err)) {
        say(findings, ordered ? AGENT_FAILED : AGENT_SYNCED, err.text);
        findings->lost++;
        return false;
    }
    const struct gpu *gpu = &inventory.gpus.data[0];
    if (board) {
        struct node_gpu *found = &findings->gpus[findings->count++];
        *found = (struct node_gpu){.uuid = arena_strdup(&findings->arena, identity->uuid),
                                   .board = board,
                                   .mig_enabled = gpu->live && gpu->mode.current};
        if (gpu->live)
            find_instances(findings, gpu, found);
        else
            find_whole(findings, ordered, found);
        if (ordered)
            write_cdis(gpus, gpu, found, findings, names);
    }
    gpu_inventory_done(&inventory);
    return true;
}

/* Reads all GPUs into the findings. */
static void look(struct agent_gpus *gpus, const struct agent_order *order,
                 struct agent_findings *findings, struct cdi_names *names)
{
    size_t seen = 0;

    findings->gpus =
        arena_alloc(&findings->arena, gpus->identity_count + 1, sizeof *findings->gpus);
    gpus->driver.ops->version(gpus->driver.self, findings->driver_version);
    for (size_t i = 0; i < gpus->identity_count; i++)
        seen += look_at(gpus, &gpus->identities[i], order, findings, names);
    if (gpus->identity_count && !seen) {
        /* The driver itself went: begin anew with it next time. */
        findings->outcome = AGENT_NO_DRIVER;
        gpu_driver_close(&gpus->driver);
    }
}

/* --- the whole --- */

/* GPUs that were reset meanwhile are not broken any more. */
static int open_driver(struct agent_gpus *gpus, struct error *err)
{
    struct gpu_driver_options how = {.kind = gpus->options.kind,
                                     .library = gpus->options.library};
    int r = gpu_driver_open(&how, &gpus->driver, err);

    if (!r) {
        vec_clear(&gpus->broken.items);
        hear(gpus); /* from now on */
    }
    return r;
}

/* The driver open, its GPUs listed. */
static int reach(struct agent_gpus *gpus, struct error *err)
{
    CLEANUP(free_ptr) struct gpu_identity *identities = NULL;
    size_t count;

    int r = gpus->driver.ops ? 0 : open_driver(gpus, err);
    if (r)
        return r;
    r = gpus->driver.ops->list(gpus->driver.self, &identities, &count, err);
    if (!r) {
        free(gpus->identities);
        gpus->identities = STEAL(identities);
        gpus->identity_count = count;
    } else if (!gpus->identity_count) {
        gpu_driver_close(&gpus->driver);
        return r;
    }
    return 0;
}

static const struct gpu_identity *identity_of(const struct agent_gpus *gpus, const char *uuid)
{
    for (size_t i = 0; i < gpus->identity_count; i++)
        if (!strcmp(gpus->identities[i].uuid, uuid))
            return &gpus->identities[i];
    return NULL;
}

/* Whether an earlier process left a change half done. */
static bool has_journal(const struct agent_gpus *gpus)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;

    gpu_journal_path(gpus->options.state_dir, &path);
    return !access(path.bytes, F_OK);
}

/* Says why an ordered GPU cannot be changed at all; NULL: it can. */
static const char *refusal(const struct gpu_identity *identity, const struct node_gpu *ordered)
{
    const struct mig_board *board = identity ? mig_board_by_pci(identity->pci_device_id) : NULL;

    if (!identity)
        return "is not a GPU of this node";
    if (board != ordered->board)
        return "is of another board than the spec says";
    if (ordered->instances.count && !board->has_mig &&
        (ordered->instances.count > 1 || ordered->instances.data[0].start != 0))
        return "has one whole slice, at 0";
    return NULL;
}

static void change_gpu(struct agent_gpus *gpus, const struct node_gpu *ordered, bool always,
                       struct agent_findings *before, struct agent_findings *findings)
{
    const struct gpu_identity *identity = identity_of(gpus, ordered->uuid);
    const struct node_gpu *found = node_gpu_find(before->gpus, before->count, ordered->uuid);
    const char *why = refusal(identity, ordered);

    if (why) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        str_addf(&text, "%s %s", ordered->uuid, why);
        say_of(findings, ordered->uuid, AGENT_INVALID, text.bytes);
    } else if (found && found->board->has_mig && (always || !is_as_ordered(found, ordered)))
        apply_gpu(gpus, identity, ordered, findings);
}

/* Changes what differs. */
static void change(struct agent_gpus *gpus, const struct agent_order *order,
                   struct agent_findings *findings)
{
    struct agent_findings before = {.message = STR_EMPTY};
    bool always = !gpus->begun && has_journal(gpus);

    look(gpus, order, &before, NULL);
    gpus->begun = true;
    for (size_t i = 0; gpus->driver.ops && i < order->count; i++)
        change_gpu(gpus, &order->gpus[i], always, &before, findings);
    agent_findings_done(&before);
}

/* The last word: what is ordered and is not so. */
static void judge(const struct agent_order *order, struct agent_findings *findings)
{
    for (size_t i = 0; i < order->count && findings->outcome == AGENT_SYNCED; i++) {
        const struct node_gpu *found =
            node_gpu_find(findings->gpus, findings->count, order->gpus[i].uuid);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        if (found && is_as_ordered(found, &order->gpus[i]))
            continue;
        str_addf(&text, "%s is not as ordered yet", order->gpus[i].uuid);
        say(findings, AGENT_WAITING, text.bytes);
    }
}

void agent_gpus_work(struct agent_gpus *gpus, const struct agent_order *order,
                     struct agent_findings *ret)
{
    struct agent_findings findings = {.message = STR_EMPTY};
    struct cdi_names names = {0};
    struct error err;

    if (reach(gpus, &err)) {
        say(&findings, AGENT_NO_DRIVER, err.text);
        *ret = findings;
        return;
    }
    hear(gpus);
    if (order->change)
        change(gpus, order, &findings);
    if (gpus->driver.ops)
        look(gpus, order, &findings, &names);
    if (order->change && findings.outcome != AGENT_NO_DRIVER) {
        judge(order, &findings);
        if (gpus->options.cdi.folder && !findings.lost &&
            cdi_prune(&gpus->options.cdi, names.items.data, names.items.count, &err))
            say(&findings, AGENT_FAILED, err.text);
    }
    vec_done(&names.items);
    tell_troubles(&findings);
    *ret = findings;
}
