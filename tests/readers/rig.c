/* SPDX-License-Identifier: MIT */
#include "tests/readers/rig.h"

struct gkfd *tree_open(const char *name)
{
	char root[4096];
	struct gkfd *k;

	assert_true(snprintf(root, sizeof(root), TREES "/%s", name) < (int)sizeof(root));
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(root), &k), 0);
	return k;
}

static void fake_close(void *data)
{
	struct fake *f = data;

	for (size_t i = 0; i < f->n_regions; i++)
		free(f->regions[i].bytes);
	free(f);
}

static int fake_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			  size_t *ret_len)
{
	struct fake *f = data;

	for (size_t i = 0; i < f->n_files; i++) {
		const struct fake_file *file = &f->files[i];

		if (file->tree != tree || strcmp(file->path, path) != 0)
			continue;
		if (file->error)
			return file->error;
		*ret_text = strdup(file->text);
		*ret_len = strlen(file->text);
		return *ret_text ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/* A name may come several times, as often as there are files below it: readers must not care. */
static int fake_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct fake *f = data;
	size_t depth = strlen(path), len = 0;
	char *names = calloc(1, 4096), *last = names;
	bool there = false;

	for (size_t i = 0; i < f->n_files; i++) {
		const char *name = f->files[i].path;
		size_t n;

		if (f->files[i].tree != tree || strncmp(name, path, depth) != 0 ||
		    name[depth] != '/')
			continue;
		there = true;
		name += depth + 1;
		n = strcspn(name, "/");
		if (strlen(last) == n && strncmp(last, name, n) == 0)
			continue;
		last = memcpy(names + len, name, n);
		len += n + 1;
	}
	if (!there) {
		free(names);
		return -ENOENT;
	}
	*ret_names = names;
	return 0;
}

static bool read_span(const struct fake *f, const struct gkfd_span *span)
{
	for (size_t i = 0; i < f->n_regions; i++) {
		const struct fake_region *r = &f->regions[i];

		if (span->addr < r->addr || span->addr - r->addr > r->len ||
		    span->len > r->len - (span->addr - r->addr))
			continue;
		memcpy(span->buf, r->bytes + (span->addr - r->addr), span->len);
		return true;
	}
	return false;
}

static int fake_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			 size_t n)
{
	struct fake *f = data;

	f->calls++;
	f->spans += (int)n;
	if (f->dies_at_call && f->calls >= f->dies_at_call)
		return -ESRCH;
	for (size_t i = 0; i < n; i++) {
		if (f->before_span)
			f->before_span(f->arg, i);
		spans[i].ok = read_span(f, &spans[i]);
	}
	return 0;
}

static const struct gkfd_transport fake_transport = {
	.close = fake_close,
	.read_file = fake_read_file,
	.list_dir = fake_list_dir,
	.read_mem = fake_read_mem,
};

struct gkfd *fake_open(struct fake **ret)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct gkfd *k;

	assert_int_equal(gkfd_new(&fake_transport, f, &k), 0);
	*ret = f;
	return k;
}

void fake_file(struct fake *f, enum gkfd_tree tree, const char *path, const char *text)
{
	assert_true(f->n_files < FAKE_MAX);
	f->files[f->n_files++] = (struct fake_file){ .tree = tree, .path = path, .text = text };
}

void fake_error(struct fake *f, enum gkfd_tree tree, const char *path, int error)
{
	fake_file(f, tree, path, "");
	f->files[f->n_files - 1].error = error;
}

void *fake_map(struct fake *f, uint64_t addr, size_t len)
{
	uint8_t *bytes = calloc(1, len);

	assert_non_null(bytes);
	assert_true(f->n_regions < FAKE_MAX);
	f->regions[f->n_regions++] = (struct fake_region){ addr, bytes, len };
	return bytes;
}

void print_rows(FILE *out, const char *indent, uint32_t start, const uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i % 8 == 0)
			fprintf(out, "%s%s%08x:", i ? "\n" : "", indent, start + 4 * (uint32_t)i);
		fprintf(out, " %08x", words[i]);
	}
	fputc('\n', out);
}
