#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of a Meson JUnit log: prints what failed and was skipped, then one
line `N passed, N failed[, N skipped]`. Exit 1 when a case failed or none ran."""
import sys
import xml.etree.ElementTree as tree


def main(path):
    passed = failed = 0
    skipped = []
    for suite in tree.parse(path).getroot().iter("testsuite"):
        cases = list(suite.iter("testcase"))
        for case in cases:
            name = f"{suite.get('name')}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                print("failed:", name)
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
