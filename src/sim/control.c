/* SPDX-License-Identifier: Apache-2.0
 *
 * tranche-sim: the hand on the simulated machine for what NVML has no call for: resets,
 * reboots, processes, Xid errors, lost GPUs. Under the name nvidia-smi it knows the two
 * things that clients of the real one ask of it: -L and --gpu-reset.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "sim/identity.h"
#include "sim/processes.h"
#include "sim/product.h"
#include "sim/store.h"

static struct sim_store store;

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Opens and locks the machine; leave() commits when that is asked, unlocks and closes. */
static int enter(bool change, struct error *err)
{
    int status = sim_store_open(&store, err);
    if (status < 0)
        return status;
    status = sim_store_lock(&store, change, err);
    if (status < 0) {
        sim_store_close(&store);
        return status;
    }
    sim_drop_dead_processes(&store.machine, monotonic_ns());
    if (change)
        sim_settle(&store.machine, monotonic_ns());
    return 0;
}

static int leave(bool commit, int status, struct error *err)
{
    if (commit && status == 0)
        status = sim_store_commit(&store, err);
    sim_store_unlock(&store, false);
    sim_store_close(&store);
    return status;
}

/* ---- naming a GPU or an instance ---- */

struct place {
    unsigned gpu, gi, ci; /* NVML_NO_INSTANCE_ID: the whole GPU, the whole GPU instance */
};

/* "GPU", "GPU/GI" or "GPU/GI/CI". */
static bool place_by_numbers(const char *text, struct place *ret_place)
{
    unsigned numbers[3] = {0, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID};
    const char *c = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        numbers[i] = (unsigned)strtoul(c, &end, 10);
        if (end == c || (*end != '/' && *end != '\0'))
            return false;
        if (*end == '\0') {
            *ret_place = (struct place){numbers[0], numbers[1], numbers[2]};
            return true;
        }
        c = end + 1;
    }
    return false;
}

static bool place_by_uuid(const struct sim_machine *machine, const char *text,
                          struct place *ret_place)
{
    char uuid[SIM_UUID_SIZE];
    for (unsigned gpu = 0; gpu < machine->gpu_count; gpu++) {
        sim_gpu_uuid(machine, gpu, uuid);
        *ret_place = (struct place){gpu, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID};
        if (strcasecmp(text, uuid) == 0)
            return true;
        for (unsigned i = 0;
             sim_mig_device_at(&machine->gpus[gpu], i, &ret_place->gi, &ret_place->ci); i++) {
            sim_mig_uuid(machine, gpu, ret_place->gi, ret_place->ci, uuid);
            if (strcasecmp(text, uuid) == 0)
                return true;
        }
    }
    return false;
}

static bool place_by_bus_id(const struct sim_machine *machine, const char *text,
                            struct place *ret_place)
{
    *ret_place = (struct place){0, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID};
    return sim_gpu_by_bus_id(machine, text, &ret_place->gpu);
}

/* An index, GPU/GI or GPU/GI/CI, a UUID, or a PCI bus id. */
static int find_place(const char *text, struct place *ret_place, struct error *err)
{
    const struct sim_machine *machine = &store.machine;
    struct place place = {0};
    if (!place_by_bus_id(machine, text, &place) && !place_by_uuid(machine, text, &place) &&
        !place_by_numbers(text, &place))
        return error_set(err, E_INPUT,
                         "'%s' is not a GPU: give an index, GPU/GI/CI, a UUID or a PCI bus id",
                         text);
    if (place.gpu >= machine->gpu_count)
        return error_set(err, E_NOT_FOUND, "'%s': the machine has %u GPUs", text,
                         machine->gpu_count);
    const struct sim_gpu *gpu = &machine->gpus[place.gpu];
    bool has_gi =
        place.gi == NVML_NO_INSTANCE_ID || (place.gi < SIM_GI_IDS && gpu->gis[place.gi].used);
    bool has_ci = place.ci == NVML_NO_INSTANCE_ID ||
                  (has_gi && place.ci < SIM_CI_IDS && gpu->gis[place.gi].cis[place.ci].used);
    if (!has_gi || !has_ci)
        return error_set(err, E_NOT_FOUND, "'%s': no such instance", text);
    *ret_place = place;
    return 0;
}

/* ---- show ---- */

static void show_instances(const struct sim_machine *machine, unsigned index)
{
    const struct sim_gpu *gpu = &machine->gpus[index];
    for (unsigned id = 0; id < SIM_GI_IDS; id++) {
        const struct sim_gi *gi = &gpu->gis[id];
        if (!gi->used)
            continue;
        printf("    gi %u: %s@%u\n", id, sim_gi_profile(gpu, gi)->name, gi->start);
        for (unsigned ci = 0; ci < SIM_CI_IDS; ci++) {
            char uuid[SIM_UUID_SIZE], name[SIM_NAME_SIZE];
            if (!gi->cis[ci].used)
                continue;
            sim_mig_uuid(machine, index, id, ci, uuid);
            sim_mig_profile_name(gpu, gi, gi->cis[ci].profile, name);
            printf("        ci %u: %s %s\n", ci, name, uuid);
        }
    }
}

static void show_machine(const struct sim_machine *machine)
{
    printf("state %s\nfleet %s\n", store.path, machine->fleet);
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        const struct sim_gpu *gpu = &machine->gpus[i];
        char uuid[SIM_UUID_SIZE];
        sim_gpu_uuid(machine, i, uuid);
        printf("gpu %u: %s %s mig %s%s%s%s\n", i, gpu->board, uuid,
               gpu->mig_current ? "on" : "off",
               gpu->mig_current != gpu->mig_pending ? " (pending)" : "",
               gpu->reset_needed ? " passthrough" : "", gpu->lost ? " lost" : "");
        show_instances(machine, i);
    }
    for (uint32_t i = 0; i < machine->process_count; i++) {
        const struct sim_process *process = &machine->processes[i];
        printf("process %u: gpu %u gi %d ci %d %u MiB %u%% %s\n", process->pid, process->gpu,
               (int)process->gi, (int)process->ci, process->memory_mib, process->sm_percent,
               process->name);
    }
}

static int run_show(const void *options, struct arguments arguments, struct error *err)
{
    (void)options, (void)arguments;
    int status = enter(false, err);
    if (status < 0)
        return status;
    show_machine(&store.machine);
    return leave(false, 0, err);
}

/* ---- reset, reboot ---- */

static int reset_one(const char *text, struct error *err)
{
    struct place place = {0};
    int status = find_place(text, &place, err);
    if (status < 0)
        return status;
    nvmlReturn_t result =
        sim_gpu_reset(&store.machine, place.gpu, sim_store_held_by_others(&store));
    if (result == NVML_ERROR_IN_USE)
        return error_set(err, E_BUSY, "GPU %u is in use by another client", place.gpu);
    if (result != NVML_SUCCESS)
        return error_set(err, E_UNSUPPORTED,
                         "GPU %u cannot be reset from a guest; use: tranche-sim reboot",
                         place.gpu);
    return 0;
}

static int reset_list(const char *const *texts, size_t count, struct error *err)
{
    int status = enter(true, err);
    if (status < 0)
        return status;
    char number[16];
    for (unsigned i = 0; status == 0 && count == 0 && i < store.machine.gpu_count; i++) {
        snprintf(number, sizeof number, "%u", i);
        status = reset_one(number, err);
    }
    for (size_t i = 0; status == 0 && i < count; i++)
        status = reset_one(texts[i], err);
    return leave(true, status, err);
}

static int run_reset(const void *options, struct arguments arguments, struct error *err)
{
    (void)options;
    return reset_list(arguments.items, arguments.count, err);
}

static int run_reboot(const void *options, struct arguments arguments, struct error *err)
{
    (void)options, (void)arguments;
    int status = enter(true, err);
    if (status < 0)
        return status;
    sim_reboot(&store.machine);
    return leave(true, 0, err);
}

/* ---- processes ---- */

struct process_options {
    const char *device, *name, *type;
    long long pid, memory_mib, sm_percent;
    bool keep;
};

static enum sim_process_type type_of(const char *text)
{
    return strcmp(text, "graphics") == 0 ? SIM_GRAPHICS
           : strcmp(text, "mps") == 0    ? SIM_MPS
                                         : SIM_COMPUTE;
}

/* A process goes onto a compute instance: the GPU instance's first where none is named. */
static int complete_place(struct place *place, struct error *err)
{
    const struct sim_gpu *gpu = &store.machine.gpus[place->gpu];
    if (!gpu->mig_current)
        return 0;
    for (unsigned ci = 0; place->gi != NVML_NO_INSTANCE_ID && ci < SIM_CI_IDS; ci++)
        if (place->ci == NVML_NO_INSTANCE_ID && gpu->gis[place->gi].cis[ci].used)
            place->ci = ci;
    if (place->ci == NVML_NO_INSTANCE_ID)
        return error_set(err, E_INPUT,
                         "GPU %u has MIG on: name a compute instance (GPU/GI/CI or its UUID)",
                         place->gpu);
    return 0;
}

static int add_process(const struct process_options *options, uint32_t pid, struct error *err)
{
    struct place place = {0};
    int status = find_place(options->device, &place, err);
    if (status == 0)
        status = complete_place(&place, err);
    if (status < 0)
        return status;
    struct sim_process process = {.pid = pid,
                                  .gpu = place.gpu,
                                  .gi = place.gi,
                                  .ci = place.ci,
                                  .type = type_of(options->type),
                                  .memory_mib = (uint32_t)options->memory_mib,
                                  .sm_percent = (uint32_t)options->sm_percent};
    snprintf(process.name, sizeof process.name, "%s", options->name ? options->name : "");
    if (!options->keep) {
        process.start_ticks = sim_process_start_ticks(pid);
        if (process.start_ticks == 0)
            return error_set(err, E_NOT_FOUND, "no process %u; --keep lists it all the same",
                             pid);
    }
    if (!sim_add_process(&store.machine, &process))
        return error_set(err, E_BUSY, "the machine holds no more than %d processes",
                         SIM_PROCESSES_MAX);
    return 0;
}

static int run_process_add(const void *context, struct arguments arguments, struct error *err)
{
    (void)arguments;
    const struct process_options *options = context;
    int status = enter(true, err);
    if (status < 0)
        return status;
    return leave(true, add_process(options, (uint32_t)options->pid, err), err);
}

static int run_process_remove(const void *context, struct arguments arguments,
                              struct error *err)
{
    (void)context;
    long long pid;
    if (!text_to_int(arguments.items[0], 1, UINT32_MAX, &pid))
        return error_set(err, E_USAGE, "'%s' is no process id", arguments.items[0]);
    int status = enter(true, err);
    if (status < 0)
        return status;
    sim_remove_process(&store.machine, (uint32_t)pid);
    return leave(true, 0, err);
}

/* The command keeps this process's id, so the entry ends with it. */
static int run_run(const void *context, struct arguments arguments, struct error *err)
{
    const struct process_options *options = context;
    int status = enter(true, err);
    if (status == 0)
        status = leave(true, add_process(options, (uint32_t)getpid(), err), err);
    if (status < 0)
        return status;
    assert(arguments.count > 0);
    CLEANUP(free_ptr) char **words = xcalloc(arguments.count + 1, sizeof *words);
    for (size_t i = 0; i < arguments.count; i++)
        words[i] = (char *)(uintptr_t)arguments.items[i];
    execvp(arguments.items[0], words);
    return error_set_errno(err, E_MISSING, "cannot run %s", arguments.items[0]);
}

/* ---- faults of the hardware ---- */

static int run_xid(const void *context, struct arguments arguments, struct error *err)
{
    (void)context;
    long long xid;
    if (!text_to_int(arguments.items[1], 0, 1000, &xid))
        return error_set(err, E_USAGE, "'%s' is no Xid number", arguments.items[1]);
    int status = enter(true, err);
    if (status < 0)
        return status;
    struct place place = {0};
    status = find_place(arguments.items[0], &place, err);
    if (status == 0)
        sim_add_event(&store.machine, &(struct sim_event){.type = nvmlEventTypeXidCriticalError,
                                                          .data = (uint64_t)xid,
                                                          .gpu = place.gpu,
                                                          .gi = place.gi,
                                                          .ci = place.ci});
    return leave(true, status, err);
}

struct set_options {
    bool lost, found, passthrough, bare_metal;
    long long ecc_corrected, ecc_uncorrected;
};

static void set_gpu(struct sim_gpu *gpu, const struct set_options *options)
{
    gpu->lost = options->lost || (gpu->lost && !options->found);
    gpu->reset_needed = options->passthrough || (gpu->reset_needed && !options->bare_metal);
    gpu->ecc_errors[0] += (uint64_t)options->ecc_corrected;
    gpu->ecc_errors[1] += (uint64_t)options->ecc_uncorrected;
}

static int run_set(const void *context, struct arguments arguments, struct error *err)
{
    int status = enter(true, err);
    if (status < 0)
        return status;
    struct place place = {0};
    status = find_place(arguments.items[0], &place, err);
    if (status == 0)
        set_gpu(&store.machine.gpus[place.gpu], context);
    return leave(true, status, err);
}

/* ---- what the kernel shows of the GPUs ---- */

static int write_text(const char *folder, const char *name, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, name);
    return file_write(path, text, strlen(text), err);
}

/* A GPU's folder of /sys/bus/pci/devices, as far as NVIDIA's programs read it. */
static int write_pci_device(const char *root, unsigned index, struct error *err)
{
    const struct mig_board *board = sim_gpu_board(&store.machine.gpus[index]);
    unsigned id = sim_product_of(board).pci_device_id;
    struct sim_pci_address address = sim_pci_address(index);
    CLEANUP(free_ptr)
    char *folder = xasprintf("%s/sys/bus/pci/devices/%04x:%02x:%02x.0", root, address.domain,
                             address.bus, address.device);
    char vendor[16], device[16], config[257] = {0};
    snprintf(vendor, sizeof vendor, "0x%04x\n", id & 0xffff);
    snprintf(device, sizeof device, "0x%04x\n", id >> 16);
    config[0] = (char)(id & 0xff), config[1] = (char)(id >> 8 & 0xff);
    config[2] = (char)(id >> 16 & 0xff), config[3] = (char)(id >> 24);
    const struct {
        const char *name, *text;
    } files[] = {
        {"vendor", vendor},
        {"device", device},
        {"class", "0x030200\n"},
        {"numa_node", "-1\n"},
        {"resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"},
    };
    int status = file_make_dirs(folder, 0755, err);
    for (size_t i = 0; status == 0 && i < sizeof files / sizeof files[0]; i++)
        status = write_text(folder, files[i].name, files[i].text, err);
    CLEANUP(free_ptr) char *path = xasprintf("%s/config", folder);
    return status == 0 ? file_write(path, config, sizeof config - 1, err) : status;
}

/* The capability files of a GPU under /proc/driver/nvidia: of every id that an instance can
 * have, though a real driver shows those that exist. Minors as in the driver's table of 15 GPU
 * instances of 8 compute instances a GPU: gpu3/gi3/ci3 is 439. */
static int write_capabilities(const char *root, unsigned index, struct error *err)
{
    enum { COMPUTE_INSTANCES = 8, MINORS_A_GI = 1 + COMPUTE_INSTANCES, FIRST_MINOR = 3 };
    int status = 0;
    for (unsigned gi = 0; status == 0 && gi < NVML_GPU_INSTANCE_ID_LIMIT; gi++) {
        CLEANUP(free_ptr)
        char *folder =
            xasprintf("%s/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u", root, index, gi);
        unsigned minor = FIRST_MINOR + (index * NVML_GPU_INSTANCE_ID_LIMIT + gi) * MINORS_A_GI;
        for (unsigned i = 0; status == 0 && i < MINORS_A_GI; i++) {
            CLEANUP(free_ptr)
            char *place = i ? xasprintf("%s/ci%u", folder, i - 1) : xasprintf("%s", folder);
            CLEANUP(free_ptr)
            char *text = xasprintf("DeviceFileMinor: %u\nDeviceFileMode: 292\n"
                                   "DeviceFileModify: 1\n",
                                   minor + i);
            status = file_make_dirs(place, 0755, err);
            if (status == 0)
                status = write_text(place, "access", text, err);
        }
    }
    return status;
}

/* /proc/modules and /proc/devices: the driver is loaded. */
static int write_kernel_lists(const char *root, struct error *err)
{
    CLEANUP(free_ptr) char *proc = xasprintf("%s/proc", root);
    int status = file_make_dirs(proc, 0755, err);
    if (status == 0)
        status =
            write_text(proc, "modules", "nvidia 1000000 0 - Live 0x0000000000000000\n", err);
    if (status == 0)
        status = write_text(proc, "devices",
                            "Character devices:\n  1 mem\n195 nvidia-frontend\n"
                            "234 nvidia-caps\n235 nvidia-uvm\n\nBlock devices:\n  7 loop\n",
                            err);
    return status;
}

static int run_sysfs(const void *options, struct arguments arguments, struct error *err)
{
    (void)options;
    const char *root_folder = arguments.items[0];
    int status = write_kernel_lists(root_folder, err);
    if (status == 0)
        status = enter(false, err);
    if (status < 0)
        return status;
    for (unsigned i = 0; status == 0 && i < store.machine.gpu_count; i++) {
        status = write_pci_device(root_folder, i, err);
        if (status == 0)
            status = write_capabilities(root_folder, i, err);
    }
    return leave(false, status, err);
}

/* ---- nvidia-smi ---- */

static void list_devices(const struct sim_machine *machine)
{
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        const struct sim_gpu *gpu = &machine->gpus[i];
        char uuid[SIM_UUID_SIZE], name[SIM_NAME_SIZE];
        sim_gpu_uuid(machine, i, uuid);
        printf("GPU %u: %s (UUID: %s)\n", i, sim_product_of(sim_gpu_board(gpu)).name, uuid);
        unsigned gi, ci;
        for (unsigned m = 0; sim_mig_device_at(gpu, m, &gi, &ci); m++) {
            sim_mig_uuid(machine, i, gi, ci, uuid);
            sim_mig_profile_name(gpu, &gpu->gis[gi], gpu->gis[gi].cis[ci].profile, name);
            printf("  MIG %-15s Device %2u: (UUID: %s)\n", name, m, uuid);
        }
    }
}

struct smi_options {
    bool list, reset;
    const char *ids;
};

static int reset_ids(const char *ids, struct error *err)
{
    char text[1024];
    const char *words[SIM_GPUS_MAX] = {NULL};
    size_t count = 0;
    snprintf(text, sizeof text, "%s", ids ? ids : "");
    char *state = NULL;
    for (char *word = strtok_r(text, ",", &state); word && count < SIM_GPUS_MAX;
         word = strtok_r(NULL, ",", &state))
        words[count++] = word;
    int status = reset_list(words, count, err);
    for (size_t i = 0; status == 0 && i < count; i++)
        printf("GPU %s was successfully reset.\n", words[i]);
    return status;
}

static int run_smi(const void *context, struct arguments arguments, struct error *err)
{
    (void)arguments;
    const struct smi_options *options = context;
    if (options->reset)
        return reset_ids(options->ids, err);
    if (!options->list)
        return error_set(err, E_USAGE,
                         "the simulated nvidia-smi knows -L and --gpu-reset [-i IDS]");
    int status = enter(false, err);
    if (status < 0)
        return status;
    list_devices(&store.machine);
    return leave(false, 0, err);
}

/* ---- tables ---- */

#define PROCESS_OPTIONS                                                                        \
    OPTION_TEXT('d', "device", struct process_options, device, "DEVICE", "0",                  \
                "where: an index, GPU/GI/CI or a UUID"),                                       \
        OPTION_INT('m', "memory-mib", struct process_options, memory_mib, "MIB", "512", 0,     \
                   1 << 20, "GPU memory it holds"),                                            \
        OPTION_INT('s', "sm", struct process_options, sm_percent, "PERCENT", "100", 0, 100,    \
                   "how busy it keeps its instance"),                                          \
        OPTION_TEXT('n', "name", struct process_options, name, "NAME", NULL,                   \
                    "name that NVML gives"),                                                   \
        OPTION_CHOICE('t', "type", struct process_options, type, "compute|graphics|mps",       \
                      "compute", "kind of context")

static const struct option_spec run_options[] = {PROCESS_OPTIONS};
static const struct option_spec add_options[] = {
    PROCESS_OPTIONS,
    OPTION_INT('p', "pid", struct process_options, pid, "PID", "1", 1, 4194304,
               "process; it leaves the GPU when it ends"),
    OPTION_FLAG('k', "keep", struct process_options, keep,
                "stays though no process has this id"),
};
static const struct option_spec set_options[] = {
    OPTION_FLAG(0, "lost", struct set_options, lost, "falls off the bus: GPU_IS_LOST"),
    OPTION_FLAG(0, "found", struct set_options, found, "is back"),
    OPTION_FLAG(0, "passthrough", struct set_options, passthrough,
                "is in a guest that cannot reset it"),
    OPTION_FLAG(0, "bare-metal", struct set_options, bare_metal, "is not"),
    OPTION_INT(0, "ecc-corrected", struct set_options, ecc_corrected, "N", "0", 0, 1000000,
               "adds corrected memory errors"),
    OPTION_INT(0, "ecc-uncorrected", struct set_options, ecc_uncorrected, "N", "0", 0, 1000000,
               "adds uncorrected memory errors"),
};
static const struct option_spec smi_options[] = {
    OPTION_FLAG('L', "list-gpus", struct smi_options, list, "list GPUs and MIG devices"),
    OPTION_FLAG('r', "gpu-reset", struct smi_options, reset, "reset the GPUs"),
    OPTION_TEXT('i', "id", struct smi_options, ids, "IDS", NULL,
                "indexes, UUIDs or PCI bus ids, separated by commas"),
};

#define OPTIONS(table, type)                                                                   \
    .options = (table), .option_count = sizeof(table) / sizeof((table)[0]),                    \
    .options_size = sizeof(type)

static const struct command show = {
    .name = "show", .summary = "the machine and where its state is", .run = run_show};
static const struct command reset = {.name = "reset",
                                     .summary = "reset GPUs (all without an argument)",
                                     .positionals = "[GPU…]",
                                     .arguments_max = SIZE_MAX,
                                     .run = run_reset};
static const struct command reboot_command = {
    .name = "reboot",
    .summary = "reboot the machine: no instances, no processes, the mode where it is kept",
    .run = run_reboot};
static const struct command add = {.name = "add",
                                   .summary = "put a process on a GPU or instance",
                                   OPTIONS(add_options, struct process_options),
                                   .run = run_process_add};
static const struct command remove_command = {.name = "remove",
                                              .summary = "take a process off",
                                              .positionals = "PID",
                                              .arguments_min = 1,
                                              .arguments_max = 1,
                                              .run = run_process_remove};
static const struct command run = {.name = "run",
                                   .summary = "run a command as a process of an instance",
                                   .positionals = "-- COMMAND [ARGUMENT…]",
                                   .arguments_min = 1,
                                   .arguments_max = SIZE_MAX,
                                   OPTIONS(run_options, struct process_options),
                                   .run = run_run};
static const struct command sysfs = {
    .name = "sysfs",
    .summary = "write what /proc and /sys would show of the GPUs into a folder",
    .positionals = "FOLDER",
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run_sysfs};
static const struct command xid = {.name = "xid",
                                   .summary = "report an Xid error of a GPU or instance",
                                   .positionals = "GPU XID",
                                   .arguments_min = 2,
                                   .arguments_max = 2,
                                   .run = run_xid};
static const struct command set = {.name = "set",
                                   .summary = "change what the hardware of a GPU is like",
                                   .positionals = "GPU",
                                   .arguments_min = 1,
                                   .arguments_max = 1,
                                   OPTIONS(set_options, struct set_options),
                                   .run = run_set};

static const struct command *const commands[] = {
    &add, &reboot_command, &remove_command, &reset, &run, &set, &show, &sysfs, &xid, NULL};
static const struct command root = {.name = "tranche-sim",
                                    .summary = "the simulated machine behind TRANCHE_SIM_STATE",
                                    .subcommands = commands,
                                    .version = "1"};
static const struct command smi = {.name = "nvidia-smi",
                                   .summary =
                                       "what clients ask of it, on the simulated machine",
                                   OPTIONS(smi_options, struct smi_options),
                                   .run = run_smi};

/* Without subcommands and with nvidia-smi's exit status. */
static int smi_main(int argc, char **argv)
{
    struct error err = {0};
    struct arguments words = {(const char **)(argv + 1), (size_t)(argc > 0 ? argc - 1 : 0)};
    struct parsed_options parsed;
    int status = options_parse(&smi, words, &parsed, &err);
    if (status == 0) {
        status = run_smi(parsed.options, parsed.arguments, &err);
        options_done(&smi, &parsed);
    }
    if (status == 0)
        return 0;
    fprintf(stderr, "nvidia-smi (simulated): %s\n", err.text);
    return err.code == E_BUSY ? NVML_ERROR_IN_USE : error_exit_status(err.code);
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    return strcmp(name, "nvidia-smi") == 0 ? smi_main(argc, argv)
                                           : command_main(&root, argc, argv);
}
