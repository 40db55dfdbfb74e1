# SPDX-License-Identifier: Apache-2.0
# The front door. It only forwards: meson builds, scripts/ sets up, tests/ tests.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
export CC ?= cc

.PHONY: all setup demo test bench fuzz lint install clean

all: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

setup:
	@scripts/setup build

$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) --prefix=$(PREFIX) --buildtype=plain >/dev/null || { meson setup $(BUILD) --prefix=$(PREFIX); exit 1; }

demo: all
	@scripts/demo $(BUILD)/cordon

test: all
	@scripts/setup test
	@scripts/test $(BUILD)

bench: all
	@scripts/setup bench
	@scripts/bench $(BUILD)

fuzz:
	@scripts/setup fuzz
	@scripts/fuzz

lint: all
	@scripts/setup lint
	@scripts/lint $(BUILD)

install: all
	@meson configure $(BUILD) --prefix=$(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-clang build-fuzz
