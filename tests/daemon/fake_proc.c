/* SPDX-License-Identifier: MIT */
/* Who the made-up processes are, as /proc would tell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/fake_proc.h"

static int answer_file(const struct fake_process *p, const char *name, char *ret, size_t size)
{
	if (strcmp(name, "stat") == 0)
		return snprintf(ret, size,
				"%d (%s) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0\n",
				p->pid, p->comm, p->parent, (unsigned long long)p->start_ticks);
	if (strcmp(name, "status") == 0)
		return snprintf(ret, size, "Name:\t%s\nUid:\t%u\t%u\t%u\t%u\nGid:\t0\t0\t0\t0\n",
				p->comm, p->uid, p->uid, p->uid, p->uid);
	if (strcmp(name, "cgroup") == 0)
		return snprintf(ret, size, "0::%s\n", p->cgroup);
	return -ENOENT;
}

static int fake_read_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	struct fake_process *p;
	char name[32], text[256];
	int pid, n;

	if (sscanf(path, "%d/%31s", &pid, name) != 2)
		return -ENOENT;
	p = fake_find(user, pid);
	n = p ? answer_file(p, name, text, sizeof(text)) : -ENOENT;
	if (n < 0)
		return n;
	*ret_text = strdup(text);
	*ret_len = (size_t)n;
	return *ret_text ? 0 : -ENOMEM;
}

int fake_owner(struct gpu_backend *b, pid_t pid, uid_t *ret)
{
	struct fake_process *p = fake_find((struct fake *)b, pid);

	if (!p)
		return -ESRCH;
	*ret = p->uid;
	return 0;
}

int fake_ask(struct gpu_backend *b, pid_t pid, uint32_t files)
{
	struct fake_process *p = fake_find((struct fake *)b, pid);

	if (p)
		p->asks++;
	return asks_ask(((struct fake *)b)->asks, pid, files);
}

bool fake_answer(struct gpu_backend *b, struct proc_files *ret)
{
	struct fake *f = (struct fake *)b;
	const struct fake_process *p;

	if (f->silent || !asks_answer(f->asks, ret))
		return false;
	p = fake_find(f, ret->pid);
	if (p && p->unreadable) {
		proc_files_done(ret);
		ret->pid = p->pid;
		ret->result = -ETIMEDOUT;
	}
	return true;
}

void fake_proc_init(struct fake *f)
{
	if (asks_new(NULL, &(struct proc_source){ fake_read_proc, f }, &f->asks) < 0)
		abort();
}
