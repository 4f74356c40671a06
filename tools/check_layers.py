#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the includes and the Meson edges of src/ against the table in ARCHITECTURE.md.

A module may include its own headers and those of the modules that its row names; its
meson.build may not use more. Exit 1 with one line for each offender."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include "(\w+)/', re.M)
USES = re.compile(r"^uses = \[([^\]]*)\]", re.M)
HEADER_ONLY = {("sim", "gpu")}  # "the ABI header alone"


def edges():
    rows = {}
    for name, uses in ROW.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")):
        if name != "folder":
            rows[name] = set(re.findall(r"\w+", re.sub(r"\([^)]*\)", "", uses)))
    everything = set(rows)
    return {name: everything if uses == {"all"} else uses & everything for name, uses in rows.items()}


def offenders(allowed):
    for folder in sorted(path for path in (ROOT / "src").iterdir() if path.is_dir()):
        files = sorted(folder.rglob("*.[ch]"))
        if files and folder.name not in allowed:
            yield f"src/{folder.name}: no row in ARCHITECTURE.md"
            continue
        may = allowed.get(folder.name, set()) | {folder.name}
        for file in files:
            for used in INCLUDE.findall(file.read_text(encoding="utf-8")):
                if used not in may:
                    yield f"{file.relative_to(ROOT)}: includes {used}/, which {folder.name} may not use"
        build = folder / "meson.build"
        for text in USES.findall(build.read_text(encoding="utf-8")) if build.exists() else []:
            for used in re.findall(r"'(\w+)'", text):
                if used not in may or (folder.name, used) in HEADER_ONLY:
                    yield f"{build.relative_to(ROOT)}: links {used}, which {folder.name} may not"


def main():
    found = list(offenders(edges()))
    print("\n".join(found) if found else "layers: every include follows ARCHITECTURE.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
