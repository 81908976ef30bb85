/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

/* libcuda's handles are far below, the driver's clients too. */
#define NO_SUCH_OBJECT 0xfffffff0u

int nvrm_new(const struct nvrm_transport *transport, void *data, struct nvrm **ret)
{
	struct nvrm *n = calloc(1, sizeof(*n));

	if (!n) {
		transport->close(data);
		return -ENOMEM;
	}
	n->transport = transport;
	n->data = data;
	*ret = n;
	return 0;
}

struct nvrm *nvrm_ref(struct nvrm *n)
{
	n->more_refs++;
	return n;
}

void nvrm_free(struct nvrm *n)
{
	if (!n || n->more_refs-- > 0)
		return;
	n->transport->close(n->data);
	free(n);
}

void nvrm_freep(struct nvrm **n)
{
	nvrm_free(*n);
}

uint64_t nvrm_now_ns(const struct nvrm *n)
{
	return n->transport->now_ns(n->data);
}

/* @status is written by the call whose result @r is. */
static int said(int r, const uint32_t *status)
{
	if (r < 0)
		return r;
	return *status <= INT_MAX ? (int)*status : -EPROTO;
}

int nvrm_control(struct nvrm *n, int fd, uint32_t client, uint32_t object, uint32_t cmd,
		 void *params, uint32_t size)
{
	struct nvrm_control args = {
		.client = client,
		.object = object,
		.cmd = cmd,
		.params = (uintptr_t)params,
		.params_size = size,
	};

	return said(n->transport->ioctl(n->data, fd, NVRM_IOC_CONTROL, &args), &args.status);
}

int nvrm_new_client(struct nvrm *n, int fd, uint32_t *ret_client)
{
	struct nvrm_alloc args = { .class = NVRM_CLASS_CLIENT };
	int r = said(n->transport->ioctl(n->data, fd, NVRM_IOC_ALLOC, &args), &args.status);

	if (r == NVRM_OK)
		*ret_client = args.object;
	return r;
}

/*
 * The driver looks for the client, then whether it belongs to the descriptor, then for the
 * object: each step has a status of its own (580 rs_server.c).
 */
int nvrm_whose(struct nvrm *n, int fd, uint32_t client)
{
	struct nvrm_share args = {
		.client = client,
		.object = NO_SUCH_OBJECT,
		.type = NVRM_SHARE_TYPE_NONE,
	};
	int r = said(n->transport->ioctl(n->data, fd, NVRM_IOC_SHARE, &args), &args.status);

	switch (r) {
	case NVRM_OBJECT_NOT_FOUND:
		return NVRM_THIS;
	case NVRM_INVALID_CLIENT:
		return NVRM_SOMEBODYS;
	case NVRM_INVALID_OBJECT_HANDLE:
		return NVRM_NOBODYS;
	case NVRM_OK:
		return -EPROTO;
	default:
		return nvrm_status_errno(r);
	}
}

static int get_handle_info(struct nvrm *n, int fd, uint32_t client, uint32_t object,
			   uint32_t index, uint32_t *ret)
{
	struct nvrm_handle_info info = { .object = object, .index = index };
	int r = nvrm_control(n, fd, client, client, NVRM_CTRL_GET_HANDLE_INFO, &info, sizeof(info));

	if (r == NVRM_OK)
		*ret = (uint32_t)info.result;
	return r;
}

int nvrm_get_object(struct nvrm *n, int fd, uint32_t client, uint32_t object, uint32_t *ret_class,
		    uint32_t *ret_parent)
{
	uint32_t class, parent;
	int r = get_handle_info(n, fd, client, object, NVRM_HANDLE_CLASS, &class);

	if (r == NVRM_OK)
		r = get_handle_info(n, fd, client, object, NVRM_HANDLE_PARENT, &parent);
	if (r == NVRM_OK) {
		*ret_class = class;
		*ret_parent = parent;
	}
	return r;
}

int nvrm_get_gpu(struct nvrm *n, int fd, uint32_t client, uint32_t subdevice, uint32_t *ret_gpu)
{
	struct nvrm_gpu_id id = { 0 };
	int r = nvrm_control(n, fd, client, subdevice, NVRM_CTRL_GET_GPU_ID, &id, sizeof(id));

	if (r == NVRM_OK)
		*ret_gpu = id.gpu;
	return r;
}

int nvrm_get_group_id(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint32_t *ret_id)
{
	struct nvrm_group_info info = { 0 };
	int r = nvrm_control(n, fd, client, group, NVRM_CTRL_GET_GROUP_INFO, &info, sizeof(info));

	if (r == NVRM_OK)
		*ret_id = info.id;
	return r;
}

int nvrm_get_timeslice(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint64_t *ret_us)
{
	struct nvrm_timeslice slice = { 0 };
	int r = nvrm_control(n, fd, client, group, NVRM_CTRL_GET_TIMESLICE, &slice, sizeof(slice));

	if (r == NVRM_OK)
		*ret_us = slice.us;
	return r;
}

int nvrm_set_timeslice(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint64_t us)
{
	struct nvrm_timeslice slice = { .us = us };

	return nvrm_control(n, fd, client, group, NVRM_CTRL_SET_TIMESLICE, &slice, sizeof(slice));
}

int nvrm_disable_channels(struct nvrm *n, int fd, uint32_t client, uint32_t subdevice,
			  struct nvrm_disable_channels *call)
{
	return nvrm_control(n, fd, client, subdevice, NVRM_CTRL_DISABLE_CHANNELS, call,
			    sizeof(*call));
}
