/* SPDX-License-Identifier: MIT */
/* Looks at several processes, in a reader. */
#include <errno.h>

#include "gpu/kfd/look.h"
#include "util/macros.h"

struct looker {
	struct gkfd_look *look; /* NULL: none of this id */
	pid_t pid;
	uint32_t n;
};

struct gkfd_lookers {
	struct gkfd *k;
	struct gkfd_look_room *room;
	struct looker lookers[GKFD_LOOKS];
};

int gkfd_lookers_new(struct gkfd *k, struct gkfd_lookers **ret)
{
	struct gkfd_lookers *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->k = k;
	r = gkfd_look_room_new(&all->room);
	if (r < 0) {
		free(all);
		return r;
	}
	*ret = all;
	return 0;
}

static int replace(struct looker *l, pid_t pid, const void *queues, uint32_t n)
{
	gkfd_look_free(l->look);
	*l = (struct looker){ .pid = pid, .n = n };
	return gkfd_look_new(pid, queues, n, &l->look);
}

int gkfd_look_serve(struct gkfd_lookers *all, pid_t pid, const void *request, size_t len,
		    struct reader_room *room)
{
	const struct gkfd_look_request *head = request;
	struct looker *l;
	size_t bytes;
	int r = 0;

	if (len < sizeof(*head) || head->id >= GKFD_LOOKS)
		return -EINVAL;
	l = &all->lookers[head->id];
	if (head->flags & GKFD_LOOK_NEW) {
		if ((len - sizeof(*head)) / sizeof(struct gkfd_look_queue) < head->n)
			return -EINVAL;
		r = replace(l, pid, head + 1, head->n);
	}
	if (r < 0)
		return r;
	if (!l->look || l->pid != pid)
		return -ENOENT;
	bytes = l->n * sizeof(struct gpu_sample);
	if (bytes > room->max)
		return -ENOSPC;
	room->len = bytes;
	return gkfd_look(all->k, l->look, all->room, head->flags & GKFD_LOOK_HELD,
			 (struct gpu_sample *)(void *)room->at);
}
