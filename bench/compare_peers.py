#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets one case's plan beside what HiGHS and CBC found, or sums all cases up.

    compare_peers.py PLAN.json RESULTS last|all

RESULTS has a line a case: words | start end | HiGHS cost, bound, seconds | the same of CBC; with
"last" our cost and bound are added to the last one. Ends with 1 when a peer was better.
"""
import json
import math
import statistics
import sys

PEERS = ("HiGHS", "CBC")


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [[part.split() for part in line.rstrip("\n").split("|")] for line in lines]


def add_ours(plan_path, path):
    with open(plan_path, encoding="utf-8") as text:
        plan = json.load(text)
    cases = read(path)
    (start, end) = map(float, cases[-1][1])
    cases[-1][1] = [plan["cost"], plan["bound"]["cost"], round(end - start, 3)]
    with open(path, "w", encoding="utf-8") as text:
        for case in cases:
            text.write("|".join(" ".join(map(str, part)) for part in case) + "\n")
    words, ours, *peers = cases[-1]
    print(f"{' '.join(words):20} cost {ours[0]:<6g} bound {ours[1]:<10.3f} {ours[2]:7.3f} s", end="")
    for name, (cost, bound, seconds) in zip(PEERS, peers):
        print(f"   {name} cost {float(cost):<6g} bound {float(bound):<9.3f} {float(seconds):7.3f} s", end="")
    print(flush=True)


def sum_up(path):
    worse = 0
    cases = read(path)
    for at, name in enumerate(PEERS, start=2):
        higher = lower = 0
        ratios = []
        for case in cases:
            cost, bound, seconds = map(float, case[1])
            peer_cost, peer_bound, peer_seconds = map(float, case[at])
            higher += cost > peer_cost + 1e-6
            lower += math.ceil(bound - 1e-6) < math.ceil(peer_bound - 1e-4)
            ratios.append(peer_seconds / seconds)
        worse += higher + lower
        print(f"{name}: of {len(cases)} cases our cost is higher in {higher}, our bound lower in {lower}; "
              f"its time / ours: median {statistics.median(ratios):.2g}, {min(ratios):.2g} to {max(ratios):.2g}")
    return 1 if worse else 0


if sys.argv[3] == "last":
    add_ours(sys.argv[1], sys.argv[2])
else:
    sys.exit(sum_up(sys.argv[2]))
