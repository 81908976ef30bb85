# SPDX-License-Identifier: MIT
# The front door. Meson does the work, in build/; every target first installs what is missing.
#
#   make demo       the whole story on a software GPU     make test      all tests
#   make            build                                 make check     fast ones, under a minute
#   make install    DESTDIR=, prefix=, libdir=            make clean
#   make bench      figures, as JSON and as a table       make mutants   do tests notice bugs?
#   make fuzz       FUZZ_SECONDS=600                      make test-asan test-tsan test-long test-vm
#   make format     make format-check                     make test-fleet test-vm-e2e test-vm-daemon
#   make soak       SOAK_SECONDS=3600                     make test-vm-ext test-vm-long
#   make packages   Debian's; also rpms, dist             make mutants-driver mutants-ext
#   VERBOSE=1       shows the commands                    make test-vm-debug soak-ext
#   make help       this                                  make test-packages

B := build
prefix ?= /usr/local
libdir ?= lib
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 3600
BASE ?= HEAD

# What "make test" runs, in this order. Each name is a stage of scripts/run-tests.
TEST_STAGES := plain asan tsan outside vm-all

VERBOSE ?= 0
ifneq ($(VERBOSE),1)
.SILENT:
MAKEFLAGS += --no-print-directory
endif
export VERBOSE FUZZ_SECONDS

all:
	scripts/deps build
	scripts/build $(B) $(OPTIONS)

demo: all
	$(B)/cmd/gpreempt/gpreempt demo

test check test-asan test-tsan test-long test-fleet test-vm test-vm-e2e test-vm-ext \
	test-vm-daemon test-vm-long test-vm-debug test-packages:
	scripts/deps build test
	$(if $(filter test,$@),scripts/deps browser || echo "no browser: its test is skipped" >&2)
	scripts/run-tests $($@_STAGES)

test_STAGES := $(TEST_STAGES)
check_STAGES := check
test-asan_STAGES := asan
test-tsan_STAGES := tsan
test-long_STAGES := long
test-fleet_STAGES := fleet
test-vm_STAGES := vm
test-vm-e2e_STAGES := vm-e2e
test-vm-ext_STAGES := vm-ext
test-vm-daemon_STAGES := vm-daemon
test-vm-long_STAGES := vm-long
test-vm-debug_STAGES := vm-debug
test-packages_STAGES := packages

fuzz:
	scripts/deps build fuzz
	scripts/run-fuzz $(FUZZ_SECONDS)

soak: all
	tests/daemon/soak $(B) $(SOAK_SECONDS)

# The scheduler in the driver; the seconds are the guest's.
soak-ext:
	scripts/deps build test
	tests/ext/soak $(SOAK_SECONDS)

mutants:
	scripts/deps build test
	tests/mutants/run $(MUTANT)

mutants-driver: all
	tests/mutants/run-driver $(MUTANT)

mutants-ext: all
	tests/mutants/run-driver --ext $(MUTANT)

bench: all
	bench/run $(B)

install:
	scripts/deps build
	scripts/build $(B) -Dprefix=$(prefix) -Dlibdir=$(libdir) $(OPTIONS)
	meson install -C $(B) --no-rebuild $(if $(filter 1,$(VERBOSE)),,--quiet)
	$(if $(DESTDIR),,PATH=$$PATH:/sbin:/usr/sbin ldconfig || true)

packages rpms:
	scripts/deps build packages
	scripts/$@

dist:
	scripts/dist

format format-check:
	scripts/deps format
	scripts/format $(if $(filter format-check,$@),--check) $(BASE)

clean:
	rm -rf $(B)

help:
	sed -n 's/^#   //p' Makefile

.PHONY: all demo test check test-asan test-tsan test-long test-fleet test-vm test-vm-e2e \
	test-vm-ext test-vm-daemon test-vm-long test-vm-debug test-packages fuzz soak soak-ext \
	mutants mutants-driver mutants-ext bench install packages rpms dist format format-check \
	clean help
