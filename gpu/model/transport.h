/* SPDX-License-Identifier: MIT */
/* What the transport in virtual time and the one in real time (live.h) have in common. */
#ifndef GPREEMPT_GPU_MODEL_TRANSPORT_H
#define GPREEMPT_GPU_MODEL_TRANSPORT_H

#include <pthread.h>

#include "gpu/model/model.h"

struct model_device { /* @data of both, at its beginning */
	pthread_mutex_t lock;
	struct model *m;
	pid_t self; /* who we are on it */
	uint64_t ext; /* our file of the extension's device; 0: not open */
	/* Of real time, else NULL. The first two hold the lock. */
	void (*entered)(struct model_device *d);
	void (*leaving)(struct model_device *d);
	void (*catch_up)(struct model_device *d, uint64_t until_ns);
};

void model_device_init(struct model_device *d, struct model *m, pid_t self); /* takes over @m */
void model_device_done(struct model_device *d);

struct model_device *model_device_enter(void *data);
int model_device_leave(struct model_device *d, int r); /* returns @r */

int model_device_open(void *data);
int model_device_ioctl(void *data, unsigned long request, void *arg);
int model_device_ext(void *data, unsigned long request, void *arg);
/* With the lock: lets go of what is held through that file. */
void model_device_close_ext(struct model_device *d);
int model_device_borrow(void *data, pid_t pid, unsigned int nth);
int model_device_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg);
int model_device_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			   size_t *ret_len);
int model_device_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names);
int model_device_read_mem(void *data, pid_t pid, struct gkfd_span *spans, size_t n);

int model_trace_seize(void *data, pid_t pid);
int model_trace_nothing(void *data, pid_t pid); /* interrupt, listen */
int model_trace_cont(void *data, pid_t pid, int sig);
int model_trace_detach(void *data, pid_t pid, int sig);
int model_trace_reap(void *data, pid_t pid, int *ret_status);

#endif
