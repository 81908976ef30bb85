/* SPDX-License-Identifier: MIT */
/* Who a process is and how its pid is called elsewhere: /proc of proc(5). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kfd/procs.h"
#include "gpu/kfd/text.h"
#include "util/macros.h"

/* Fields of "stat" from the state (3rd) on; the start time is the 22nd. */
#define STAT_STATE 3
#define STAT_START_TICKS 22

/* include/linux/proc_ns.h: the initial pid namespace has always had this inode. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

/* A command may hold blanks and brackets: it ends at the last bracket of the line. */
static bool parse_comm(struct gkfd_text *line, struct gkfd_proc_ident *ident)
{
	struct gkfd_text comm;
	const char *close;

	if (!gkfd_text_skip(line, " ("))
		return false;
	close = memrchr(line->at, ')', (size_t)(line->end - line->at));
	if (!close)
		return false;
	comm = (struct gkfd_text){ line->at, close };
	gkfd_text_copy(&comm, ident->comm, sizeof(ident->comm));
	line->at = close + 1;
	return true;
}

int gkfd_proc_parse_stat(const char *text, size_t len, struct gkfd_proc_ident *ret)
{
	struct gkfd_text t = gkfd_text_of(text, len), line, word;
	struct gkfd_proc_ident ident = *ret;
	uint64_t pid;

	if (!gkfd_text_line(&t, &line) || !gkfd_text_ended(&t))
		return -EBADMSG;
	if (!gkfd_text_dec(&line, INT32_MAX, &pid) || !parse_comm(&line, &ident))
		return -EBADMSG;
	ident.pid = (pid_t)pid;

	for (int field = STAT_STATE; field <= STAT_START_TICKS; field++) {
		if (!gkfd_text_blanks(&line) || !gkfd_text_word(&line, &word))
			return -EBADMSG;
		if (field == STAT_STATE)
			ident.state = *word.at;
	}
	if (!gkfd_text_dec(&word, UINT64_MAX, &ident.start_ticks) || !gkfd_text_ended(&word))
		return -EBADMSG;
	*ret = ident;
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

enum { HAS_TGID = 1, HAS_TRACER = 2, HAS_UID = 4, HAS_ALL = 7 };

static int parse_status_line(struct gkfd_text line, struct gkfd_proc_ident *ident)
{
	uint64_t value;

	if (gkfd_text_skip(&line, "Tgid:")) {
		if (!status_number(line, 0, INT32_MAX, &value))
			return -EBADMSG;
		ident->tgid = (pid_t)value;
		return HAS_TGID;
	}
	if (gkfd_text_skip(&line, "TracerPid:")) {
		if (!status_number(line, 0, INT32_MAX, &value))
			return -EBADMSG;
		ident->tracer_pid = (pid_t)value;
		return HAS_TRACER;
	}
	if (gkfd_text_skip(&line, "Uid:")) {
		if (!status_number(line, 1, UINT32_MAX, &value))
			return -EBADMSG;
		ident->uid = (uid_t)value;
		return HAS_UID;
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
	if (has != HAS_ALL)
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
