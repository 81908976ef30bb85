/* SPDX-License-Identifier: MIT */
/* The fake's /proc: of processes what the kernel shows of them, and the driver's own files. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "tests/nvrm/fake_rm_state.h"
#include "util/macros.h"

#define TEXT_MAX 4096

_printf_(2, 3) static int put(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, TEXT_MAX, format, args);
	va_end(args);
	return 0;
}

static const struct fake_gpu *gpu_at(const struct fake_rm *f, const char *address)
{
	unsigned int domain, bus, slot;

	if (sscanf(address, "%x:%x:%x.", &domain, &bus, &slot) != 3)
		return NULL;
	for (size_t i = 0; i < f->n_gpus; i++)
		if (f->gpus[i].gpu == (bus << 8 | slot))
			return &f->gpus[i];
	return NULL;
}

static int read_gpu(const struct fake_rm *f, const char *rest, char *text)
{
	const struct fake_gpu *g = gpu_at(f, rest);
	const char *file = strchr(rest, '/');

	if (!g || !file || strcmp(file, "/information") != 0)
		return -ENOENT;
	return put(text,
		   "Model: \t\t %s\nIRQ:   \t\t 88\n"
		   "GPU UUID: \t GPU-0b3f5a5e-7a1c-4f4e-9a52-%012x\n"
		   "Video BIOS: \t 96.00.a5.00.01\nBus Type: \t PCIe\n"
		   "Bus Location: \t 0000:%02x:%02x.0\nDevice Minor: \t %zu\n"
		   "GPU Excluded:\t No\n",
		   g->name, g->gpu, g->gpu >> 8, g->gpu & 0xff, (size_t)(g - f->gpus));
}

static bool may_trace(const struct fake_rm *f, const struct fake_process *p)
{
	return f->caller == 0 || f->caller == p->uid;
}

static int read_link(const struct fake_rm *f, const struct fake_process *p, const char *number,
		     char *text)
{
	long long n = strtol(number, NULL, 10) - FAKE_FIRST_NUMBER;

	if (!may_trace(f, p))
		return -EACCES;
	if (n >= -FAKE_FIRST_NUMBER && n < 0)
		return put(text, "/dev/null");
	if (n >= FAKE_FIRST_PLAIN && n < FAKE_FIRST_PLAIN + p->n_plain)
		return put(text, "socket:[%lld]", n);
	if (n < 0 || n >= p->n_numbers || !p->numbers[n].path[0])
		return -ENOENT;
	return put(text, "%s", p->numbers[n].path);
}

static int read_process(const struct fake_rm *f, const struct fake_process *p, const char *file,
			char *text)
{
	if (strncmp(file, "fd/", 3) == 0)
		return read_link(f, p, file + 3, text);
	if (strcmp(file, "comm") == 0)
		return put(text, "%s\n", p->comm);
	if (strcmp(file, "cmdline") == 0)
		return put(text, "%s", p->comm);
	if (strcmp(file, "exe") == 0)
		return may_trace(f, p) ? put(text, "%s", p->exe) : -EACCES;
	if (strcmp(file, "stat") == 0)
		return put(text,
			   "%d (%s) S %d %d %d 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0 0\n",
			   p->pid, p->comm, p->parent, p->pid, p->pid,
			   (unsigned long long)p->start);
	if (strcmp(file, "status") == 0)
		return put(text,
			   "Name:\t%s\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n"
			   "TracerPid:\t0\nUid:\t%u\t%u\t%u\t%u\nGid:\t0\t0\t0\t0\n",
			   p->comm, p->pid, p->pid, p->parent, p->uid, p->uid, p->uid,
			   p->uid);
	return -ENOENT;
}

static int read_file(struct fake_rm *f, const char *path, char *text)
{
	const struct fake_process *p;
	char *end;
	pid_t pid;

	if (f->version && strcmp(path, "driver/nvidia/version") == 0)
		return put(text, "%s", f->version);
	if (f->version && strncmp(path, "driver/nvidia/gpus/", 19) == 0)
		return read_gpu(f, path + 19, text);
	pid = (pid_t)strtol(path, &end, 10);
	p = end != path && *end == '/' ? fake_process(f, pid) : NULL;
	return p ? read_process(f, p, end + 1, text) : -ENOENT;
}

int fake_rm_read_proc(void *data, const char *path, char **ret_text, size_t *ret_len)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_READ };
	struct fake_fault fault;
	char text[TEXT_MAX] = "";

	pthread_mutex_lock(&f->lock);
	call.result = fake_enter(f, &call, &fault) ? -fault.error : read_file(f, path, text);
	if (call.result == 0) {
		*ret_text = strdup(text);
		fake_must(*ret_text, "no memory");
		if (ret_len)
			*ret_len = strlen(text);
	}
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}

/* ---- directories ---- */

struct names {
	char *text; /* with an empty one last */
	size_t len, room;
};

_printf_(2, 3) static void name(struct names *n, const char *format, ...)
{
	char text[64];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fake_must(len > 0 && len < (int)sizeof(text), "a name is too long");
	if (n->len + sizeof(text) >= n->room) {
		n->room = 2 * n->room + 4 * sizeof(text);
		n->text = realloc(n->text, n->room);
		fake_must(n->text, "no memory");
	}
	memcpy(n->text + n->len, text, (size_t)len + 1);
	n->len += (size_t)len + 1;
	n->text[n->len] = '\0';
}

static int list_numbers(const struct fake_rm *f, const struct fake_process *p, struct names *n)
{
	if (!may_trace(f, p))
		return -EACCES;
	for (int i = 0; i < FAKE_FIRST_NUMBER; i++)
		name(n, "%d", i);
	for (unsigned int i = 0; i < p->n_numbers; i++)
		if (p->numbers[i].path[0])
			name(n, "%u", i + FAKE_FIRST_NUMBER);
	for (unsigned int i = 0; i < p->n_plain; i++)
		name(n, "%u", i + FAKE_FIRST_NUMBER + FAKE_FIRST_PLAIN);
	return 0;
}

/* Not in order: nobody promises that. */
static int list_top(const struct fake_rm *f, struct names *n)
{
	name(n, "self");
	for (size_t i = f->n_processes; i > 0; i--)
		if (!f->processes[i - 1].ended)
			name(n, "%d", f->processes[i - 1].pid);
	name(n, "driver");
	name(n, "meminfo");
	return 0;
}

static int list_gpus(const struct fake_rm *f, struct names *n)
{
	for (size_t i = 0; i < f->n_gpus; i++)
		name(n, "0000:%02x:%02x.0", f->gpus[i].gpu >> 8, f->gpus[i].gpu & 0xff);
	return 0;
}

/* Instances of a GPU appear below capabilities, by its minor number. */
static int list_capabilities(const struct fake_rm *f, const char *rest, struct names *n)
{
	unsigned int minor;
	int used = 0;

	if (strcmp(rest, "") == 0) {
		name(n, "mig");
		for (size_t i = 0; i < f->n_gpus; i++)
			name(n, "gpu%zu", i);
		return 0;
	}
	if (sscanf(rest, "/gpu%u%n", &minor, &used) != 1 || minor >= f->n_gpus)
		return -ENOENT;
	rest += used;
	if (strcmp(rest, "") == 0) {
		if (f->gpus[minor].mig)
			name(n, "mig");
		return 0;
	}
	if (strcmp(rest, "/mig") != 0 || !f->gpus[minor].mig)
		return -ENOENT;
	name(n, "gi1");
	name(n, "gi2");
	return 0;
}

static int list_names(struct fake_rm *f, const char *path, struct names *n)
{
	const struct fake_process *p;
	char *end;
	pid_t pid;

	if (!*path || strcmp(path, ".") == 0 || strcmp(path, "/") == 0)
		return list_top(f, n);
	if (f->version && strcmp(path, "driver/nvidia/gpus") == 0)
		return list_gpus(f, n);
	if (f->version && strncmp(path, "driver/nvidia/capabilities", 26) == 0)
		return list_capabilities(f, path + 26, n);
	pid = (pid_t)strtol(path, &end, 10);
	p = end != path ? fake_process(f, pid) : NULL;
	if (!p || strcmp(end, "/fd") != 0)
		return -ENOENT;
	return list_numbers(f, p, n);
}

int fake_rm_list_proc(void *data, const char *path, char **ret_names)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_LIST };
	struct names names = { 0 };
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	call.result = fake_enter(f, &call, &fault) ? -fault.error : list_names(f, path, &names);
	if (call.result == 0) {
		*ret_names = names.text ? names.text : calloc(1, 1);
		fake_must(*ret_names, "no memory");
	}
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}

/* ---- processes that may be hostile ---- */

/* The @at-th entry of a process's directory of descriptors; false: it is closed. */
static bool nth_number(const struct fake_process *p, uint64_t at, uint32_t *ret)
{
	uint64_t named = FAKE_FIRST_NUMBER + p->n_numbers;

	*ret = (uint32_t)(at < named ? at : at - named + FAKE_FIRST_NUMBER + FAKE_FIRST_PLAIN);
	return at < FAKE_FIRST_NUMBER || at >= named || p->numbers[at - FAKE_FIRST_NUMBER].path[0];
}

static int page_numbers(const struct fake_rm *f, const struct fake_process *p, uint64_t *position,
			uint32_t *ret, size_t max)
{
	uint64_t end = FAKE_FIRST_NUMBER + p->n_numbers + p->n_plain;
	size_t n = 0;

	if (!may_trace(f, p))
		return -EACCES;
	while (n < max && *position < end)
		n += nth_number(p, (*position)++, &ret[n]);
	if (*position >= end)
		*position = NVRM_LIST_END;
	return (int)n;
}

static int page_processes(const struct fake_rm *f, uint64_t *position, uint32_t *ret, size_t max)
{
	size_t n = 0;

	for (; n < max && *position < f->n_processes; (*position)++)
		if (!f->processes[*position].ended)
			ret[n++] = (uint32_t)f->processes[*position].pid;
	if (*position >= f->n_processes)
		*position = NVRM_LIST_END;
	return (int)n;
}

static int page(struct fake_rm *f, const char *path, uint64_t *position, uint32_t *ret, size_t max)
{
	const struct fake_process *p;
	char *end;

	if (!*path)
		return page_processes(f, position, ret, max);
	p = fake_process(f, (pid_t)strtol(path, &end, 10));
	return p && strcmp(end, "/fd") == 0 ? page_numbers(f, p, position, ret, max) : -ENOENT;
}

int fake_rm_list_numbers(void *data, const char *path, uint64_t *position, uint32_t *ret,
			 size_t max)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_LIST };
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	call.result =
		fake_enter(f, &call, &fault) ? -fault.error : page(f, path, position, ret, max);
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}

int fake_rm_read_link(void *data, const char *path, char *ret, size_t size)
{
	_cleanup_free_ char *text = NULL;
	int r = fake_rm_read_proc(data, path, &text, NULL);

	return r < 0 ? r : (int)MIN((size_t)snprintf(ret, size, "%s", text), size - 1);
}

int fake_rm_owner(void *data, pid_t pid, uid_t *ret)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_OWNER };
	const struct fake_process *p;
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	call.result = p ? 0 : -ENOENT;
	if (fake_enter(f, &call, &fault))
		call.result = -fault.error;
	if (call.result == 0)
		*ret = p->uid;
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}
