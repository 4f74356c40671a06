/* SPDX-License-Identifier: Apache-2.0
 *
 * The boards and their profiles. Written by tools/generate_boards.py; do not edit.
 *
 * Sources: NVIDIA's MIG User Guide, nvidia-smi transcripts, NVIDIA/mig-parted,
 * NVIDIA/gpu-operator and NVIDIA/go-nvml. NA: no public source gives the number. The lowest bit
 * of `starts` is memory unit 0.
 */
#include "mig/board_table.h"

/* clang-format off */

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* One profile; its span takes as many memory units as it is listed with, on every board. */
#define P(name, kind, group, nvml_enum, id, slices, starts, units, most, sm, copy, decoders, \
          encoders, jpeg, ofa, mib, ci)                                                      \
    {name, kind, MIG_GROUP_##group, nvml_enum, id, slices, units, starts, units, most, sm,   \
     copy, {decoders, encoders, jpeg, ofa}, mib, ci_##ci, COUNT(ci_##ci)}

enum { NA = MIG_UNKNOWN };

/* compute slices, profile id, most in one GPU instance, is the default */
static const struct mig_ci_profile ci_1g[] = {{1, 0, 1, true}};
static const struct mig_ci_profile ci_2g[] = {{1, 0, 2, false}, {2, 1, 1, true}};
static const struct mig_ci_profile ci_4g[] = {{1, 0, 4, false}, {2, 1, 2, false}, {4, 3, 1,
    true}};
static const struct mig_ci_profile ci_rev[] = {{1, 7, 1, true}};
static const struct mig_ci_profile ci_3g[] = {{1, 0, 3, false}, {2, 1, 1, false}, {3, 2, 1,
    true}};
static const struct mig_ci_profile ci_7g[] = {{1, 0, 7, false}, {2, 1, 3, false}, {3, 2, 2,
    false}, {4, 3, 1, false}, {7, 4, 1, true}};
static const struct mig_ci_profile ci_none[0];

static const struct mig_profile a30_24gb_profiles[] = {
  P("1g.6gb",     "1g",    BASE, 0, 14, 1, 0b1111, 1, 4, 14, 1, 1, 0, 0, 0, 5888,  1g),
  P("1g.6gb+me",  "1g+me", ME,   7, 21, 1, 0b1111, 1, 1, 14, 1, 1, 0, 1, 1, 5888,  1g),
  P("2g.12gb",    "2g",    BASE, 1, 5,  2, 0b0101, 2, 2, 28, 2, 2, 0, 0, 0, 12032, 2g),
  P("2g.12gb+me", "2g+me", ME,   8, 6,  2, 0b0101, 2, 1, 28, 2, 2, 0, 1, 1, 12032, 2g),
  P("4g.24gb",    "4g",    BASE, 3, 0,  4, 0b0001, 4, 1, 56, 4, 4, 0, 1, 1, 24064, 4g),
};
static const uint32_t a30_24gb_pci[] = {0x20B710DE};

static const struct mig_profile a100_40gb_profiles[] = {
  P("1g.5gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 14, 1, 0, 0, 0, 0, 4864,  1g),
  P("1g.5gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 14, 1, 1, 0, 1, 1, 4864,  1g),
  P("1g.10gb",   "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 14, 1, 1, 0, 0, 0, 9984,  rev),
  P("2g.10gb",   "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 28, 2, 1, 0, 0, 0, 9984,  2g),
  P("3g.20gb",   "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 42, 3, 2, 0, 0, 0, 20096, 3g),
  P("4g.20gb",   "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 56, 4, 2, 0, 0, 0, 20096, 4g),
  P("7g.40gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 98, 7, 5, 0, 1, 1, 40320, 7g),
};
static const uint32_t a100_40gb_pci[] = {0x20B010DE, 0x20B110DE, 0x20F110DE, 0x20F610DE};

static const struct mig_profile a100_80gb_profiles[] = {
  P("1g.10gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 14, 1, 0, 0, 0, 0, 9728,  1g),
  P("1g.10gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 14, 1, 1, 0, 1, 1, 9728,  1g),
  P("1g.20gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 14, 1, 1, 0, 0, 0, 19968, rev),
  P("2g.20gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 28, 2, 1, 0, 0, 0, 19968, 2g),
  P("3g.40gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 42, 3, 2, 0, 0, 0, 40192, 3g),
  P("4g.40gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 56, 4, 2, 0, 0, 0, 40192, 4g),
  P("7g.80gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 98, 7, 5, 0, 1, 1, 80640, 7g),
};
static const uint32_t a100_80gb_pci[] = {0x20B210DE, 0x20B510DE, 0x20F310DE, 0x20F510DE};

static const struct mig_profile h100_80gb_sxm5_profiles[] = {
  P("1g.10gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 16,  1, 1, 0, 1, 0, 9984,  1g),
  P("1g.10gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 16,  1, 1, 0, 1, 1, 9984,  1g),
  P("1g.20gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 26,  1, 1, 0, 1, 0, 20096, rev),
  P("2g.20gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 32,  2, 2, 0, 2, 0, 20096, 2g),
  P("3g.40gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 60,  3, 3, 0, 3, 0, 40448, 3g),
  P("4g.40gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 64,  4, 4, 0, 4, 0, 40448, 4g),
  P("7g.80gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 132, 8, 7, 0, 7, 1, 81152, 7g),
};
static const uint32_t h100_80gb_sxm5_pci[] = {0x233010DE, 0x232410DE};

static const struct mig_profile h100_80gb_pcie_profiles[] = {
  P("1g.10gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 14,  1, 1, 0, 1, 0, 9984,  1g),
  P("1g.10gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 14,  1, 1, 0, 1, 1, 9984,  1g),
  P("1g.20gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 14,  1, 1, 0, 1, 0, 20096, rev),
  P("2g.20gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 30,  2, 2, 0, 2, 0, 20096, 2g),
  P("3g.40gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 46,  3, 3, 0, 3, 0, 40448, 3g),
  P("4g.40gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 62,  4, 4, 0, 4, 0, 40448, 4g),
  P("7g.80gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 114, 8, 7, 0, 7, 1, 81152, 7g),
};
static const uint32_t h100_80gb_pcie_pci[] = {0x233110DE, 0x232210DE};

static const struct mig_profile h100_94gb_profiles[] = {
  P("1g.12gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 16,  1, 1, 0, 1, 0, 11008, 1g),
  P("1g.12gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 16,  1, 1, 0, 1, 1, 11008, 1g),
  P("1g.24gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 26,  1, 1, 0, 1, 0, 22144, rev),
  P("2g.24gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 32,  2, 2, 0, 2, 0, 22144, 2g),
  P("3g.47gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 60,  3, 3, 0, 3, 0, 47488, 3g),
  P("4g.47gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 64,  4, 4, 0, 4, 0, 47488, 4g),
  P("7g.94gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 132, 8, 7, 0, 7, 1, 95360, 7g),
};
static const uint32_t h100_94gb_pci[] = {0x232110DE, 0x233A10DE};

static const struct mig_profile gh200_96gb_profiles[] = {
  P("1g.12gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 16,  1, 1, 0, 1, 0, 11264, 1g),
  P("1g.12gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 16,  1, 1, 0, 1, 1, 11264, 1g),
  P("1g.24gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 26,  1, 1, 0, 1, 0, 23552, rev),
  P("2g.24gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 32,  2, 2, 0, 2, 0, 23552, 2g),
  P("3g.48gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 60,  3, 3, 0, 3, 0, 47616, 3g),
  P("4g.48gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 64,  4, 4, 0, 4, 0, 47616, 4g),
  P("7g.96gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 132, 8, 7, 0, 7, 1, 95232, 7g),
};
static const uint32_t gh200_96gb_pci[] = {0x234210DE, 0x233D10DE, 0x20B610DE};

static const struct mig_profile gh200_144gb_profiles[] = {
  P("1g.18gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 16, 1, 1, 0, 1, 0, 17920, 1g),
  P("1g.18gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 16, 1, 1, 0, 1, 1, 17920, 1g),
  P("1g.36gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 26, 1, 1, 0, 1, 0, 36096, rev),
  P("2g.36gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 32, 2, 2, 0, 2, 0, 36096, 2g),
  P("3g.72gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, 3, 3, 0, 3, 0, NA,    3g),
  P("4g.72gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, 4, 4, 0, 4, 0, NA,    4g),
  P("7g.144gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, 8, 7, 0, 7, 1, NA,    7g),
};
static const uint32_t gh200_144gb_pci[] = {0x234810DE};

static const struct mig_profile h200_141gb_profiles[] = {
  P("1g.18gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 16,  1, 1, 0, 1, 0, 16384,  1g),
  P("1g.18gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 16,  1, 1, 0, 1, 1, 16384,  1g),
  P("1g.35gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 26,  1, 1, 0, 1, 0, 33024,  rev),
  P("2g.35gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 32,  2, 2, 0, 2, 0, 33024,  2g),
  P("3g.71gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, 60,  3, 3, 0, 3, 0, 71168,  3g),
  P("4g.71gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, 64,  4, 4, 0, 4, 0, 71168,  4g),
  P("7g.141gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, 132, 8, 7, 0, 7, 1, 143360, 7g),
};
static const uint32_t h200_141gb_pci[] = {0x233510DE, 0x233B10DE};

static const struct mig_profile h20_96gb_profiles[] = {
  P("1g.12gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, NA, 1, 1, 0, 1, 0, NA, 1g),
  P("1g.12gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, NA, 1, 1, 0, 1, 1, NA, 1g),
  P("1g.24gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, NA, 1, 1, 0, 1, 0, NA, rev),
  P("2g.24gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, NA, 2, 2, 0, 2, 0, NA, 2g),
  P("3g.48gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, 3, 3, 0, 3, 0, NA, 3g),
  P("4g.48gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, 4, 4, 0, 4, 0, NA, 4g),
  P("7g.96gb",    "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, 8, 7, 0, 7, 1, NA, 7g),
};
static const uint32_t h20_96gb_pci[] = {0x232910DE};

static const struct mig_profile h20_141gb_profiles[] = {
  P("1g.18gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, NA, 1, 1, 0, 1, 0, NA, 1g),
  P("1g.18gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, NA, 1, 1, 0, 1, 1, NA, 1g),
  P("1g.35gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, NA, 1, 1, 0, 1, 0, NA, rev),
  P("2g.35gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, NA, 2, 2, 0, 2, 0, NA, 2g),
  P("3g.71gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, 3, 3, 0, 3, 0, NA, 3g),
  P("4g.71gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, 4, 4, 0, 4, 0, NA, 4g),
  P("7g.141gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, 8, 7, 0, 7, 1, NA, 7g),
};

static const struct mig_profile h100_64gb_profiles[] = {
  P("1g.8gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, NA, 1, 1, 0, 1, 0, NA, 1g),
  P("1g.8gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, NA, 1, 1, 0, 1, 1, NA, 1g),
  P("1g.16gb",   "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, NA, 1, 1, 0, 1, 0, NA, rev),
  P("2g.16gb",   "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, NA, 2, 2, 0, 2, 0, NA, 2g),
  P("3g.32gb",   "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, 3, 3, 0, 3, 0, NA, 3g),
  P("4g.32gb",   "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, 4, 4, 0, 4, 0, NA, 4g),
  P("7g.64gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, 8, 7, 0, 7, 1, NA, 7g),
};

static const struct mig_profile b200_180gb_profiles[] = {
  P("1g.23gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 18, 2,  1,  0, 1,  0, 20992, 1g),
  P("1g.23gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 18, 2,  1,  0, 1,  1, 20992, 1g),
  P("1g.45gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 30, 2,  1,  0, 1,  0, 45312, rev),
  P("2g.45gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 36, 4,  2,  0, 2,  0, 45312, 2g),
  P("3g.90gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, NA, NA, 0, NA, 0, NA,    3g),
  P("4g.90gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, NA, NA, 0, NA, 0, NA,    4g),
  P("7g.180gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, NA, NA, 0, NA, 1, NA,    7g),
};
static const uint32_t b200_180gb_pci[] = {0x290110DE};

static const struct mig_profile gb200_186gb_profiles[] = {
  P("1g.23gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, 18, 2,  1,  0, 1,  0, 22528, 1g),
  P("1g.23gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, 18, 2,  1,  0, 1,  1, 22528, 1g),
  P("1g.47gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, 32, 2,  1,  0, 1,  0, 46592, rev),
  P("2g.47gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, 38, 4,  2,  0, 2,  0, 46592, 2g),
  P("3g.93gb",    "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, NA, NA, 0, NA, 0, NA,    3g),
  P("4g.93gb",    "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, NA, NA, 0, NA, 0, NA,    4g),
  P("7g.186gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, NA, NA, 0, NA, 1, NA,    7g),
};
static const uint32_t gb200_186gb_pci[] = {0x294110DE};

static const struct mig_profile b300_269gb_profiles[] = {
  P("1g.34gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, NA, NA, NA, 0, NA, 0, NA, 1g),
  P("1g.34gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, NA, NA, NA, 0, NA, 1, NA, 1g),
  P("1g.67gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, NA, NA, NA, 0, NA, 0, NA, rev),
  P("2g.67gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, NA, NA, NA, 0, NA, 0, NA, 2g),
  P("3g.135gb",   "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, NA, NA, 0, NA, 0, NA, 3g),
  P("4g.135gb",   "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, NA, NA, 0, NA, 0, NA, 4g),
  P("7g.269gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, NA, NA, 0, NA, 1, NA, 7g),
};
static const uint32_t b300_269gb_pci[] = {0x318210DE};

static const struct mig_profile gb300_278gb_profiles[] = {
  P("1g.35gb",    "1g",    BASE, 0, 19, 1, 0b01111111, 1, 7, NA, NA, NA, 0, NA, 0, NA, 1g),
  P("1g.35gb+me", "1g+me", ME,   7, 20, 1, 0b01111111, 1, 1, NA, NA, NA, 0, NA, 1, NA, 1g),
  P("1g.70gb",    "1g*2",  REV2, 9, 15, 1, 0b01010101, 2, 4, NA, NA, NA, 0, NA, 0, NA, rev),
  P("2g.70gb",    "2g",    BASE, 1, 14, 2, 0b00010101, 2, 3, NA, NA, NA, 0, NA, 0, NA, 2g),
  P("3g.139gb",   "3g",    BASE, 2, 9,  3, 0b00010001, 4, 2, NA, NA, NA, 0, NA, 0, NA, 3g),
  P("4g.139gb",   "4g",    BASE, 3, 5,  4, 0b00000001, 4, 1, NA, NA, NA, 0, NA, 0, NA, 4g),
  P("7g.278gb",   "7g",    BASE, 4, 0,  7, 0b00000001, 8, 1, NA, NA, NA, 0, NA, 1, NA, 7g),
};
static const uint32_t gb300_278gb_pci[] = {0x31C210DE};

static const struct mig_profile rtxpro6000_96gb_profiles[] = {
  P("1g.24gb",        "1g",        BASE,  0,  14, 1, 0x249, 3,  4, 46,  1, 1, 1, 1, 0, 24192, 1g),
  P("1g.24gb+me",     "1g+me",     ME,    7,  21, 1, 0x249, 3,  1, 46,  1, 1, 1, 1, 1, 24192, 1g),
  P("1g.24gb+gfx",    "1g+gfx",    GFX,   10, 47, 1, 0x249, 3,  4, 46,  1, 1, 1, 1, 0, 24192, 1g),
  P("1g.24gb+me.all", "1g+me.all", MEALL, 15, 65, 1, 0x249, 3,  1, 46,  1, 4, 4, 4, 1, 24192, 1g),
  P("1g.24gb-me",     "1g-me",     NOME,  13, 67, 1, 0x249, 3,  4, 46,  1, 0, 0, 0, 0, 24192, 1g),
  P("2g.48gb",        "2g",        BASE,  1,  5,  2, 0x041, 6,  2, 94,  2, 2, 2, 2, 0, 48512, 2g),
  P("2g.48gb+gfx",    "2g+gfx",    GFX,   11, 35, 2, 0x041, 6,  2, 94,  2, 2, 2, 2, 0, 48512, 2g),
  P("2g.48gb+me.all", "2g+me.all", MEALL, 16, 64, 2, 0x041, 6,  1, 94,  2, 4, 4, 4, 1, 48512, 2g),
  P("2g.48gb-me",     "2g-me",     NOME,  14, 66, 2, 0x041, 6,  2, 94,  2, 0, 0, 0, 0, 48512, 2g),
  P("4g.96gb",        "4g",        BASE,  3,  0,  4, 0x001, 12, 1, 188, 4, 4, 4, 4, 1, 97408, 4g),
  P("4g.96gb+gfx",    "4g+gfx",    GFX,   12, 32, 4, 0x001, 12, 1, 188, 4, 4, 4, 4, 1, 97408, 4g),
};
static const uint32_t rtxpro6000_96gb_pci[] = {0x2BB510DE};

static const struct mig_profile rtxpro5000_48gb_profiles[] = {
  P("1g.24gb",        "1g",        BASE,  0,  NA, 1, 0b11, 1, 2, NA, 1, 1, 1, 0, 0, NA, 1g),
  P("1g.24gb+me",     "1g+me",     ME,    7,  NA, 1, 0b11, 1, 1, NA, 1, 1, 1, 1, 1, NA, 1g),
  P("1g.24gb+gfx",    "1g+gfx",    GFX,   10, NA, 1, 0b11, 1, 2, NA, 1, 1, 1, 0, 0, NA, 1g),
  P("1g.24gb+me.all", "1g+me.all", MEALL, 15, NA, 1, 0b11, 1, 1, NA, 1, 3, 3, 1, 1, NA, 1g),
  P("1g.24gb-me",     "1g-me",     NOME,  13, NA, 1, 0b11, 1, 2, NA, 1, 0, 0, 0, 0, NA, 1g),
  P("2g.48gb",        "2g",        BASE,  1,  NA, 2, 0b01, 2, 1, NA, 4, 3, 3, 1, 1, NA, 2g),
  P("2g.48gb+gfx",    "2g+gfx",    GFX,   11, NA, 2, 0b01, 2, 1, NA, 4, 3, 3, 1, 1, NA, 2g),
};

static const struct mig_profile rtxpro4500_32gb_profiles[] = {
  P("1g.16gb",        "1g",        BASE,  0,  NA, 1, 0b11, 1, 2, NA, 1, 1, 1, 1, 0, NA, 1g),
  P("1g.16gb+gfx",    "1g+gfx",    GFX,   10, NA, 1, 0b11, 1, 2, NA, 1, 1, 1, 1, 0, NA, 1g),
  P("1g.16gb+me.all", "1g+me.all", MEALL, 15, NA, 1, 0b11, 1, 1, NA, 1, 3, 3, 2, 1, NA, 1g),
  P("1g.16gb-me",     "1g-me",     NOME,  13, NA, 1, 0b11, 1, 2, NA, 1, 0, 0, 0, 0, NA, 1g),
  P("2g.32gb",        "2g",        BASE,  1,  NA, 2, 0b01, 2, 1, NA, 2, 3, 3, 2, 1, NA, 2g),
  P("2g.32gb+gfx",    "2g+gfx",    GFX,   11, NA, 2, 0b01, 2, 1, NA, 2, 3, 3, 2, 1, NA, 2g),
};

static const struct mig_profile t4_16gb_profiles[] = {
  P("whole", "whole", BASE, NA, NA, 1, 0b1, 1, 1, 40, NA, 2, 1, 0, 0, 15360, none),
};
static const uint32_t t4_16gb_pci[] = {0x1EB810DE};

static const struct mig_profile v100_16gb_profiles[] = {
  P("whole", "whole", BASE, NA, NA, 1, 0b1, 1, 1, 80, NA, 1, 3, 0, 0, 16160, none),
};
static const uint32_t v100_16gb_pci[] = {0x1DB110DE, 0x1DB410DE};

const struct mig_board mig_board_table[] = {
    {
        .slug = "a30-24gb",
        .gpu = "NVIDIA A30 24GB",
        .arch = "ampere",
        .chip = "GA100 (reduced config)",
        .cc_major = 8,
        .cc_minor = 0,
        .memory_units = 4,
        .compute_slices = 4,
        .max_instances = 4,
        .memory_mib = 24064,
        .has_mig = true,
        .mode_change_needs_reset = true,
        .mode_persists_reboot = true,
        .mode_lost_on_driver_unload = false,
        .engine_limits = {4, 0, 1, 1},
        .pci_device_ids = a30_24gb_pci,
        .pci_device_id_count = COUNT(a30_24gb_pci),
        .confidence = "observed (2g+me placements inferred equal to 2g)",
        .note = NULL,
        .profiles = a30_24gb_profiles,
        .profile_count = COUNT(a30_24gb_profiles),
    },
    {
        .slug = "a100-40gb",
        .gpu = "NVIDIA A100 40GB (SXM4 and PCIe; A800-40GB same names)",
        .arch = "ampere",
        .chip = "GA100",
        .cc_major = 8,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 40320,
        .has_mig = true,
        .mode_change_needs_reset = true,
        .mode_persists_reboot = true,
        .mode_lost_on_driver_unload = false,
        .engine_limits = {5, 0, 1, 1},
        .pci_device_ids = a100_40gb_pci,
        .pci_device_id_count = COUNT(a100_40gb_pci),
        .confidence = "observed",
        .note = NULL,
        .profiles = a100_40gb_profiles,
        .profile_count = COUNT(a100_40gb_profiles),
    },
    {
        .slug = "a100-80gb",
        .gpu = "NVIDIA A100 80GB (SXM4 and PCIe; A800-80GB same names)",
        .arch = "ampere",
        .chip = "GA100",
        .cc_major = 8,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 80640,
        .has_mig = true,
        .mode_change_needs_reset = true,
        .mode_persists_reboot = true,
        .mode_lost_on_driver_unload = false,
        .engine_limits = {5, 0, 1, 1},
        .pci_device_ids = a100_80gb_pci,
        .pci_device_id_count = COUNT(a100_80gb_pci),
        .confidence = "observed for 19,20,14,9,5,0; ID 15 as on A100-40/H100",
        .note = "1g.20gb row only on newer drivers (R525+); 7g was named 7g.79gb by old"
            " go-nvlib/nos/HAMi arithmetic",
        .profiles = a100_80gb_profiles,
        .profile_count = COUNT(a100_80gb_profiles),
    },
    {
        .slug = "h100-80gb-sxm5",
        .gpu = "NVIDIA H100 SXM5 80GB (H800 SXM5 80GB same profiles)",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 81152,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = h100_80gb_sxm5_pci,
        .pci_device_id_count = COUNT(h100_80gb_sxm5_pci),
        .confidence = "observed",
        .note = NULL,
        .profiles = h100_80gb_sxm5_profiles,
        .profile_count = COUNT(h100_80gb_sxm5_profiles),
    },
    {
        .slug = "h100-80gb-pcie",
        .gpu = "NVIDIA H100 PCIe 80GB",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 81152,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = h100_80gb_pcie_pci,
        .pci_device_id_count = COUNT(h100_80gb_pcie_pci),
        .confidence = "inferred (same chip; same id set; DRA log dra#1018 shows 1g.20gb "
            "placement start 6)",
        .note = NULL,
        .profiles = h100_80gb_pcie_profiles,
        .profile_count = COUNT(h100_80gb_pcie_profiles),
    },
    {
        .slug = "h100-94gb",
        .gpu = "NVIDIA H100 NVL 94GB (PCIe) / H100 SXM5 94GB / H800 NVL",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 95360,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = h100_94gb_pci,
        .pci_device_id_count = COUNT(h100_94gb_pci),
        .confidence = "observed",
        .note = NULL,
        .profiles = h100_94gb_profiles,
        .profile_count = COUNT(h100_94gb_profiles),
    },
    {
        .slug = "gh200-96gb",
        .gpu = "NVIDIA GH200 96GB / H100 96GB",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 95232,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = gh200_96gb_pci,
        .pci_device_id_count = COUNT(gh200_96gb_pci),
        .confidence = "inferred",
        .note = NULL,
        .profiles = gh200_96gb_profiles,
        .profile_count = COUNT(gh200_96gb_profiles),
    },
    {
        .slug = "gh200-144gb",
        .gpu = "NVIDIA GH200 144GB HBM3e",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = gh200_144gb_pci,
        .pci_device_id_count = COUNT(gh200_144gb_pci),
        .confidence = "inferred",
        .note = NULL,
        .profiles = gh200_144gb_profiles,
        .profile_count = COUNT(gh200_144gb_profiles),
    },
    {
        .slug = "h200-141gb",
        .gpu = "NVIDIA H200 SXM5 141GB / H200 NVL",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = 143360,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = h200_141gb_pci,
        .pci_device_id_count = COUNT(h200_141gb_pci),
        .confidence = "inferred",
        .note = NULL,
        .profiles = h200_141gb_profiles,
        .profile_count = COUNT(h200_141gb_profiles),
    },
    {
        .slug = "h20-96gb",
        .gpu = "NVIDIA H20 96GB",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .pci_device_ids = h20_96gb_pci,
        .pci_device_id_count = COUNT(h20_96gb_pci),
        .confidence = "inferred",
        .note = NULL,
        .profiles = h20_96gb_profiles,
        .profile_count = COUNT(h20_96gb_profiles),
    },
    {
        .slug = "h20-141gb",
        .gpu = "NVIDIA H20 SXM5 141GB",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .confidence = "inferred",
        .note = NULL,
        .profiles = h20_141gb_profiles,
        .profile_count = COUNT(h20_141gb_profiles),
    },
    {
        .slug = "h100-64gb",
        .gpu = "NVIDIA H100 SXM5 64GB",
        .arch = "hopper",
        .chip = "GH100",
        .cc_major = 9,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {7, 0, 7, 1},
        .confidence = "inferred",
        .note = NULL,
        .profiles = h100_64gb_profiles,
        .profile_count = COUNT(h100_64gb_profiles),
    },
    {
        .slug = "b200-180gb",
        .gpu = "NVIDIA B200 180GB",
        .arch = "blackwell",
        .chip = "GB100",
        .cc_major = 10,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {NA, 0, NA, 1},
        .pci_device_ids = b200_180gb_pci,
        .pci_device_id_count = COUNT(b200_180gb_pci),
        .confidence = "inferred (NVIDIA/k8s-test-infra transcribes the same layout from "
            "NVIDIA diagrams)",
        .note = "engine counts: rows 1g..2g from lgip (DEC 1,1,1,2; JPEG 1,1,1,2; CE "
            "2,2,2,4; OFA 0,1,0,0); 3g/4g/7g null = not seen. The user-guide table "
            "(1 NVDEC/1 JPEG everywhere, CE 2,2,2,3,6,8,16) contradicts lgip on 2g.",
        .profiles = b200_180gb_profiles,
        .profile_count = COUNT(b200_180gb_profiles),
    },
    {
        .slug = "gb200-186gb",
        .gpu = "NVIDIA GB200 HGX 186GB",
        .arch = "blackwell",
        .chip = "GB100",
        .cc_major = 10,
        .cc_minor = 0,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {NA, 0, NA, 1},
        .pci_device_ids = gb200_186gb_pci,
        .pci_device_id_count = COUNT(gb200_186gb_pci),
        .confidence = "inferred",
        .note = "engine counts: rows 1g..2g from lgip (DEC 1,1,1,2; JPEG 1,1,1,2; CE "
            "2,2,2,4; OFA 0,1,0,0); 3g/4g/7g null = not seen. The user-guide table "
            "(1 NVDEC/1 JPEG everywhere, CE 2,2,2,3,6,8,16) contradicts lgip on 2g."
            " Profile NAMES changed with driver/board (24->23, 95->93, 189->186 "
            "GB): mig-parted #227.",
        .profiles = gb200_186gb_profiles,
        .profile_count = COUNT(gb200_186gb_profiles),
    },
    {
        .slug = "b300-269gb",
        .gpu = "NVIDIA B300",
        .arch = "blackwell",
        .chip = "GB110/GB100-class",
        .cc_major = 10,
        .cc_minor = 3,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {NA, 0, NA, 1},
        .pci_device_ids = b300_269gb_pci,
        .pci_device_id_count = COUNT(b300_269gb_pci),
        .confidence = "inferred",
        .note = "names and counts only (NVIDIA/mig-parted, NVIDIA/gpu-operator, aws "
            "hyperpod-cli PR #403); profile ids assumed as on every other 7-slice "
            "board",
        .profiles = b300_269gb_profiles,
        .profile_count = COUNT(b300_269gb_profiles),
    },
    {
        .slug = "gb300-278gb",
        .gpu = "NVIDIA GB300",
        .arch = "blackwell",
        .chip = "GB110/GB100-class",
        .cc_major = 10,
        .cc_minor = 3,
        .memory_units = 8,
        .compute_slices = 7,
        .max_instances = 7,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {NA, 0, NA, 1},
        .pci_device_ids = gb300_278gb_pci,
        .pci_device_id_count = COUNT(gb300_278gb_pci),
        .confidence = "inferred",
        .note = "names and counts only (NVIDIA/mig-parted, NVIDIA/gpu-operator, "
            "NVIDIA/k8s-test-infra)",
        .profiles = gb300_278gb_profiles,
        .profile_count = COUNT(gb300_278gb_profiles),
    },
    {
        .slug = "rtxpro6000-96gb",
        .gpu = "NVIDIA RTX PRO 6000 Blackwell (Server, Workstation, Max-Q) 96GB",
        .arch = "blackwell",
        .chip = "GB202",
        .cc_major = 12,
        .cc_minor = 0,
        .memory_units = 12,
        .compute_slices = 4,
        .max_instances = 4,
        .memory_mib = 97408,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {4, 4, 4, 1},
        .pci_device_ids = rtxpro6000_96gb_pci,
        .pci_device_id_count = COUNT(rtxpro6000_96gb_pci),
        .confidence = "observed",
        .note = NULL,
        .profiles = rtxpro6000_96gb_profiles,
        .profile_count = COUNT(rtxpro6000_96gb_profiles),
    },
    {
        .slug = "rtxpro5000-48gb",
        .gpu = "NVIDIA RTX PRO 5000 Blackwell 48GB",
        .arch = "blackwell",
        .chip = "GB202",
        .cc_major = 12,
        .cc_minor = 0,
        .memory_units = 2,
        .compute_slices = 2,
        .max_instances = 2,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {3, 3, 1, 1},
        .confidence = "normalised/inferred",
        .note = "placement units NORMALISED to 2 (real -lgipp units unknown: half spans"
            " of MAX_PARTITIONABLE_GPCS); profile ids unknown. resource manager: on"
            " a 2-slice board MINI_HALF is the smallest partition and QUARTER is "
            "hidden by NVML",
        .profiles = rtxpro5000_48gb_profiles,
        .profile_count = COUNT(rtxpro5000_48gb_profiles),
    },
    {
        .slug = "rtxpro4500-32gb",
        .gpu = "NVIDIA RTX PRO 4500 Blackwell 32GB",
        .arch = "blackwell",
        .chip = "GB203",
        .cc_major = 12,
        .cc_minor = 0,
        .memory_units = 2,
        .compute_slices = 2,
        .max_instances = 2,
        .memory_mib = NA,
        .has_mig = true,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = true,
        .engine_limits = {3, 3, 2, 1},
        .confidence = "normalised/inferred",
        .note = "placement units NORMALISED to 2 (real -lgipp units unknown: half spans"
            " of MAX_PARTITIONABLE_GPCS); profile ids unknown. resource manager: on"
            " a 2-slice board MINI_HALF is the smallest partition and QUARTER is "
            "hidden by NVML",
        .profiles = rtxpro4500_32gb_profiles,
        .profile_count = COUNT(rtxpro4500_32gb_profiles),
    },
    {
        .slug = "t4-16gb",
        .gpu = "NVIDIA T4 16GB",
        .arch = "turing",
        .chip = "TU104",
        .cc_major = 7,
        .cc_minor = 5,
        .memory_units = 1,
        .compute_slices = 1,
        .max_instances = 1,
        .memory_mib = 15360,
        .has_mig = false,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = false,
        .engine_limits = {2, 1, 0, 0},
        .pci_device_ids = t4_16gb_pci,
        .pci_device_id_count = COUNT(t4_16gb_pci),
        .confidence = "no MIG",
        .note = NULL,
        .profiles = t4_16gb_profiles,
        .profile_count = COUNT(t4_16gb_profiles),
    },
    {
        .slug = "v100-16gb",
        .gpu = "NVIDIA V100 16GB (SXM2 and PCIe)",
        .arch = "volta",
        .chip = "GV100",
        .cc_major = 7,
        .cc_minor = 0,
        .memory_units = 1,
        .compute_slices = 1,
        .max_instances = 1,
        .memory_mib = 16160,
        .has_mig = false,
        .mode_change_needs_reset = false,
        .mode_persists_reboot = false,
        .mode_lost_on_driver_unload = false,
        .engine_limits = {1, 3, 0, 0},
        .pci_device_ids = v100_16gb_pci,
        .pci_device_id_count = COUNT(v100_16gb_pci),
        .confidence = "no MIG",
        .note = NULL,
        .profiles = v100_16gb_profiles,
        .profile_count = COUNT(v100_16gb_profiles),
    },
};

const size_t mig_board_table_count = COUNT(mig_board_table);
