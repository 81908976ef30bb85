/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/conformance/world.h"

void broken(const char *fmt, ...)
{
	va_list ap;

	fputs("conformance: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static int open_arena(struct world *w)
{
	void *at;

	w->arena_fd = memfd_create("conformance", 0);
	if (w->arena_fd < 0 || ftruncate(w->arena_fd, ARENA_BYTES) < 0)
		return -errno;
	at = mmap((void *)(uintptr_t)ARENA_ADDRESS, ARENA_BYTES, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED_NOREPLACE, w->arena_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	w->arena = at;
	w->arena_used = ARENA_FIXED;
	return 0;
}

static int open_pipes(struct world *w)
{
	memset(w->pipes, 0xff, sizeof(w->pipes));
	for (size_t i = 0; i < WORLD_PIPES; i++)
		if (pipe2(w->pipes[i], O_NONBLOCK) < 0)
			return -errno;
	return 0;
}

static void empty_pipes(struct world *w)
{
	static char buf[4096];

	for (size_t i = 0; i < WORLD_PIPES; i++)
		while (read(w->pipes[i][0], buf, sizeof(buf)) > 0)
			continue;
}

static void close_pipes(struct world *w)
{
	for (size_t i = 0; i < WORLD_PIPES; i++) {
		closep(&w->pipes[i][0]);
		closep(&w->pipes[i][1]);
	}
}

int world_open(const char *spec, bool old_rule, struct world *w)
{
	int r;

	*w = (struct world){ .arena_fd = -1, .out = stdout };
	r = open_pipes(w);
	if (r == 0)
		r = open_arena(w);
	if (r < 0)
		return r;
	if (!strcmp(spec, "driver"))
		return world_driver_open(w);
	if (!strncmp(spec, "model:", 6))
		return world_model_open(w, spec + 6, old_rule);
	return -EINVAL;
}

void world_close(struct world *w)
{
	if (w->ops)
		w->ops->free(w);
	free(w->properties);
	if (w->arena)
		munmap(w->arena, ARENA_BYTES);
	closep(&w->arena_fd);
	close_pipes(w);
}

int world_begin(struct world *w, const char *case_name)
{
	memset(w->arena + ARENA_FIXED, 0, w->arena_used - ARENA_FIXED);
	w->arena_used = ARENA_FIXED;
	w->n_actors = 0;
	w->n_names = 0;
	w->case_name = case_name;
	empty_pipes(w);
	return w->ops->start(w);
}

void world_end(struct world *w)
{
	w->ops->stop(w);
	fflush(w->out);
}

void *arena(struct world *w, size_t bytes)
{
	void *p = w->arena + w->arena_used;

	bytes = (bytes + 63) & ~(size_t)63;
	if (bytes > ARENA_BYTES - w->arena_used)
		broken("%s: no room left", w->case_name);
	w->arena_used += bytes;
	return p;
}

bool in_arena(const struct world *w, const void *p)
{
	return (uintptr_t)p - (uintptr_t)w->arena < ARENA_BYTES;
}

void world_name(struct world *w, enum name_kind kind, uint64_t value, uint64_t bytes,
		const char *fmt, ...)
{
	struct name *n = &w->names[w->n_names];
	va_list ap;

	if (w->n_names == MAX_NAMES)
		broken("%s: too many names", w->case_name);
	*n = (struct name){ .kind = kind, .value = value, .bytes = bytes };
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
	w->n_names++;
}

void say(struct world *w, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL, *line = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0)
		broken("out of memory");
	line = normalise(w->names, w->n_names, text);
	if (!line)
		broken("out of memory");
	fprintf(w->out, "%s: %s\n", w->case_name, line);
}
