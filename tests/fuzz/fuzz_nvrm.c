/* SPDX-License-Identifier: MIT */
/*
 * Object tables of any kind, and a driver that answers anything: the first byte says which, the
 * next ones are objects, two bytes each, and the rest of them what the driver says.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu/nvrm/process.h"
#include "tests/fuzz/fuzz.h"
#include "util/macros.h"

#define PID 7
#define FDS 256
#define BORROWED_MAX 6
#define OBJECTS_MAX 1024

static const uint32_t classes[] = {
	0x40, NVRM_CLASS_DEVICE, NVRM_CLASS_SUBDEVICE, 0xa06c, 0xc86f, 0xcbc0, 0xc8b5, 0
};

struct driver {
	const uint8_t *objects;
	size_t n_objects;
	const uint8_t *said;
	size_t left;
	bool open[FDS];
	unsigned int borrowed;
	int exit_fd;
	uint64_t now_ns;
};

/* 0 for ever once there are no more. */
static uint8_t next(struct driver *d)
{
	if (d->left == 0)
		return 0;
	d->left--;
	return *d->said++;
}

static uint32_t class_of(const struct driver *d, size_t i)
{
	return classes[d->objects[2 * i] % ARRAY_SIZE(classes)];
}

/* Some are each other's children, some their own, some a client's, some nobody's. */
static uint32_t parent_of(const struct driver *d, size_t i, uint32_t client)
{
	uint8_t parent = d->objects[2 * i + 1];

	if (parent == 0xff)
		return client;
	return NVRM_FIRST_OBJECT + parent;
}

/* ---- tables ---- */

static void check_group(const struct nvrm_objects *o, const struct nvrm_found_group *g)
{
	const struct nvrm_object *object = nvrm_objects_find(o, g->handle);

	PROMISE(object && object->class == NVRM_CLASS_CHANNEL_GROUP);
	PROMISE(g->n_channels > 0);
	for (size_t i = 0; i < g->n_channels; i++) {
		object = nvrm_objects_find(o, g->channels[i]);
		PROMISE(object && NVRM_IS_CHANNEL(object->class));
		PROMISE(i == 0 || g->channels[i] > g->channels[i - 1]);
	}
	object = g->subdevice ? nvrm_objects_find(o, g->subdevice) : NULL;
	PROMISE(!g->subdevice || (object && object->class == NVRM_CLASS_SUBDEVICE));
}

static void read_table(const struct driver *d)
{
	struct nvrm_objects o = { 0 };
	struct nvrm_found_group *groups = NULL;
	size_t channels = 0;
	int n;

	for (size_t i = 0; i < d->n_objects; i++) {
		/* Not in order. */
		size_t at = d->n_objects % 3 ? i * 3 % d->n_objects : i;
		struct nvrm_object object = { NVRM_FIRST_OBJECT + (uint32_t)at, class_of(d, at),
					      parent_of(d, at, NVRM_FIRST_CLIENT) };

		PROMISE(nvrm_objects_add(&o, &object) == 0);
	}
	PROMISE(o.n == d->n_objects);
	n = nvrm_objects_groups(&o, &groups);
	PROMISE(n == -ENOSPC || (n >= 0 && (size_t)n <= MIN(o.n, (size_t)NVRM_GROUPS)));
	for (int i = 0; i < n; i++) {
		check_group(&o, &groups[i]);
		PROMISE(i == 0 || groups[i].handle > groups[i - 1].handle);
		channels += groups[i].n_channels;
	}
	PROMISE(channels <= o.n);
	nvrm_found_free(groups, (size_t)MAX(n, 0));
	nvrm_objects_done(&o);
	PROMISE(o.n == 0 && !o.all);
}

/* ---- a driver ---- */

static int give_fd(struct driver *d)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	PROMISE(fd >= 0 && fd < FDS);
	d->open[fd] = true;
	return fd;
}

static int fuzz_open(void *data)
{
	struct driver *d = data;

	return next(d) == 0xff ? -ENODEV : give_fd(d);
}

static void fuzz_close_fd(void *data, int fd)
{
	struct driver *d = data;

	PROMISE(fd >= 0 && fd < FDS && d->open[fd]);
	d->open[fd] = false;
	close(fd);
}

static int fuzz_pidfd(void *data, pid_t pid)
{
	return fcntl(((struct driver *)data)->exit_fd, F_DUPFD_CLOEXEC, 0);
}

static int fuzz_borrow(void *data, pid_t pid, uint64_t device, struct borrow_place *at,
		       struct borrowed *ret)
{
	struct driver *d = data;
	uint8_t what = next(d);

	if (what == 0xff)
		return -EPERM;
	if (what == 0xfe)
		return -ESRCH;
	PROMISE(at->left > 0 && at->position != BORROW_END);
	at->left--;
	at->missed = what % 16 == 0;
	at->position = what % 4 ? at->position + 1 : BORROW_END;
	if (++d->borrowed > BORROWED_MAX)
		at->position = BORROW_END;
	if (what % 2)
		return 0;
	ret[0] = (struct borrowed){ .fd = give_fd(d), .number = what };
	return 1;
}

/* Most questions are answered; @good is what it says then. */
static uint32_t status(struct driver *d, uint32_t good)
{
	static const uint32_t others[] = {
		NVRM_GPU_IS_LOST,      NVRM_INVALID_CLIENT, NVRM_INVALID_OBJECT_HANDLE,
		NVRM_OBJECT_NOT_FOUND, NVRM_TIMEOUT,	    0xffffffff
	};
	uint8_t what = next(d);

	if (what == 0xf0) {
		uint64_t one = 1;

		PROMISE(write(d->exit_fd, &one, sizeof(one)) == sizeof(one));
	}
	return what < 0xf8 ? good : others[what % ARRAY_SIZE(others)];
}

static uint32_t handle_info(struct driver *d, uint32_t client, struct nvrm_handle_info *p)
{
	uint32_t i = p->object - NVRM_FIRST_OBJECT;

	if (i >= d->n_objects || class_of(d, i) == 0)
		return NVRM_OBJECT_NOT_FOUND;
	p->result = p->index == NVRM_HANDLE_CLASS ? class_of(d, i) : parent_of(d, i, client);
	return d->left > 0 ? status(d, NVRM_OK) : NVRM_OK;
}

static uint32_t control(struct driver *d, const struct nvrm_control *a)
{
	void *params = (void *)(uintptr_t)a->params;
	const struct nvrm_disable_channels *channels = params;

	switch (a->cmd) {
	case NVRM_CTRL_GET_HANDLE_INFO:
		PROMISE(a->params_size == 16);
		return handle_info(d, a->client, params);
	case NVRM_CTRL_DISABLE_CHANNELS:
		PROMISE(a->params_size == 536);
		PROMISE(channels->n > 0 && channels->n <= NVRM_MAX_CHANNELS);
		PROMISE(channels->disable <= 1 && channels->event == 0);
		for (uint32_t i = 0; i < channels->n; i++)
			PROMISE(channels->channels[i] - NVRM_FIRST_OBJECT < d->n_objects);
		return status(d, NVRM_OK);
	default:
		for (uint32_t i = 0; i < a->params_size; i++)
			((uint8_t *)params)[i] = next(d);
		return status(d, NVRM_OK);
	}
}

static int fuzz_ioctl(void *data, int fd, unsigned long request, void *arg)
{
	struct driver *d = data;
	struct nvrm_share *share = arg;
	struct nvrm_alloc *alloc = arg;

	PROMISE(fd >= 0 && fd < FDS && d->open[fd]);
	d->now_ns += NSEC_PER_USEC;
	switch (request) {
	case NVRM_IOC_CONTROL:
		((struct nvrm_control *)arg)->status = control(d, arg);
		return 0;
	case NVRM_IOC_SHARE:
		share->status =
			status(d, d->left % 5 ? NVRM_OBJECT_NOT_FOUND : NVRM_INVALID_CLIENT);
		return 0;
	case NVRM_IOC_ALLOC:
		alloc->object = NVRM_FIRST_CLIENT + next(d);
		alloc->status = status(d, NVRM_OK);
		return 0;
	default:
		return -EINVAL;
	}
}

static int fuzz_read_proc(void *data, const char *path, char **ret_text, size_t *ret_len)
{
	struct driver *d = data;
	char text[64];
	uint8_t len = next(d) % sizeof(text);

	if (len == 0) {
		snprintf(text, sizeof(text), "7 (job) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0");
	} else {
		for (uint8_t i = 0; i < len; i++)
			text[i] = (char)next(d);
		text[len] = '\0';
	}
	*ret_text = strdup(text);
	PROMISE(*ret_text);
	*ret_len = strlen(text);
	return 0;
}

static int fuzz_list_proc(void *data, const char *path, char **ret_names)
{
	struct driver *d = data;
	uint8_t what = next(d);

	if (what == 0xff)
		return -EACCES;
	*ret_names = calloc(1, 16);
	PROMISE(*ret_names);
	memcpy(*ret_names,
	       "7\0"
	       "9\0",
	       4);
	(*ret_names)[2] = (char)('0' + what % 10);
	return 0;
}

static int fuzz_list(void *data, const char *path, uint64_t *position, uint32_t *ret, size_t max)
{
	uint8_t what = next(data);

	if (what == 0xff)
		return -EACCES;
	PROMISE(max > 0);
	ret[0] = what;
	*position = what % 2 ? *position + 1 : NVRM_LIST_END;
	return 1;
}

static int fuzz_read_link(void *data, const char *path, char *ret, size_t size)
{
	uint8_t what = next(data);

	if (what == 0xff)
		return -ENOENT;
	return snprintf(ret, size, "/dev/nvidia%.*s", what % 2, "0");
}

static int fuzz_owner(void *data, pid_t pid, uid_t *ret)
{
	*ret = next(data);
	return *ret == 0xff ? -ENOENT : 0;
}

static uint64_t fuzz_now_ns(void *data)
{
	struct driver *d = data;

	return d->now_ns += (uint64_t)next(d) * NSEC_PER_SEC / 4;
}

static void fuzz_close(void *data)
{
}

static const struct nvrm_transport transport = {
	.close = fuzz_close,
	.open = fuzz_open,
	.ioctl = fuzz_ioctl,
	.close_fd = fuzz_close_fd,
	.pidfd = fuzz_pidfd,
	.borrow = fuzz_borrow,
	.drop_fd = fuzz_close_fd,
	.read_proc = fuzz_read_proc,
	.list_proc = fuzz_list_proc,
	.list_numbers = fuzz_list,
	.read_link = fuzz_read_link,
	.owner = fuzz_owner,
	.now_ns = fuzz_now_ns,
};

static void act(struct driver *d, struct nvrm_process *p)
{
	struct nvrm_failure failure;

	for (int i = 0; i < 8 && d->left > 0; i++) {
		switch (next(d) % 4) {
		case 0:
			nvrm_hold(&p, 1, NVRM_ALL_GPUS, NULL, &failure);
			break;
		case 1:
			nvrm_let_go(&p, 1, NVRM_ALL_GPUS, &failure);
			break;
		case 2:
			nvrm_slice(p, NVRM_ALL_GPUS, next(d), &failure);
			break;
		default:
			nvrm_process_refresh(p, &failure);
		}
	}
}

static void drive(struct driver *d)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_process *p = NULL;
	struct nvrm *n = NULL;

	d->exit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	PROMISE(d->exit_fd >= 0 && nvrm_new(&transport, d, &n) == 0);
	if (nvrm_process_open(n, PID, &p, &failure) == 0) {
		PROMISE(p->n_clients > 0 && p->n_clients <= NVRM_CLIENTS && p->n_groups > 0);
		act(d, p);
		nvrm_process_close(p);
	} else {
		PROMISE(!p && failure.why != NVRM_WHY_NONE);
	}
	for (int fd = 0; fd < FDS; fd++)
		PROMISE(!d->open[fd]);
	nvrm_free(n);
	close(d->exit_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct driver d = { .now_ns = NSEC_PER_SEC };

	if (len < 2)
		return 0;
	d.n_objects = MIN((size_t)bytes[1], (len - 2) / 2);
	if (bytes[0] & 2)
		d.n_objects = MIN((len - 2) / 2, (size_t)OBJECTS_MAX);
	d.objects = bytes + 2;
	d.said = d.objects + 2 * d.n_objects;
	d.left = len - 2 - 2 * d.n_objects;
	if (bytes[0] & 1)
		drive(&d);
	else
		read_table(&d);
	return 0;
}
