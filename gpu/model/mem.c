/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/model/mem.h"
#include "util/array.h"
#include "util/macros.h"

#define PAGE_BYTES 4096ull
#define FIRST_VA 0x7f0000000000ull /* where a Linux process has its anonymous mappings */
#define END_VA 0x7ffffffff000ull
#define GUARD_BYTES (16 * PAGE_BYTES) /* a run past the end must not hit the next region */

/* Regions share a few mappings of the host: a mapping for each is what they would cost most. */
#define CHUNK_BYTES (1ull << 30)

struct chunk {
	struct chunk *next;
	unsigned char *host;
	size_t bytes, used;
};

struct region {
	uint64_t va;
	size_t bytes;
	unsigned char *host;
};

struct mem_space {
	struct region *regions; /* by address */
	size_t n, cap;
	uint64_t next_va;
	unsigned char *pages; /* adopted */
	uint64_t pages_va;
	size_t n_pages, n_taken; /* of them; those are the first regions */
	struct chunk *chunks; /* the first has room */
	LIST_HEAD(, mem_watch) watches;
};

struct mem_space *mem_new(void)
{
	struct mem_space *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->next_va = FIRST_VA;
	LIST_INIT(&s->watches);
	return s;
}

void mem_free(struct mem_space *s)
{
	if (!s)
		return;
	while (s->chunks) {
		struct chunk *c = s->chunks;

		s->chunks = c->next;
		munmap(c->host, c->bytes);
		free(c);
	}
	free(s->regions);
	free(s);
}

static int add_chunk(struct mem_space *s, size_t bytes)
{
	_cleanup_free_ struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->bytes = bytes;
	c->host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->host == MAP_FAILED)
		return -errno;
	madvise(c->host, bytes, MADV_NOHUGEPAGE); /* pages are touched far apart */
	c->next = s->chunks;
	s->chunks = steal_ptr(&c);
	return 0;
}

/* Zeroed memory of the host, lasting as long as the space; NULL: ENOMEM. */
static unsigned char *take_host(struct mem_space *s, size_t bytes)
{
	struct chunk *c = s->chunks;

	if (!c || c->bytes - c->used < bytes) {
		if (add_chunk(s, MAX(bytes, CHUNK_BYTES)) < 0 && add_chunk(s, bytes) < 0)
			return NULL;
		c = s->chunks;
	}
	c->used += bytes;
	return c->host + c->used - bytes;
}

uint64_t mem_map(struct mem_space *s, size_t bytes)
{
	size_t whole = (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	uint64_t va = s->next_va;
	unsigned char *host;

	if (!bytes || whole < bytes || whole > END_VA - va ||
	    array_reserve(&s->regions, s->n + 1, &s->cap, sizeof(*s->regions)) < 0)
		return 0;
	host = take_host(s, whole);
	if (!host)
		return 0;
	s->regions[s->n++] = (struct region){ .va = va, .bytes = whole, .host = host };
	s->next_va = MIN(va + whole + GUARD_BYTES, END_VA);
	return va;
}

int mem_adopt(struct mem_space *s, uint64_t va, void *pages, size_t bytes)
{
	struct chunk *c;

	if (s->chunks || va + bytes > FIRST_VA)
		return -EBUSY;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct chunk){ .host = pages, .bytes = bytes, .used = bytes };
	s->chunks = c;
	s->pages = pages;
	s->pages_va = va;
	s->n_pages = bytes / PAGE_BYTES;
	return 0;
}

uint64_t mem_map_page(struct mem_space *s)
{
	size_t at = s->n_taken;
	struct region r = { .va = s->pages_va + at * PAGE_BYTES, .bytes = PAGE_BYTES };

	if (at == s->n_pages)
		return mem_map(s, PAGE_BYTES);
	if (array_reserve(&s->regions, s->n + 1, &s->cap, sizeof(*s->regions)) < 0)
		return 0;
	r.host = s->pages + at * PAGE_BYTES;
	memmove(&s->regions[at + 1], &s->regions[at], (s->n - at) * sizeof(*s->regions));
	s->regions[at] = r;
	s->n++;
	s->n_taken++;
	return r.va;
}

static unsigned char *locate(const struct mem_space *s, uint64_t va, size_t len)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct region *r = &s->regions[mid];

		if (va < r->va) {
			high = mid;
		} else if (va - r->va >= r->bytes) {
			low = mid + 1;
		} else {
			uint64_t offset = va - r->va;

			return len <= r->bytes - offset ? r->host + offset : NULL;
		}
	}
	return NULL;
}

bool mem_covers(const struct mem_space *s, uint64_t va, size_t len)
{
	return locate(s, va, len) != NULL;
}

int mem_read(const struct mem_space *s, uint64_t va, void *buf, size_t len)
{
	const unsigned char *p = locate(s, va, len);

	if (!p)
		return -EFAULT;
	if (len)
		memcpy(buf, p, len);
	return 0;
}

int mem_write(struct mem_space *s, uint64_t va, const void *buf, size_t len)
{
	unsigned char *p = locate(s, va, len);
	struct mem_watch *w;

	if (!p)
		return -EFAULT;
	if (len)
		memcpy(p, buf, len);
	LIST_FOREACH(w, &s->watches, link)
		w->written(w, va, len);
	return 0;
}

uint64_t mem_read64(const struct mem_space *s, uint64_t va)
{
	uint64_t value = 0;

	mem_read(s, va, &value, sizeof(value));
	return value;
}

void mem_write64(struct mem_space *s, uint64_t va, uint64_t value)
{
	mem_write(s, va, &value, sizeof(value));
}

void mem_add64(struct mem_space *s, uint64_t va, uint64_t value)
{
	unsigned char *p = va % sizeof(value) ? NULL : locate(s, va, sizeof(value));

	if (p)
		__atomic_fetch_add((uint64_t *)(void *)p, value, __ATOMIC_RELAXED);
}

void mem_watch(struct mem_space *s, struct mem_watch *w)
{
	LIST_INSERT_HEAD(&s->watches, w, link);
}

void mem_unwatch(struct mem_watch *w)
{
	LIST_REMOVE(w, link);
}
