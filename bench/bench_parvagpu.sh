#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ParvaGPU's own data (SC'24): for each demand set, the GPUs of the plan that its artifact
# ships against ours with proof of optimality, under its own latency rule (`half`; its one
# latency a row is the mean). Then the MPS variant of MIG-serving's figure 11 on the same
# profiles: what partitions save against whole GPUs when every instance may run several
# processes.
#
#     bench_parvagpu.sh TRANCHE DATA_FOLDER
set -euo pipefail
tranche=$1
data=$2
if [ ! -d "$data" ]; then
    echo "bench_parvagpu: no data at $data: nothing to compare with"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

import_profiles() {
    local file model
    for file in "$data"/prof_data/*.csv; do
        model=$(basename "$file" .csv)
        "$tranche" bench import --format parvagpu --model "$model" --board a100-80gb "$file" \
            -o "$work/one.csv" >/dev/null
        if [ -s "$work/all.csv" ]; then
            tail -n +2 "$work/one.csv" >>"$work/all.csv"
        else
            cp "$work/one.csv" "$work/all.csv"
        fi
    done
}

# services of a demand set: name, model, rate, objective
write_services() {
    local set=$1
    echo "latency_rule: half"
    echo "services:"
    awk -F, -v set="$set" '
        FNR == 1 { file++; for (i = 2; i <= NF; i++) name[i] = $i; next }
        $1 == set { for (i = 2; i <= NF; i++) value[file, i] = $i; last = NF }
        END {
            for (i = 2; i <= last; i++)
                if (value[1, i] != "N/A")
                    printf "  - {name: %s, model: %s, rate_rps: %s, latency_ms: %s, percentile: mean}\n",
                        name[i], name[i], value[1, i], value[2, i]
        }' "$data/slo/SLO_req_rate.csv" "$data/slo/SLO_latency.csv"
}

field() { # of one algorithm's row of `plan compare`: field ALGORITHM COLUMN
    awk -v name="$1" -v column="$2" '$1 == name { print $column }' "$work/table"
}

import_profiles
echo "set  shipped  ours  status    proved_bound  parvagpu_arm  jormungandr  whole  seconds"
for set in 1 2 3 5 6; do
    write_services "$set" >"$work/services.yaml"
    shipped=$(tail -n +2 "$data/deployment/SLO${set}_ParvaGPU_deploy.csv" | cut -d, -f1,2 | sort -u | wc -l)
    "$tranche" plan compare -s "$work/services.yaml" -m "$work/all.csv" -a parvagpu \
        -a jormungandr -a whole >"$work/table"
    bound=$(sed -n 's/^proved bound: \([0-9.]*\).*/\1/p' "$work/table")
    printf '%-3s  %7s  %4s  %-8s  %12s  %12s  %11s  %5s  %7s\n' "$set" "$shipped" \
        "$(field exact 3)" "$(field exact 2)" "$bound" "$(field parvagpu 3)" \
        "$(field jormungandr 3)" "$(field whole 3)" "$(field exact 6)"
done

echo
echo "MPS on top (figure 11's question, ParvaGPU's profiles, batch rule, 100 ms): GPUs"
echo "processes  whole  exact  saving   paper, figure 11"
for most in 1 2 4; do
    awk -F, -v most="$most" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "procs") c = i } NR == 1 || $c <= most' \
        "$work/all.csv" >"$work/most.csv"
    { echo "latency_rule: batch"; echo "services:"
      awk -F, 'NR > 1 { print $1 }' "$work/all.csv" | sort -u | awk '
        { printf "  - {name: %s, model: %s, rate_rps: %d, latency_ms: 100, percentile: mean}\n",
            $1, $1, 6000 + 2000 * (NR % 5) }'; } >"$work/services.yaml"
    "$tranche" plan compare -s "$work/services.yaml" -m "$work/most.csv" -a whole >"$work/table"
    case $most in
    1) paper="33.2 32.4 27.0 45.8 %" ;;
    2) paper="16.2 19.3 20.9 21.8 %" ;;
    4) paper=" 5.7  7.3  9.0 10.2 %" ;;
    esac
    whole=$(field whole 3)
    exact=$(field exact 3)
    printf '%-9s  %5s  %5s  %5s %%   %s\n' "<= $most" "$whole" "$exact" \
        "$(awk -v a="$whole" -v b="$exact" 'BEGIN { printf "%.1f", 100 * (1 - b / a) }')" "$paper"
done
