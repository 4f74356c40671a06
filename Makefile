# SPDX-License-Identifier: Apache-2.0
# Front door; Meson and Ninja do the work. `make help` lists the targets.

BUILD = build
SETUP = tools/setup.sh
RUN_TESTS = tools/run_tests.sh
# Sanitizer runs stop at the first finding, and are slower than the timeouts allow for.
SANITIZER_ENV = ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1

.PHONY: all help setup demo check asan tsan tidy analyze format definitions measure bench check-peers check-k8s install clean

all: $(BUILD)/build.ninja ## build build/tranche
	@ninja -C $(BUILD)

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

$(BUILD)/build.ninja build-asan/build.ninja build-tsan/build.ninja build-clang/build.ninja: setup-build

.PHONY: setup-build
setup-build:
	@$(SETUP) build

$(BUILD)/build.ninja:
	@test -f $@ || meson setup $(BUILD)

build-asan/build.ninja:
	@test -f $@ || meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false

build-tsan/build.ninja:
	@test -f $@ || meson setup build-tsan -Db_sanitize=thread -Db_lundef=false -Db_pie=true

build-clang/build.ninja:
	@test -f $@ || CC=clang meson setup build-clang

demo: $(BUILD)/build.ninja ## the main job: measure, plan, verify, draw (build/demo)
	@ninja -C $(BUILD) run
	@$(SETUP) demo
	@tools/fetch_packages.sh $(BUILD)
	@examples/demo/run.sh $(BUILD)

check: all ## every test that needs only this repository, ONNX Runtime and the distribution
	@$(SETUP) check
	@tools/fetch_packages.sh $(BUILD)
	@$(RUN_TESTS) $(BUILD) check

asan: build-asan/build.ninja ## the same tests under AddressSanitizer and UBSan
	@$(SETUP) check
	@ninja -C build-asan
	@tools/fetch_packages.sh build-asan
	@$(SANITIZER_ENV) $(RUN_TESTS) build-asan check --timeout-multiplier 5

tsan: build-tsan/build.ninja ## the tests with threads under ThreadSanitizer
	@$(SETUP) check
	@ninja -C build-tsan
	@tools/fetch_packages.sh build-tsan
	@$(SANITIZER_ENV) $(RUN_TESTS) build-tsan threads --timeout-multiplier 5

tidy: ## clang without warnings, clang-tidy, format, layers, spelling, shell scripts
	@$(SETUP) build tidy
	@tools/tidy.sh

analyze: ## clang's path-sensitive analyzer over every source (minutes; not part of CI)
	@$(SETUP) build tidy
	@test -f build-clang/build.ninja || CC=clang meson setup build-clang
	@ninja -C build-clang
	@git ls-files 'src/*.c' | xargs -P $$(nproc) -n 4 clang-tidy --quiet -p build-clang \
		--checks='-*,clang-analyzer-*,-clang-analyzer-valist.Uninitialized,-clang-analyzer-security.*'

format: ## clang-format every source
	@$(SETUP) tidy
	@git ls-files '*.c' '*.h' | xargs clang-format -i

definitions: all ## write deploy/crds and the reference of their fields anew
	@$(BUILD)/deploy/write_definitions . .

measure: ## our figures beside the targets of the style table
	@$(SETUP) tidy
	@python3 tools/measure.py --check

bench: all ## ratios against floors and peers (minutes; not part of CI)
	@$(SETUP) check bench
	@tools/fetch_packages.sh $(BUILD)
	@meson test -C $(BUILD) --benchmark --no-rebuild --verbose

check-peers: all ## tests against real clients and peers
	@$(SETUP) check peers
	@tools/fetch_packages.sh $(BUILD)
	@tools/setup_peers.sh $(BUILD)
	@$(RUN_TESTS) $(BUILD) peers

check-k8s: all ## tests against a real Kubernetes control plane (the first run builds one)
	@$(SETUP) check k8s
	@tools/setup_k8s.sh $(BUILD)
	@$(RUN_TESTS) $(BUILD) k8s

install: all ## install to the prefix that Meson was given
	@meson install -C $(BUILD)

clean: ## remove every build folder
	rm -rf build build-*
