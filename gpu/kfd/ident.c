/* SPDX-License-Identifier: MIT */
/* Who a process is and how its pid is called elsewhere: /proc of proc(5). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/text.h"
#include "util/macros.h"

/* include/linux/proc_ns.h: the initial pid namespace has always had this inode. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

int gkfd_proc_parse_stat(const char *text, size_t len, struct gkfd_proc_ident *ret)
{
	struct gkfd_text comm;
	struct proc_stat stat;
	int r = proc_stat_parse(text, len, &stat);

	if (r < 0)
		return r;
	ret->pid = stat.pid;
	ret->state = stat.state;
	ret->start_ticks = stat.start_ticks;
	comm = gkfd_text_of(stat.comm, strlen(stat.comm));
	gkfd_text_copy(&comm, ret->comm, sizeof(ret->comm));
	return 0;
}

/* The @which-th number (from 0) behind "Name:". */
static bool status_number(struct gkfd_text line, int which, uint64_t max, uint64_t *ret)
{
	for (int i = 0; i <= which; i++) {
		if (!gkfd_text_blanks(&line) || !gkfd_text_dec(&line, max, ret))
			return false;
	}
	return true;
}

#define ALL_LINES 7 /* a bit for each of them */

static int parse_status_line(struct gkfd_text line, struct gkfd_proc_ident *ident)
{
	const struct {
		const char *name;
		int which;
		uint64_t max;
		void *to; /* 32 bits */
	} numbers[] = {
		{ "Tgid:", 0, INT32_MAX, &ident->tgid },
		{ "TracerPid:", 0, INT32_MAX, &ident->tracer_pid },
		{ "Uid:", 1, UINT32_MAX, &ident->uid },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t value;

		if (!gkfd_text_skip(&line, numbers[i].name))
			continue;
		if (!status_number(line, numbers[i].which, numbers[i].max, &value))
			return -EBADMSG;
		*(uint32_t *)numbers[i].to = (uint32_t)value;
		return 1 << i;
	}
	return 0;
}

int gkfd_proc_parse_status(const char *text, size_t len, struct gkfd_proc_ident *ret)
{
	struct gkfd_text t = gkfd_text_of(text, len), line;
	struct gkfd_proc_ident ident = *ret;
	int has = 0, r;

	while (!gkfd_text_ended(&t)) {
		if (!gkfd_text_line(&t, &line))
			return -EBADMSG;
		r = parse_status_line(line, &ident);
		if (r < 0)
			return r;
		has |= r;
	}
	if (has != ALL_LINES)
		return -EBADMSG;
	*ret = ident;
	return 0;
}

static int read_proc_file(struct gkfd *k, pid_t pid, const char *name, char **ret_text,
			  size_t *ret_len)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	r = gkfd_read_file(k, GKFD_TREE_PROC, path, ret_text, ret_len);
	return r == -ENOENT ? -ESRCH : r;
}

int gkfd_proc_identify(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret)
{
	_cleanup_free_ char *stat = NULL, *status = NULL;
	struct gkfd_proc_ident ident = { 0 };
	size_t stat_len, status_len;
	int r;

	r = read_proc_file(k, pid, "stat", &stat, &stat_len);
	if (r < 0)
		return r;
	r = gkfd_proc_parse_stat(stat, stat_len, &ident);
	if (r < 0)
		return r;
	r = read_proc_file(k, pid, "status", &status, &status_len);
	if (r < 0)
		return r;
	r = gkfd_proc_parse_status(status, status_len, &ident);
	if (r < 0)
		return r;
	if (ident.pid != pid)
		return -EBADMSG;
	*ret = ident;
	return 0;
}

bool gkfd_pids_are_global(struct gkfd *k)
{
	_cleanup_free_ char *text = NULL;
	struct gkfd_text t;
	size_t len;
	int r;

	r = gkfd_read_file(k, GKFD_TREE_PROC, "self/ns/pid", &text, &len);
	if (r == -ENOENT)
		return true; /* no namespaces: such a kernel, a copied tree, the software device */
	if (r < 0)
		return false;
	t = gkfd_text_of(text, len);
	return gkfd_text_skip(&t, INITIAL_PID_NAMESPACE);
}

/* Is @pid what some inner namespace calls this process? The first number is the outermost. */
static bool is_called(const char *text, size_t len, pid_t pid)
{
	struct gkfd_text t = gkfd_text_of(text, len), line;
	uint64_t number;

	while (gkfd_text_line(&t, &line)) {
		if (!gkfd_text_skip(&line, "NSpid:"))
			continue;
		for (int i = 0; gkfd_text_blanks(&line); i++) {
			if (!gkfd_text_dec(&line, INT32_MAX, &number))
				return false;
			if (i > 0 && number == (uint64_t)pid)
				return true;
		}
	}
	return false;
}

pid_t gkfd_pid_from_container(struct gkfd *k, pid_t pid)
{
	_cleanup_free_ char *names = NULL;
	pid_t found = 0;

	if (gkfd_list_dir(k, GKFD_TREE_PROC, "", &names) < 0)
		return 0;
	for (const char *name = names; *name; name += strlen(name) + 1) {
		_cleanup_free_ char *text = NULL;
		uint64_t candidate;
		size_t len;

		if (!gkfd_text_is_number(name, strlen(name), INT32_MAX, &candidate) ||
		    read_proc_file(k, (pid_t)candidate, "status", &text, &len) < 0 ||
		    !is_called(text, len, pid))
			continue;
		if (found)
			return 0;
		found = (pid_t)candidate;
	}
	return found;
}
