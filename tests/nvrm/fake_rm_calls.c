/* SPDX-License-Identifier: MIT */
/* What the fake answers to the driver's escapes and controls. */
#include <errno.h>
#include <string.h>

#include "tests/nvrm/fake_rm_state.h"
#include "util/macros.h"

#define FIRMWARE_NS 300000u /* a round trip to it */

/* ---- controls ---- */

struct control {
	uint32_t cmd;
	uint32_t class; /* of the objects that know it */
	size_t size;
	int (*run)(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params);
};

static int handle_info(struct fake_rm *f, struct fake_client *c, struct fake_object *o,
		       void *params)
{
	struct nvrm_handle_info *p = params;
	const struct fake_object *asked = fake_object(c, p->object);

	if (p->object == c->handle) {
		p->result = p->index == NVRM_HANDLE_CLASS ? NVRM_CLASS_CLIENT : 0;
		return NVRM_OK;
	}
	if (!asked)
		return NVRM_OBJECT_NOT_FOUND;
	if (p->index == NVRM_HANDLE_PARENT)
		p->result = asked->parent;
	else if (p->index == NVRM_HANDLE_CLASS)
		p->result = asked->class;
	else
		return NVRM_INVALID_ARGUMENT;
	return NVRM_OK;
}

static int probed_ids(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	struct nvrm_probed_ids *p = params;

	memset(p, 0xff, sizeof(*p));
	for (size_t i = 0; i < f->n_gpus; i++)
		p->gpus[i] = f->gpus[i].gpu;
	return NVRM_OK;
}

static int pci_info(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	struct nvrm_pci_info *p = params;

	for (size_t i = 0; i < f->n_gpus; i++) {
		if (f->gpus[i].gpu != p->gpu)
			continue;
		p->domain = 0;
		p->bus = (uint16_t)(p->gpu >> 8);
		p->slot = (uint16_t)(p->gpu & 0xff);
		return NVRM_OK;
	}
	return NVRM_INVALID_ARGUMENT;
}

static int gpu_id(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	((struct nvrm_gpu_id *)params)->gpu = o->gpu;
	return NVRM_OK;
}

static bool caller_has(const struct fake_rm *f, int file)
{
	for (size_t i = 0; i < FAKE_FDS; i++)
		if (f->fds[i] == file)
			return true;
	return false;
}

/* Another client's group that is, to the hardware, the same. */
static bool is_shared(struct fake_rm *f, const struct fake_client *c, uint32_t group)
{
	const struct fake_object *own = fake_object((struct fake_client *)c, group);

	for (size_t i = 0; own && i < FAKE_CLIENTS; i++) {
		const struct fake_client *other = &f->clients[i];

		for (size_t j = 0; other != c && other->handle && j < other->n; j++)
			if (other->objects[j].class == NVRM_CLASS_CHANNEL_GROUP &&
			    other->objects[j].id == own->id)
				return true;
	}
	return false;
}

/* The firmware goes through the list: what comes before a name it does not know has been done. */
static int disable_channels(struct fake_rm *f, struct fake_client *c, struct fake_object *o,
			    void *params)
{
	struct nvrm_disable_channels *p = params;

	if (p->event)
		return NVRM_INSUFFICIENT_PERMISSIONS;
	if (p->n > NVRM_MAX_CHANNELS || p->disable > 1)
		return NVRM_INVALID_ARGUMENT;
	f->now_ns += FIRMWARE_NS;
	for (uint32_t i = 0; i < p->n; i++) {
		struct fake_client *named = fake_client(f, p->clients[i]);
		struct fake_object *channel = named ? fake_object(named, p->channels[i]) : NULL;

		if (!named || !caller_has(f, named->file))
			f->sins.strangers++;
		if (!channel || !NVRM_IS_CHANNEL(channel->class) || channel->gpu != o->gpu)
			return NVRM_OBJECT_NOT_FOUND;
		if (p->disable) {
			channel->disabled++;
			f->sins.shared += is_shared(f, named, channel->parent);
		} else if (channel->disabled > 0) {
			channel->disabled--;
		}
	}
	return NVRM_OK;
}

static int set_slice(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	f->now_ns += FIRMWARE_NS;
	o->slice_us = ((struct nvrm_timeslice *)params)->us;
	return NVRM_OK;
}

static int get_slice(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	((struct nvrm_timeslice *)params)->us = o->slice_us;
	return NVRM_OK;
}

static int preempt(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	f->now_ns += FIRMWARE_NS;
	return NVRM_OK;
}

static int group_info(struct fake_rm *f, struct fake_client *c, struct fake_object *o, void *params)
{
	((struct nvrm_group_info *)params)->id = o->id;
	return NVRM_OK;
}

static const struct control controls[] = {
	{ NVRM_CTRL_GET_HANDLE_INFO, NVRM_CLASS_CLIENT, 16, handle_info },
	{ NVRM_CTRL_GET_PROBED_IDS, NVRM_CLASS_CLIENT, 384, probed_ids },
	{ NVRM_CTRL_GET_PCI_INFO, NVRM_CLASS_CLIENT, 12, pci_info },
	{ NVRM_CTRL_GET_GPU_ID, NVRM_CLASS_SUBDEVICE, 4, gpu_id },
	{ NVRM_CTRL_DISABLE_CHANNELS, NVRM_CLASS_SUBDEVICE, 536, disable_channels },
	{ NVRM_CTRL_SET_TIMESLICE, NVRM_CLASS_CHANNEL_GROUP, 8, set_slice },
	{ NVRM_CTRL_GET_TIMESLICE, NVRM_CLASS_CHANNEL_GROUP, 8, get_slice },
	{ NVRM_CTRL_PREEMPT, NVRM_CLASS_CHANNEL_GROUP, 8, preempt },
	{ NVRM_CTRL_GET_GROUP_INFO, NVRM_CLASS_CHANNEL_GROUP, 4, group_info },
};

static const struct control *find_control(uint32_t cmd, uint32_t class)
{
	for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
		if (controls[i].cmd == cmd && controls[i].class == class)
			return &controls[i];
	return NULL;
}

static int control(struct fake_rm *f, int file, struct nvrm_control *a)
{
	struct fake_client *c = fake_client(f, a->client);
	struct fake_object root = { .class = NVRM_CLASS_CLIENT };
	const struct control *known;
	struct fake_object *o;

	if (!c) {
		f->sins.kernel_lines++;
		return NVRM_INVALID_OBJECT_HANDLE;
	}
	if (c->file != file)
		return NVRM_INVALID_CLIENT;
	o = a->object == a->client ? &root : fake_object(c, a->object);
	if (!o)
		return NVRM_OBJECT_NOT_FOUND;
	known = find_control(a->cmd, o->class);
	if (!known)
		return NVRM_NOT_SUPPORTED;
	if (a->params_size != known->size || !a->params)
		return NVRM_INVALID_ARGUMENT;
	return known->run(f, c, o, (void *)(uintptr_t)a->params);
}

/* ---- the other escapes ---- */

static int share(struct fake_rm *f, int file, const struct nvrm_share *a)
{
	struct fake_client *c = fake_client(f, a->client);

	if (!c)
		return NVRM_INVALID_OBJECT_HANDLE;
	if (c->file != file)
		return NVRM_INVALID_CLIENT;
	if (a->object != a->client && !fake_object(c, a->object))
		return NVRM_OBJECT_NOT_FOUND;
	f->sins.misuse++;
	return NVRM_OK;
}

#define INVALID_CLASS 0x22

static int alloc(struct fake_rm *f, int file, struct nvrm_alloc *a)
{
	if (a->class != NVRM_CLASS_CLIENT)
		return INVALID_CLASS;
	if (a->params_size != 0 && !a->params)
		return NVRM_INVALID_ARGUMENT;
	a->object = fake_new_client(f, file)->handle;
	return NVRM_OK;
}

static int free_object(struct fake_rm *f, int file, const struct nvrm_free *a)
{
	struct fake_client *c = fake_client(f, a->root);

	if (!c)
		return NVRM_INVALID_OBJECT_HANDLE;
	if (c->file != file)
		return NVRM_INVALID_CLIENT;
	if (a->object != a->root || fake_client_pid(f, c) != 0) {
		f->sins.misuse++; /* nobody may take anything from a job */
		return NVRM_OBJECT_NOT_FOUND;
	}
	fake_end_client(c);
	return NVRM_OK;
}

/* ---- ioctl ---- */

static void note_params(struct fake_call *call, const struct nvrm_control *a)
{
	if (!a->params)
		return;
	if (a->cmd == NVRM_CTRL_DISABLE_CHANNELS && a->params_size == 536) {
		const struct nvrm_disable_channels *p = (const void *)(uintptr_t)a->params;

		call->disable = p->disable;
		call->n = p->n;
	}
	if (a->cmd == NVRM_CTRL_SET_TIMESLICE && a->params_size == 8)
		call->us = ((const struct nvrm_timeslice *)(uintptr_t)a->params)->us;
}

/* Fills in what the call is; false: the driver has no such request. */
static bool note(struct fake_call *call, unsigned long request, const void *arg)
{
	const struct nvrm_control *control = arg;
	const struct nvrm_share *share = arg;
	const struct nvrm_alloc *alloc = arg;
	const struct nvrm_free *object = arg;

	call->op = FAKE_IOCTL;
	switch (request) {
	case NVRM_IOC_CONTROL:
		call->cmd = control->cmd;
		call->client = control->client;
		call->object = control->object;
		note_params(call, control);
		return true;
	case NVRM_IOC_SHARE:
		call->cmd = FAKE_CMD_SHARE;
		call->client = share->client;
		call->object = share->object;
		return true;
	case NVRM_IOC_ALLOC:
		call->cmd = FAKE_CMD_ALLOC;
		call->client = alloc->root;
		return true;
	case NVRM_IOC_FREE:
		call->cmd = FAKE_CMD_FREE;
		call->client = object->root;
		call->object = object->object;
		return true;
	default:
		return false;
	}
}

static int answer(struct fake_rm *f, int file, unsigned long request, void *arg)
{
	switch (request) {
	case NVRM_IOC_CONTROL:
		return control(f, file, arg);
	case NVRM_IOC_SHARE:
		return share(f, file, arg);
	case NVRM_IOC_ALLOC:
		return alloc(f, file, arg);
	default:
		return free_object(f, file, arg);
	}
}

static void put_status(unsigned long request, void *arg, int status)
{
	switch (request) {
	case NVRM_IOC_CONTROL:
		((struct nvrm_control *)arg)->status = (uint32_t)status;
		break;
	case NVRM_IOC_SHARE:
		((struct nvrm_share *)arg)->status = (uint32_t)status;
		break;
	case NVRM_IOC_ALLOC:
		((struct nvrm_alloc *)arg)->status = (uint32_t)status;
		break;
	default:
		((struct nvrm_free *)arg)->status = (uint32_t)status;
		break;
	}
}

static int run(struct fake_rm *f, int fd, unsigned long request, void *arg, struct fake_call *call)
{
	struct fake_fault fault = { 0 };
	bool hit = fake_enter(f, call, &fault);

	if (fd < 0 || fd >= FAKE_FDS || f->fds[fd] < 0) {
		f->sins.misuse++;
		return -EBADF;
	}
	if (!hit || fault.applied)
		call->result = answer(f, f->fds[fd], request, arg);
	if (hit && fault.error)
		return -fault.error;
	if (hit)
		call->result = fault.status;
	put_status(request, arg, call->result);
	return 0;
}

int fake_rm_ioctl(void *data, int fd, unsigned long request, void *arg)
{
	struct fake_rm *f = data;
	struct fake_call call = { 0 };
	int r;

	if (!note(&call, request, arg))
		return -EINVAL;
	pthread_mutex_lock(&f->lock);
	r = run(f, fd, request, arg, &call);
	if (r < 0)
		call.result = r;
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return r;
}
