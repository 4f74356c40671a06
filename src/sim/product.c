/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/product.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *slug, *name;
    uint32_t memory_mib;
    uint32_t power_limit_w, power_minimum_w, power_idle_w;
    uint32_t sm_clock_mhz, memory_clock_mhz;
    uint32_t bus_width_bits, sm_count;
};

/* clang-format off */
static const struct row rows[] = {
    /* MiB, power limit, minimum and idle (W), SM and memory clock (MHz), bus (bits), SMs */
    {"a30-24gb", "A30", 24576, 165, 100, 29, 1440, 1215, 3072, 56},
    {"a100-40gb", "A100-SXM4-40GB", 40960, 400, 100, 52, 1410, 1215, 5120, 108},
    {"a100-80gb", "A100-SXM4-80GB", 81920, 400, 100, 62, 1410, 1593, 5120, 108},
    {"h100-80gb-pcie", "H100 PCIe", 81559, 350, 200, 47, 1755, 1593, 5120, 114},
    {"h100-80gb-sxm5", "H100 80GB HBM3", 81559, 700, 200, 70, 1980, 2619, 5120, 132},
    {"h100-94gb", "H100 NVL", 95830, 400, 200, 60, 1785, 2619, 6016, 132},
    {"gh200-96gb", "GH200 480GB", 97871, 700, 100, 80, 1980, 2619, 6144, 132},
    {"gh200-144gb", "GH200 144G HBM3e", 146831, 700, 100, 80, 1980, 3201, 6144, 132},
    {"h20-96gb", "H20", 97871, 500, 200, 70, 1980, 2619, 6144, 78},
    {"h20-141gb", "H20-141GB", 143771, 500, 200, 70, 1980, 3201, 6144, 78},
    {"h200-141gb", "H200", 143771, 700, 200, 75, 1980, 3201, 6144, 132},
    {"b200-180gb", "B200", 183359, 1000, 200, 140, 1965, 3996, 8192, 148},
    {"gb200-186gb", "GB200", 189471, 1200, 200, 150, 1965, 3996, 8192, 152},
    {"b300-269gb", "B300 SXM6 AC", 275040, 1100, 200, 150, 1920, 3996, 8192, 148},
    {"gb300-278gb", "GB300", 284208, 1400, 200, 150, 1920, 3996, 8192, 152},
    {"rtxpro6000-96gb", "RTX PRO 6000 Blackwell Server Edition",
     97887, 600, 400, 40, 2430, 12481, 512, 188},
    {"rtxpro5000-48gb", "RTX PRO 5000 Blackwell", 48935, 300, 150, 25, 2617, 14001, 384, 110},
    {"rtxpro4500-32gb", "RTX PRO 4500 Blackwell", 32623, 200, 100, 20, 2617, 14001, 256, 82},
    {"t4-16gb", "Tesla T4", 15360, 70, 60, 10, 1590, 5001, 256, 40},
    {"v100-16gb", "Tesla V100-SXM2-16GB", 16384, 300, 100, 42, 1530, 877, 4096, 80},
};

/* mig_board.arch, NVML's architecture and PCIe generation, CUDA cores a multiprocessor */
static const struct architecture {
    const char *name;
    uint32_t nvml, pcie_generation, cores_per_sm;
} architectures[] = {
    {"volta", 5, 3, 64}, {"turing", 6, 3, 64}, {"ampere", 7, 4, 64}, {"ada", 8, 4, 128},
    {"hopper", 9, 5, 128}, {"blackwell", 10, 5, 128},
};
/* clang-format on */

enum { BRAND_TESLA = 2, BRAND_NVIDIA_RTX = 13, BRAND_NVIDIA = 14 };

static const struct row *row_of(const struct mig_board *board)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].slug, board->slug) == 0)
            return &rows[i];
    return NULL;
}

/* The "40" of "a100-40gb", in GiB; 16 for a slug without a size. */
static uint32_t slug_memory_gib(const struct mig_board *board)
{
    for (const char *c = strchr(board->slug, '-'); c; c = strchr(c + 1, '-')) {
        char *end;
        unsigned long gib = strtoul(c + 1, &end, 10);
        if (end > c + 1 && strncmp(end, "gb", 2) == 0 && gib > 0 && gib < 4096)
            return (uint32_t)gib;
    }
    return 16;
}

static struct row derived_row(const struct mig_board *board)
{
    return (struct row){.slug = board->slug,
                        .name = board->gpu,
                        .memory_mib = slug_memory_gib(board) * 1024 - 256,
                        .power_limit_w = 350,
                        .power_minimum_w = 100,
                        .power_idle_w = 50,
                        .sm_clock_mhz = 1755,
                        .memory_clock_mhz = 1593,
                        .bus_width_bits = 5120,
                        .sm_count = 16U * (unsigned)(board->compute_slices + 1)};
}

static struct architecture architecture_of(const struct mig_board *board)
{
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        if (strcasecmp(architectures[i].name, board->arch) == 0)
            return architectures[i];
    return (struct architecture){board->arch, 0xffffffff, 4, 128};
}

struct sim_product sim_product_of(const struct mig_board *board)
{
    const struct row *found = row_of(board);
    struct row row = found ? *found : derived_row(board);
    struct architecture architecture = architecture_of(board);
    struct sim_product product = {
        .memory_mib = row.memory_mib,
        .power_limit_mw = row.power_limit_w * 1000,
        .power_minimum_mw = row.power_minimum_w * 1000,
        .power_idle_mw = row.power_idle_w * 1000,
        .sm_clock_mhz = row.sm_clock_mhz,
        .memory_clock_mhz = row.memory_clock_mhz,
        .idle_clock_mhz = 210,
        .bus_width_bits = row.bus_width_bits,
        .sm_count = row.sm_count,
        .cores_per_sm = architecture.cores_per_sm,
        .pci_device_id = board->pci_device_id_count > 0 ? board->pci_device_ids[0] : 0x2fff10de,
        .pci_subsystem_id = 0x134f10de,
        .pcie_generation = architecture.pcie_generation,
        .architecture = architecture.nvml,
        .brand = strstr(row.name, "Tesla") ? BRAND_TESLA
                 : strstr(row.name, "RTX") ? BRAND_NVIDIA_RTX
                                           : BRAND_NVIDIA,
    };
    bool marked = strncmp(row.name, "Tesla", 5) == 0 || strncmp(row.name, "NVIDIA", 6) == 0;
    snprintf(product.name, sizeof product.name, "%s%s", marked ? "" : "NVIDIA ", row.name);
    char *variants = strstr(product.name, " ("); /* derived names list them in brackets */
    if (variants)
        *variants = '\0';
    return product;
}

uint32_t sim_profile_memory_mib(const struct mig_board *board,
                                const struct mig_profile *profile)
{
    if (profile->memory_mib >= 0)
        return (uint32_t)profile->memory_mib;
    assert(board->memory_units > 0);
    uint64_t share = (uint64_t)sim_product_of(board).memory_mib *
                     (uint64_t)profile->placement_size / (uint64_t)board->memory_units;
    return (uint32_t)(share * 97 / 100 / 64 * 64);
}

uint32_t sim_profile_sm(const struct mig_board *board, const struct mig_profile *profile)
{
    if (profile->sm >= 0)
        return (uint32_t)profile->sm;
    assert(board->compute_slices > 0);
    uint32_t count = sim_product_of(board).sm_count;
    return profile->compute_slices == board->compute_slices
               ? count
               : count * (uint32_t)profile->compute_slices /
                     (uint32_t)(board->compute_slices + 1) / 2 * 2;
}

uint32_t sim_ci_sm(const struct mig_board *board, const struct mig_profile *profile,
                   const struct mig_ci_profile *ci)
{
    uint32_t whole = sim_profile_sm(board, profile);
    assert(ci->compute_slices > 0 && ci->compute_slices <= profile->compute_slices);
    if (profile->group == MIG_GROUP_REV2 && ci->profile_id == 0)
        return sim_profile_sm(board, &board->profiles[mig_profile_find(board, "1g")]);
    if (ci->compute_slices == profile->compute_slices)
        return whole;
    return whole * (uint32_t)ci->compute_slices / (uint32_t)profile->compute_slices / 2 * 2;
}

uint32_t sim_profile_copy_engines(const struct mig_profile *profile)
{
    return (uint32_t)(profile->copy_engines >= 0 ? profile->copy_engines
                                                 : profile->compute_slices);
}

uint32_t sim_profile_engines(const struct mig_profile *profile, enum mig_engine engine)
{
    if (profile->engines[engine] >= 0)
        return (uint32_t)profile->engines[engine];
    return engine == MIG_DECODER || engine == MIG_JPEG ? (uint32_t)profile->compute_slices : 0;
}
