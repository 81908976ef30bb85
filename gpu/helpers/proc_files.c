/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/proc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "gpu/files.h"
#include "util/macros.h"

/* Of what a process says of itself, which may be megabytes, no more is read. */
#define FILE_MAX_BYTES (64u << 10)

static const char *const names[PROC_FILES] = {
	[PROC_STAT] = "stat",	      [PROC_STATUS] = "status",	  [PROC_CGROUP] = "cgroup",
	[PROC_EXE] = "exe",	      [PROC_CMDLINE] = "cmdline", [PROC_ENVIRON] = "environ",
};

void proc_files_done(struct proc_files *f)
{
	for (size_t i = 0; i < PROC_FILES; i++)
		free(f->text[i]);
	*f = (struct proc_files){ 0 };
}

static void proc_files_donep(struct proc_files *f)
{
	proc_files_done(f);
}

/* ---- reading ---- */

static int read_one(const struct proc_source *s, pid_t pid, const char *name, char **ret_text,
		    size_t *ret_len)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	r = s->read_file(s->user, path, ret_text, ret_len);
	return r == -ENOENT ? -ESRCH : r;
}

static int read_stat(const struct proc_source *s, pid_t pid, char **ret_text, size_t *ret_len,
		     struct proc_stat *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = read_one(s, pid, names[PROC_STAT], &text, &len);

	if (r >= 0)
		r = proc_stat_parse(text, len, ret);
	if (r >= 0 && ret->pid != pid)
		r = -EBADMSG;
	if (r < 0)
		return r;
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

static int append(char **text, size_t *len, const char *more, size_t n)
{
	char *grown = realloc(*text, *len + n + 1);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + *len, more, n);
	grown[*len + n] = '\0';
	*text = grown;
	*len += n + 1;
	return 0;
}

/* As far as they can be read. */
static void read_parents(const struct proc_source *s, pid_t pid, struct proc_files *f)
{
	for (int i = 0; i < PROC_PARENTS_MAX && pid > 1; i++) {
		_cleanup_free_ char *text = NULL;
		struct proc_stat stat;
		size_t len;

		if (read_stat(s, pid, &text, &len, &stat) < 0 ||
		    append(&f->text[PROC_PARENTS], &f->len[PROC_PARENTS], text, len) < 0)
			return;
		pid = stat.parent;
	}
}

static void read_rest(const struct proc_source *s, pid_t pid, uint32_t bits, struct proc_files *f)
{
	for (enum proc_file i = PROC_STATUS; i < PROC_FILES; i++) {
		if (names[i] && (bits & PROC_BIT(i)))
			read_one(s, pid, names[i], &f->text[i], &f->len[i]);
	}
}

/* The pid may pass on while it is read: what was read is of one process or of nobody. */
int proc_files_read(const struct proc_source *s, pid_t pid, uint32_t bits, struct proc_files *ret)
{
	_cleanup_(proc_files_donep) struct proc_files f = { .pid = pid };
	_cleanup_free_ char *again = NULL;
	struct proc_stat stat, stat_again;
	size_t len;
	int r = read_stat(s, pid, &f.text[PROC_STAT], &f.len[PROC_STAT], &stat);

	if (r < 0)
		return r;
	read_rest(s, pid, bits, &f);
	if (bits & PROC_BIT(PROC_PARENTS))
		read_parents(s, stat.parent, &f);
	if (bits != PROC_BIT(PROC_STAT)) {
		r = read_stat(s, pid, &again, &len, &stat_again);
		if (r < 0)
			return r;
		if (stat.start_ticks != stat_again.start_ticks)
			return -ESRCH;
	}
	*ret = f;
	f = (struct proc_files){ 0 };
	return 0;
}

int proc_files_owner(const struct proc_source *s, pid_t pid, uid_t *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	size_t len;
	int r = read_one(s, pid, names[PROC_STATUS], &text, &len);

	if (r < 0)
		return r;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %*u %u", ret) == 1 ? 0 : -EBADMSG;
}

/* ---- by a reader ---- */

struct head { /* of one file in an answer */
	uint32_t file, len;
};

static int read_kernel(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	const int *proc = user;
	const char *name = strrchr(path, '/');

	if (name && !strcmp(name + 1, names[PROC_EXE]))
		return files_read_link(*proc, path, ret_text, ret_len);
	return files_read_some(*proc, path, FILE_MAX_BYTES, ret_text, ret_len);
}

static int put_file(struct reader_room *room, enum proc_file file, const struct proc_files *f)
{
	const struct head head = { .file = file, .len = (uint32_t)f->len[file] };
	int r;

	if (!f->text[file])
		return 0;
	r = reader_put(room, &head, sizeof(head));
	return r < 0 ? r : reader_put(room, f->text[file], head.len);
}

int proc_files_serve(void *user, pid_t pid, const void *request, size_t len,
		     struct reader_room *room)
{
	_cleanup_(proc_files_donep) struct proc_files f = { 0 };
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct proc_source source = { read_kernel, &proc };
	uint32_t bits;
	int r;

	if (len != sizeof(bits))
		return -EINVAL;
	memcpy(&bits, request, sizeof(bits));
	if (proc < 0)
		return -errno;
	r = proc_files_read(&source, pid, bits, &f);
	for (enum proc_file i = 0; i < PROC_FILES && r >= 0; i++)
		r = put_file(room, i, &f);
	return r;
}

int proc_files_take(const void *answer, size_t len, struct proc_files *f)
{
	const char *at = answer;

	while (len > 0) {
		struct head head;
		char *text;

		if (len < sizeof(head))
			return -EBADMSG;
		memcpy(&head, at, sizeof(head));
		len -= sizeof(head);
		at += sizeof(head);
		if (head.file >= PROC_FILES || head.len > len)
			return -EBADMSG;
		text = calloc(1, (size_t)head.len + 2);
		if (!text)
			return -ENOMEM;
		memcpy(text, at, head.len);
		free(f->text[head.file]);
		f->text[head.file] = text;
		f->len[head.file] = head.len;
		at += head.len;
		len -= head.len;
	}
	return 0;
}
