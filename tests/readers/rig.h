/* SPDX-License-Identifier: MIT */
/* What the tests of the readers stand on: fixture trees, and a transport that is made up. */
#ifndef GPREEMPT_TESTS_READERS_RIG_H
#define GPREEMPT_TESTS_READERS_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/kfd.h"
#include "util/macros.h"

#define _cleanup_gkfd_ _cleanup_(gkfd_freep)

/* The kernel's transport below tests/readers/trees/@name; fails the test on error. */
struct gkfd *tree_open(const char *name);

#define FAKE_MAX 32

/* Files and memory as the test says; everything else is not there. */
struct fake {
	struct fake_file {
		enum gkfd_tree tree;
		const char *path, *text;
		int error; /* instead of the text */
	} files[FAKE_MAX];
	size_t n_files;
	struct fake_region {
		uint64_t addr;
		uint8_t *bytes;
		size_t len;
	} regions[FAKE_MAX];
	size_t n_regions;
	int calls, spans; /* of read_mem */
	int dies_at_call; /* from that call on -ESRCH; 0: never */
	void (*before_span)(void *arg, size_t i); /* the target moves meanwhile; may be NULL */
	void *arg;
};

struct gkfd *fake_open(struct fake **ret);
void fake_file(struct fake *f, enum gkfd_tree tree, const char *path, const char *text);
void fake_error(struct fake *f, enum gkfd_tree tree, const char *path, int error);
void *fake_map(struct fake *f, uint64_t addr, size_t len);

/* Rows as the driver prints them: "<indent>OFFSET: WORD ...", 8 words each. */
void print_rows(FILE *out, const char *indent, uint32_t start, const uint32_t *words, size_t n);

#endif
