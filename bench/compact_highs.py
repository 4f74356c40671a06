#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HiGHS on the compact aggregate model of a services file on A100-40GB boards, rule batch.

    compact_highs.py SERVICES.yaml MEASUREMENTS.csv [LIMIT_SECONDS]

Prints cost, bound and seconds. Written from the model's definition and shares nothing with
the planner: integer x[service, size] and y[partition], cover and supply rows.
"""
import csv
import sys
import time

import highspy
import yaml

SIZES = ["1g", "2g", "3g", "4g", "7g"]
PARTITIONS = [  # the maximal multisets of an A100
    [7, 0, 0, 0, 0], [5, 1, 0, 0, 0], [4, 0, 1, 0, 0], [3, 2, 0, 0, 0], [3, 0, 0, 1, 0], [2, 1, 1, 0, 0],
    [1, 3, 0, 0, 0], [1, 1, 0, 1, 0], [0, 2, 1, 0, 0], [0, 0, 2, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1],
]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0


def rates(path, objective_ms):
    best = {}
    with open(path, newline="", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if float(row["latency_ms_p90"]) <= objective_ms:
                key = row["model"], row["slice"]
                best[key] = max(best.get(key, 0.0), float(row["throughput_rps"]))
    return best


def build(services, rate):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in (("time_limit", SECONDS), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.99), ("threads", 1)):
        highs.setOptionValue(name, value)
    count, width = len(services), len(SIZES)
    for _ in range(count * width + len(PARTITIONS)):
        highs.addVar(0, highspy.kHighsInf)
    for column in range(count * width + len(PARTITIONS)):
        highs.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    for p in range(len(PARTITIONS)):
        highs.changeColCost(count * width + p, 1.0)
    for i, service in enumerate(services):
        values = [rate.get((service["model"], size), 0.0) for size in SIZES]
        highs.addRow(service["rate_rps"], highspy.kHighsInf, width, [i * width + k for k in range(width)], values)
    for k in range(width):
        index = [i * width + k for i in range(count)]
        value = [-1.0] * count
        for p, partition in enumerate(PARTITIONS):
            if partition[k]:
                index.append(count * width + p)
                value.append(float(partition[k]))
        highs.addRow(0, highspy.kHighsInf, len(index), index, value)
    return highs


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        services = yaml.safe_load(text)["services"]
    highs = build(services, rates(sys.argv[2], services[0]["latency_ms"]))
    start = time.monotonic()
    highs.run()
    seconds = time.monotonic() - start
    info = highs.getInfo()
    print(f"{info.objective_function_value:.10g} {info.mip_dual_bound:.10g} {seconds:.3f}")


main()
