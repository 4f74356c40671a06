# SPDX-License-Identifier: Apache-2.0
all: build/build.ninja
	ninja -C build
build/build.ninja:
	meson setup build
.PHONY: all
