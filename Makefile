# SPDX-License-Identifier: Apache-2.0
# The front door. It only forwards: meson builds, scripts/ sets up, tests/ tests.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
export CC ?= cc

.PHONY: all setup demo check test test-long test-soak test-kernels bench fuzz lint install uninstall deb dist test-fresh clean

all: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

setup:
	@scripts/setup build

$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) --prefix=$(PREFIX) --buildtype=plain >/dev/null || { meson setup $(BUILD) --prefix=$(PREFIX); exit 1; }

demo: all
	@scripts/demo $(BUILD)/cordon

# The loop of a developer: under two minutes on two processors.
check: all
	@scripts/setup test
	@scripts/test $(BUILD) check

# What must hold before a change lands.
test: all
	@scripts/setup test
	@scripts/test $(BUILD) test

# What takes long and proves little more.
test-long: all
	@scripts/setup test
	@scripts/test $(BUILD) long

# Many rounds, kills at random instants, public suites: for a release, and after a change of what they try.
test-soak: all
	@scripts/setup test
	@scripts/test $(BUILD) soak

# A selection on older kernels, in an emulator.
test-kernels: all
	@scripts/setup test
	@scripts/setup kernels
	@scripts/test-kernels $(BUILD)

bench: all
	@scripts/setup bench
	@scripts/bench $(BUILD)

fuzz:
	@scripts/setup fuzz
	@scripts/fuzz

lint:
	@scripts/setup lint
	@scripts/lint $(BUILD)

# The prefix is compiled in, so it is settled before anything is built. /etc is changed for the running system only.
install: setup $(BUILD)/build.ninja
	@meson configure $(BUILD) --prefix=$(PREFIX) >/dev/null
	@ninja -C $(BUILD) -j $(JOBS)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet --no-rebuild
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then sh $(BUILD)/apparmor/apparmor-profile install; fi

uninstall: setup $(BUILD)/build.ninja
	@meson configure $(BUILD) --prefix=$(PREFIX) >/dev/null
	@ninja -C $(BUILD) --quiet build.ninja
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then sh $(BUILD)/apparmor/apparmor-profile remove; fi
	@scripts/uninstall $(BUILD) $(DESTDIR)

# Debian packages, in $(BUILD)/deb.
deb:
	@scripts/setup deb
	@scripts/deb $(BUILD)

# An archive of what is committed, in $(BUILD)/meson-dist.
dist: all
	@meson dist -C $(BUILD) --no-tests --formats xztar

# All of it on a new Debian 12. It takes half an hour, and no other target needs it.
test-fresh:
	@scripts/setup fresh
	@scripts/test-fresh $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-clang build-fuzz
