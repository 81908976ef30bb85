/* SPDX-License-Identifier: MIT */
/* A modelled process's address space: page-aligned regions, backed on first touch. */
#ifndef GPREEMPT_GPU_MODEL_MEM_H
#define GPREEMPT_GPU_MODEL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct mem_space;

struct mem_space *mem_new(void); /* NULL: ENOMEM */
void mem_free(struct mem_space *s); /* accepts NULL; nobody may be watching */

uint64_t mem_map(struct mem_space *s, size_t bytes); /* address, 0: ENOMEM, or no bytes */
/*
 * Has @pages of the host's, from mmap(2), at @va, below all else: before there is anything else.
 * They are the space's to unmap, and what mem_map_page() takes first. -EBUSY, -ENOMEM.
 */
int mem_adopt(struct mem_space *s, uint64_t va, void *pages, size_t bytes);
uint64_t mem_map_page(struct mem_space *s); /* as mem_map() */
/* The whole range must lie in one region, else -EFAULT. */
int mem_read(const struct mem_space *s, uint64_t va, void *buf, size_t len);
int mem_write(struct mem_space *s, uint64_t va, const void *buf, size_t len);
bool mem_covers(const struct mem_space *s, uint64_t va, size_t len);

uint64_t mem_read64(const struct mem_space *s, uint64_t va); /* 0 when not mapped */
void mem_write64(struct mem_space *s, uint64_t va, uint64_t value); /* nothing when not mapped */
/* The same, added to what is there at that moment; of what is aligned only. */
void mem_add64(struct mem_space *s, uint64_t va, uint64_t value);

/*
 * Hears of every write, after it: a command processor polls the signals it waits for.
 * written() may read, but not write, watch or unwatch.
 */
struct mem_watch {
	LIST_ENTRY(mem_watch) link;
	void (*written)(struct mem_watch *w, uint64_t va, size_t len);
};

void mem_watch(struct mem_space *s, struct mem_watch *w); /* must not be watching */
void mem_unwatch(struct mem_watch *w); /* must be watching */

#endif
