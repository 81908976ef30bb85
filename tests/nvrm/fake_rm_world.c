/* SPDX-License-Identifier: MIT */
/* The machine and the processes the fake plays, with objects as libcuda makes them. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "tests/nvrm/fake_rm_state.h"
#include "util/macros.h"

#define CLASS_VASPACE 0x90f1u
#define CLASS_MEMORY 0x003eu
#define CLASS_VIDEO_MEMORY 0x0040u
#define CLASS_CONTEXT_SHARE 0x9067u
#define CLASS_CHANNEL 0xc86fu
#define CLASS_COMPUTE 0xcbc0u
#define CLASS_COPY 0xc8b5u
#define CLASS_USERMODE 0xc661u

#define COPY_GROUPS 3

static const char version_text[] =
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
	"  (dvs-builder@U22-I3-B09-02-5)  Tue Jan 20 18:04:09 UTC 2026\n"
	"GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n";

/* ---- the machine ---- */

struct fake_rm *fake_rm_new(void)
{
	struct fake_rm *f = calloc(1, sizeof(*f));

	fake_must(f, "no memory");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->next_client = NVRM_FIRST_CLIENT;
	f->next_group = 1;
	f->next_start = 1000;
	f->now_ns = NSEC_PER_SEC;
	for (size_t i = 0; i < FAKE_FDS; i++)
		f->fds[i] = -1;
	fake_rm_set_version(f, version_text);
	fake_rm_add_gpu(f, FAKE_GPU, "NVIDIA H200");
	return f;
}

void fake_rm_free(struct fake_rm *f)
{
	for (size_t i = 0; i < FAKE_CLIENTS; i++)
		fake_end_client(&f->clients[i]);
	for (size_t i = 0; i < f->n_processes; i++)
		close(f->processes[i].exit_fd);
	for (int fd = 0; fd < FAKE_FDS; fd++)
		if (f->fds[fd] >= 0)
			close(fd);
	if (f->answers_later)
		close(f->answers_fd);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f->version);
	free(f->calls);
	free(f);
}

void fake_rm_add_gpu(struct fake_rm *f, uint32_t gpu, const char *name)
{
	fake_must(f->n_gpus < FAKE_GPUS, "too many GPUs");
	f->gpus[f->n_gpus].gpu = gpu;
	snprintf(f->gpus[f->n_gpus].name, sizeof(f->gpus[0].name), "%s", name);
	f->n_gpus++;
}

void fake_rm_set_version(struct fake_rm *f, const char *text)
{
	free(f->version);
	f->version = text ? strdup(text) : NULL;
}

void fake_rm_set_mig(struct fake_rm *f, uint32_t gpu)
{
	for (size_t i = 0; i < f->n_gpus; i++)
		f->gpus[i].mig |= f->gpus[i].gpu == gpu;
}

void fake_rm_set_caller(struct fake_rm *f, uid_t uid)
{
	f->caller = uid;
}

void fake_rm_recycle_numbers(struct fake_rm *f)
{
	f->recycle = true;
}

void fake_rm_pass_clients(struct fake_rm *f, uint32_t n)
{
	pthread_mutex_lock(&f->lock);
	f->next_client += n;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_advance(struct fake_rm *f, uint64_t ns)
{
	pthread_mutex_lock(&f->lock);
	f->now_ns += ns;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_set_real_time(struct fake_rm *f, bool real)
{
	f->real_time = real;
}

/* ---- processes ---- */

void fake_rm_spawn(struct fake_rm *f, pid_t pid, uid_t uid, const char *comm)
{
	struct fake_process *p;

	pthread_mutex_lock(&f->lock);
	fake_must(!fake_process(f, pid), "the process is there already");
	fake_must(f->n_processes < FAKE_PROCESSES, "too many processes");
	p = &f->processes[f->n_processes++];
	*p = (struct fake_process){ .pid = pid, .parent = 1, .uid = uid };
	p->start = f->next_start++;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	snprintf(p->exe, sizeof(p->exe), "/usr/bin/%s", comm);
	p->exit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_must(p->exit_fd >= 0, "no eventfd");
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_set_exe(struct fake_rm *f, pid_t pid, const char *path)
{
	struct fake_process *p;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p, "no such process");
	snprintf(p->exe, sizeof(p->exe), "%s", path);
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_fork(struct fake_rm *f, pid_t parent, pid_t pid)
{
	struct fake_process *p, *child;

	fake_rm_spawn(f, pid, 0, "worker");
	pthread_mutex_lock(&f->lock);
	p = fake_process(f, parent);
	child = fake_process(f, pid);
	fake_must(p && child, "no such process");
	child->parent = parent;
	child->uid = p->uid;
	child->n_numbers = p->n_numbers;
	memcpy(child->numbers, p->numbers, sizeof(p->numbers));
	for (unsigned int i = 0; i < p->n_numbers; i++)
		if (p->numbers[i].path[0] && p->numbers[i].file >= 0)
			f->files[p->numbers[i].file].refs++;
	pthread_mutex_unlock(&f->lock);
}

int fake_rm_open_file(struct fake_rm *f, pid_t pid, const char *path)
{
	bool control = strcmp(path, "/dev/nvidiactl") == 0;
	struct fake_process *p;
	int number;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p && p->n_numbers < FAKE_NUMBERS, "no such process, or too many files");
	for (number = 0; number < (int)p->n_numbers && p->numbers[number].path[0]; number++)
		; /* the lowest that is free */
	p->n_numbers += number == (int)p->n_numbers;
	snprintf(p->numbers[number].path, sizeof(p->numbers[number].path), "%s", path);
	p->numbers[number].file = control ? fake_new_file(f, pid) : -1;
	pthread_mutex_unlock(&f->lock);
	return number + FAKE_FIRST_NUMBER;
}

void fake_rm_open_sockets(struct fake_rm *f, pid_t pid, unsigned int n)
{
	struct fake_process *p;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p, "no such process");
	p->n_plain += n;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_close_file(struct fake_rm *f, pid_t pid, int number)
{
	struct fake_process *p;
	struct fake_number *n;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p, "no such process");
	n = &p->numbers[number - FAKE_FIRST_NUMBER];
	if (n->path[0] && n->file >= 0)
		fake_unref_file(f, n->file);
	n->path[0] = '\0';
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_move_file(struct fake_rm *f, pid_t pid, int number)
{
	struct fake_process *p;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p && p->n_numbers < FAKE_NUMBERS, "no such process, or too many files");
	p->numbers[p->n_numbers++] = p->numbers[number - FAKE_FIRST_NUMBER];
	p->numbers[number - FAKE_FIRST_NUMBER].path[0] = '\0';
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_set_owner(struct fake_rm *f, pid_t pid, uid_t uid)
{
	struct fake_process *p;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p, "no such process");
	p->uid = uid;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_exit(struct fake_rm *f, pid_t pid)
{
	pthread_mutex_lock(&f->lock);
	fake_must(fake_process(f, pid), "no such process");
	fake_end_process(f, pid);
	pthread_mutex_unlock(&f->lock);
}

/* ---- objects ---- */

static struct fake_object *add(struct fake_client *c, uint32_t class, uint32_t parent, uint32_t gpu)
{
	size_t at = c->n;

	if (c->n == c->room) {
		c->room = MAX(c->room * 2, (size_t)64);
		c->objects = reallocarray(c->objects, c->room, sizeof(*c->objects));
		fake_must(c->objects, "no memory");
	}
	fake_must(!fake_object(c, c->next), "the number is not free");
	while (at > 0 && c->objects[at - 1].handle > c->next)
		at--;
	memmove(&c->objects[at + 1], &c->objects[at], (c->n - at) * sizeof(*c->objects));
	c->n++;
	c->objects[at] = (struct fake_object){
		.handle = c->next++, .class = class, .parent = parent, .gpu = gpu
	};
	return &c->objects[at];
}

void fake_rm_reuse(struct fake_rm *f, uint32_t client, uint32_t handle)
{
	pthread_mutex_lock(&f->lock);
	fake_must(fake_client(f, client), "no such client");
	fake_client(f, client)->next = handle;
	pthread_mutex_unlock(&f->lock);
}

uint32_t fake_rm_client(struct fake_rm *f, pid_t pid, int number)
{
	struct fake_process *p;
	struct fake_client *c;
	uint32_t handle;

	pthread_mutex_lock(&f->lock);
	p = fake_process(f, pid);
	fake_must(p, "no such process");
	c = fake_new_client(f, p->numbers[number - FAKE_FIRST_NUMBER].file);
	c->next = NVRM_FIRST_OBJECT + 2;
	handle = c->handle;
	pthread_mutex_unlock(&f->lock);
	return handle;
}

static uint32_t device_of(struct fake_client *c, uint32_t gpu)
{
	uint32_t device;

	for (size_t i = 0; i < c->n; i++)
		if (c->objects[i].class == NVRM_CLASS_DEVICE && c->objects[i].gpu == gpu)
			return c->objects[i].handle;
	device = add(c, NVRM_CLASS_DEVICE, c->handle, gpu)->handle;
	add(c, NVRM_CLASS_SUBDEVICE, device, gpu);
	add(c, CLASS_USERMODE, device + 1, gpu);
	add(c, CLASS_VASPACE, device, gpu);
	while ((c->next & 0xf) != 5) {
		add(c, CLASS_MEMORY, device, gpu);
		if ((c->next & 0xf) != 5)
			c->next++;
	}
	return device;
}

static uint32_t add_group(struct fake_rm *f, struct fake_client *c, uint32_t device, uint32_t gpu,
			  unsigned int channels, bool compute)
{
	struct fake_object *group = add(c, NVRM_CLASS_CHANNEL_GROUP, device, gpu);
	uint32_t handle = group->handle;

	group->id = f->next_group++;
	group->slice_us = compute ? 2048 : FAKE_COPY_SLICE_US;
	add(c, CLASS_CONTEXT_SHARE, handle, gpu);
	for (unsigned int i = 0; i < channels; i++) {
		uint32_t channel;

		add(c, CLASS_MEMORY, device, gpu);
		channel = add(c, CLASS_CHANNEL, handle, gpu)->handle;
		if (compute)
			add(c, CLASS_COMPUTE, channel, gpu);
		add(c, CLASS_COPY, channel, gpu);
		c->next++;
	}
	return handle;
}

uint32_t fake_rm_context(struct fake_rm *f, uint32_t client, uint32_t gpu, unsigned int connections)
{
	unsigned int copying = connections == FAKE_CONNECTIONS ? 4 : connections;
	struct fake_client *c;
	uint32_t device, first;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	fake_must(c, "no such client");
	device = device_of(c, gpu);
	first = add_group(f, c, device, gpu, connections, true);
	for (unsigned int i = 0; i < COPY_GROUPS; i++)
		add_group(f, c, device, gpu, copying, false);
	pthread_mutex_unlock(&f->lock);
	return first;
}

void fake_rm_free_client(struct fake_rm *f, uint32_t client)
{
	pthread_mutex_lock(&f->lock);
	fake_must(fake_client(f, client), "no such client");
	fake_end_client(fake_client(f, client));
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_drop_context(struct fake_rm *f, uint32_t client, uint32_t group)
{
	struct fake_client *c;
	size_t from = 0, to;
	int groups = 0;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	fake_must(c && fake_object(c, group), "no such group");
	while (c->objects[from].handle != group)
		from++;
	for (to = from; to < c->n; to++) {
		groups += c->objects[to].class == NVRM_CLASS_CHANNEL_GROUP;
		if (groups > 1 + COPY_GROUPS || c->objects[to].class == CLASS_VIDEO_MEMORY ||
		    c->objects[to].class == NVRM_CLASS_DEVICE)
			break;
	}
	memmove(&c->objects[from], &c->objects[to], (c->n - to) * sizeof(*c->objects));
	c->n -= to - from;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_memory(struct fake_rm *f, uint32_t client, unsigned int n)
{
	struct fake_client *c;
	uint32_t device;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	fake_must(c, "no such client");
	device = device_of(c, f->gpus[0].gpu);
	for (unsigned int i = 0; i < n; i++)
		add(c, CLASS_VIDEO_MEMORY, device, f->gpus[0].gpu);
	pthread_mutex_unlock(&f->lock);
}

uint32_t fake_rm_job(struct fake_rm *f, pid_t pid)
{
	uint32_t client;
	int number;

	fake_rm_spawn(f, pid, 0, "job");
	number = fake_rm_open_file(f, pid, "/dev/nvidiactl");
	fake_rm_open_file(f, pid, "/dev/nvidia0");
	fake_rm_open_file(f, pid, "/dev/nvidia-uvm");
	client = fake_rm_client(f, pid, number);
	fake_rm_context(f, client, FAKE_GPU, FAKE_CONNECTIONS);
	return client;
}

static struct fake_object *must_find(struct fake_rm *f, uint32_t client, uint32_t object)
{
	struct fake_client *c = fake_client(f, client);
	struct fake_object *o = c ? fake_object(c, object) : NULL;

	fake_must(o, "no such object");
	return o;
}

void fake_rm_share_group(struct fake_rm *f, uint32_t client, uint32_t group, uint32_t with_client,
			 uint32_t with_group)
{
	pthread_mutex_lock(&f->lock);
	must_find(f, client, group)->id = must_find(f, with_client, with_group)->id;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_table(struct fake_rm *f, uint32_t client, struct nvrm_objects *ret)
{
	const struct fake_client *c;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	fake_must(c, "no such client");
	for (size_t i = 0; i < c->n; i++)
		fake_must(nvrm_objects_add(
				  ret, &(struct nvrm_object){ .handle = c->objects[i].handle,
							      .class = c->objects[i].class,
							      .parent = c->objects[i].parent }) ==
				  0,
			  "no memory");
	pthread_mutex_unlock(&f->lock);
}

/* ---- what is done to channels ---- */

static bool concerns(const struct fake_rm *f, const struct fake_client *c, pid_t pid)
{
	return c->handle && (pid == -1 || fake_client_pid(f, c) == pid);
}

size_t fake_rm_disabled(struct fake_rm *f, pid_t pid)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_CLIENTS; i++)
		for (size_t j = 0; concerns(f, &f->clients[i], pid) && j < f->clients[i].n; j++)
			n += f->clients[i].objects[j].disabled > 0;
	pthread_mutex_unlock(&f->lock);
	return n;
}

unsigned int fake_rm_highest(struct fake_rm *f, pid_t pid)
{
	unsigned int highest = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_CLIENTS; i++)
		for (size_t j = 0; concerns(f, &f->clients[i], pid) && j < f->clients[i].n; j++)
			highest = MAX(highest, f->clients[i].objects[j].disabled);
	pthread_mutex_unlock(&f->lock);
	return highest;
}

/* One channel takes its whole group with it. */
bool fake_rm_group_off(struct fake_rm *f, uint32_t client, uint32_t group)
{
	const struct fake_client *c;
	bool off = false;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	for (size_t i = 0; c && i < c->n; i++)
		off |= c->objects[i].parent == group && c->objects[i].disabled > 0;
	pthread_mutex_unlock(&f->lock);
	return off;
}

uint64_t fake_rm_slice(struct fake_rm *f, uint32_t client, uint32_t group)
{
	uint64_t us;

	pthread_mutex_lock(&f->lock);
	us = must_find(f, client, group)->slice_us;
	pthread_mutex_unlock(&f->lock);
	return us;
}

void fake_rm_leave_disabled(struct fake_rm *f, uint32_t client, uint32_t group, unsigned int times)
{
	struct fake_client *c;

	pthread_mutex_lock(&f->lock);
	c = fake_client(f, client);
	fake_must(c, "no such client");
	for (size_t i = 0; i < c->n; i++)
		if (c->objects[i].parent == group && NVRM_IS_CHANNEL(c->objects[i].class))
			c->objects[i].disabled += times;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_leave_slice(struct fake_rm *f, uint32_t client, uint32_t group, uint64_t us)
{
	pthread_mutex_lock(&f->lock);
	must_find(f, client, group)->slice_us = us;
	pthread_mutex_unlock(&f->lock);
}
