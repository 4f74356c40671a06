#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's nvidia-ml-py walks every simulated board.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer python/bin/python

with_library "$peers/python/bin/python" "$TRANCHE_SOURCE_ROOT/tests/peers/nvml_walk.py" "$TRANCHE" "$work"
