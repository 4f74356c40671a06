#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of a Meson JUnit log: prints what failed, with what TAP says of it, and
what was skipped, then one line `N passed, N failed[, N skipped]`. Exit 1 when a case failed or
none ran."""
import sys
import xml.etree.ElementTree as tree


LINES_MOST = 25  # of what is said of a failure


def told(suite, case):
    """The comments behind a case's line of TAP, indented; of a crash the end of stderr."""
    output = (suite.findtext("system-out") or "").splitlines()
    starts = [i for i, line in enumerate(output) if line.startswith("not ok") and line.endswith(case)]
    lines = []
    for line in output[starts[0] + 1:] if starts else []:
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#"))
    lines = lines or [" " + line for line in (suite.findtext("system-err") or "").splitlines()]
    return ["   " + line for line in lines[-LINES_MOST:]]


def main(path):
    passed = failed = 0
    skipped = []
    for suite in tree.parse(path).getroot().iter("testsuite"):
        cases = list(suite.iter("testcase"))
        for case in cases:
            name = f"{suite.get('name')}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                print("\n".join([f"failed: {name}"] + told(suite, case.get("name").partition(" - ")[2])))
            elif case.find("skipped") is not None:
                skipped.append(name)
            else:
                passed += 1
    for name in skipped:
        print("skipped:", name)
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
