#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/mig/board_table.c from a folder of board facts.

    generate_boards.py FACTS > src/mig/board_table.c

FACTS/boards/index.json gives the order, FACTS/boards/SLUG.json one board each. Boards
without MIG are in WHOLE_BOARDS below. The result is committed: a build needs no facts.
"""
import json
import re
import sys
import textwrap

ENGINES = ("decoders", "encoders", "jpeg", "ofa")
GROUPS = {"base": "BASE", "me": "ME", "rev2": "REV2", "gfx": "GFX", "meall": "MEALL",
          "nome": "NOME"}
ARCHITECTURES = ("ampere", "hopper", "blackwell")
NO_MIG = "no MIG"
ABBREVIATIONS = {"MP": "NVIDIA/mig-parted", "GOP": "NVIDIA/gpu-operator",
                 "KTI": "NVIDIA/k8s-test-infra", "GONVML": "NVIDIA/go-nvml",
                 "RM": "resource manager"}

# Memory as nvidia-smi prints it with ECC on in public transcripts (V100: 16384 on R510 and
# later); SMs from NVIDIA's T4 and V100 data sheets; video engines from NVIDIA's Video Encode
# and Decode GPU Support Matrix (NVJPG and OFA as engines of their own came with Ampere).
WHOLE_BOARDS = (
    {"slug": "t4-16gb", "gpu": "NVIDIA T4 16GB", "arch": "turing", "chip": "TU104", "cc": "7.5",
     "pci_device_ids": ["0x1EB810DE"], "sm": 40, "engines": (2, 1, 0, 0), "memory_mib": 15360},
    {"slug": "v100-16gb", "gpu": "NVIDIA V100 16GB (SXM2 and PCIe)", "arch": "volta",
     "chip": "GV100", "cc": "7.0", "pci_device_ids": ["0x1DB110DE (SXM2)", "0x1DB410DE (PCIe)"],
     "sm": 80, "engines": (1, 3, 0, 0), "memory_mib": 16160},
)

HEADER = """\
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
#define P(name, kind, group, nvml_enum, id, slices, starts, units, most, sm, copy, decoders, \\
          encoders, jpeg, ofa, mib, ci)                                                      \\
    {name, kind, MIG_GROUP_##group, nvml_enum, id, slices, units, starts, units, most, sm,   \\
     copy, {decoders, encoders, jpeg, ofa}, mib, ci_##ci, COUNT(ci_##ci)}

enum { NA = MIG_UNKNOWN };
"""


def number(value):
    return "NA" if value is None else str(value)


def text(value):
    if value is None:
        return "NULL"
    pieces = textwrap.wrap(value, 70, drop_whitespace=False)
    return "\n            ".join(json.dumps(piece, ensure_ascii=False) for piece in pieces)


def readable(note):
    """A note without the marks and abbreviations of the facts folder."""
    if note is None:
        return None
    note = re.sub(r" \((?:disagreement )?D\d+\)", "", note)
    return re.sub(r"\b(%s)\b" % "|".join(ABBREVIATIONS), lambda m: ABBREVIATIONS[m.group()], note)


def wrap(line):
    return textwrap.wrap(line, 96, subsequent_indent="    ", break_long_words=False)


def identifier(slug):
    return re.sub(r"[^a-z0-9]", "_", slug)


def bits(starts, units):
    """Binary while the row stays short, hexadecimal on the boards of 12 units."""
    mask = sum(1 << start for start in starts)
    return "0b" + format(mask, "0%db" % units) if units <= 8 else "0x%03x" % mask


def whole_board(entry):
    """A board without MIG in the form of the facts: one profile on one memory unit."""
    engines = dict(zip(ENGINES, entry["engines"]))
    whole = {"name": "whole", "kind": "whole", "group": "base", "nvml_enum": None,
             "profile_id": None, "compute_slices": 1, "memory_units": 1, "placement_starts": [0],
             "placement_size": 1, "max_instances": 1, "sm": entry["sm"], "copy_engines": None,
             "memory_mib": entry["memory_mib"], **engines}
    return {**entry, "memory_units": 1, "compute_slices": 1, "max_gi": 1, "mig_mode": {},
            "engine_limits": engines, "placement_confidence": NO_MIG, "profiles": [whole],
            "compute_instance_profiles": {"whole": []}}


def load(facts):
    with open(facts + "/boards/index.json", encoding="utf-8") as file:
        slugs = list(json.load(file))
    boards = []
    for slug in slugs:
        with open("%s/boards/%s.json" % (facts, slug), encoding="utf-8") as file:
            boards.append(json.load(file))
    boards.sort(key=lambda board: ARCHITECTURES.index(board["arch"]))
    return boards + [whole_board(entry) for entry in WHOLE_BOARDS]


class ComputeInstances:
    """The few distinct lists of compute-instance profiles, each written once."""

    def __init__(self):
        self.names = {}

    def name(self, rows):
        if not rows:
            return "none"
        key = json.dumps(rows)
        if key not in self.names:
            widest = max(row["compute_slices"] for row in rows)
            name = "rev" if rows[0]["profile_id"] == 7 else "%dg" % widest
            assert name not in self.names.values(), "two lists of one name: " + name
            self.names[key] = name
        return self.names[key]

    def write(self, out):
        out.append("\n/* compute slices, profile id, most in one GPU instance, is the default */")
        for key, name in self.names.items():
            rows = ", ".join("{%d, %d, %d, %s}" % (row["compute_slices"], row["profile_id"],
                                                  row["max_in_gi"], str(row["default"]).lower())
                             for row in json.loads(key))
            out.extend(wrap("static const struct mig_ci_profile ci_%s[] = {%s};" % (name, rows)))
        out.append("static const struct mig_ci_profile ci_none[0];")


def profile_row(board, profile, compute_instances):
    assert profile["memory_units"] == profile["placement_size"]
    rows = board["compute_instance_profiles"][profile["name"]]
    return [text(profile["name"]), text(profile["kind"]), GROUPS[profile["group"]],
            number(profile["nvml_enum"]), number(profile["profile_id"]),
            number(profile["compute_slices"]),
            bits(profile["placement_starts"], board["memory_units"]),
            number(profile["placement_size"]), number(profile["max_instances"]),
            number(profile["sm"]), number(profile["copy_engines"]),
            *(number(profile[engine]) for engine in ENGINES),
            number(profile["memory_mib"]), compute_instances.name(rows)]


def write_profiles(board, compute_instances, out):
    rows = [profile_row(board, profile, compute_instances) for profile in board["profiles"]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    out.append("\nstatic const struct mig_profile %s_profiles[] = {" % identifier(board["slug"]))
    for row in rows:
        cells = [(cell + ",").ljust(width + 1) for cell, width in zip(row[:-1], widths)]
        out.append("  P(%s %s)," % (" ".join(cells), row[-1]))
    out.append("};")


def write_pci(board, out):
    ids = ", ".join(entry.split()[0] for entry in board["pci_device_ids"])
    if ids:
        out.append("static const uint32_t %s_pci[] = {%s};" % (identifier(board["slug"]), ids))


def memory_mib(board):
    sizes = [profile["memory_mib"] for profile in board["profiles"]]
    widest = max(profile["placement_size"] for profile in board["profiles"])
    whole = [size for size, profile in zip(sizes, board["profiles"])
             if profile["placement_size"] == widest]
    return whole[0]


def write_board(board, out):
    name = identifier(board["slug"])
    mode = board["mig_mode"]
    major, minor = board["cc"].split(".")
    limits = ", ".join(number(board["engine_limits"][engine]) for engine in ENGINES)
    fields = [("slug", text(board["slug"])), ("gpu", text(board["gpu"])),
              ("arch", text(board["arch"])), ("chip", text(board["chip"])),
              ("cc_major", major), ("cc_minor", minor),
              ("memory_units", number(board["memory_units"])),
              ("compute_slices", number(board["compute_slices"])),
              ("max_instances", number(board["max_gi"])),
              ("memory_mib", number(memory_mib(board))),
              ("has_mig", str(bool(mode)).lower())]
    for field, key in (("mode_change_needs_reset", "mode_change_needs_gpu_reset"),
                       ("mode_persists_reboot", "mode_persists_across_reboot"),
                       ("mode_lost_on_driver_unload", "mode_lost_on_driver_unload")):
        fields.append((field, str(mode.get(key, False)).lower()))
    fields.append(("engine_limits", "{%s}" % limits))
    if board["pci_device_ids"]:
        fields.append(("pci_device_ids", name + "_pci"))
        fields.append(("pci_device_id_count", "COUNT(%s_pci)" % name))
    fields.append(("confidence", text(readable(board["placement_confidence"]))))
    fields.append(("note", text(readable(board.get("note")))))
    fields.append(("profiles", name + "_profiles"))
    fields.append(("profile_count", "COUNT(%s_profiles)" % name))
    out.append("    {")
    out.extend("        .%s = %s," % field for field in fields)
    out.append("    },")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    boards = load(sys.argv[1])
    compute_instances = ComputeInstances()
    tables = []
    for board in boards:
        write_profiles(board, compute_instances, tables)
        write_pci(board, tables)
    out = [HEADER.rstrip()]
    compute_instances.write(out)
    out += tables
    out.append("\nconst struct mig_board mig_board_table[] = {")
    for board in boards:
        write_board(board, out)
    out.append("};\n\nconst size_t mig_board_table_count = COUNT(mig_board_table);")
    print("\n".join(out))


if __name__ == "__main__":
    main()
