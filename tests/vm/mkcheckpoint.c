/* SPDX-License-Identifier: MIT */
/*
 * usage: mkcheckpoint
 *
 * Has the driver save the queues of a process as for CRIU, sees that they run on, and makes the
 * same queues in a second process with the same memory at the same addresses. As root. The software
 * GPU exports no memory, so the saving ends there; the queues come before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/kfd_memory.h"
#include "tests/vm/mk.h"

#define N_QUEUES 3u
#define N_PACKETS 20u
#define WAIT_MS 1000u
#define MAX_GPUS 64u
#define OBJECT_QUEUE 0u

/* Linux 6.12 kfd_priv.h: what the driver keeps to itself. */
struct process_part {
	uint32_t version, xnack_mode;
};

struct device_part {
	uint64_t reserved;
};

struct buffer_part {
	uint64_t user_addr;
	uint32_t handle;
	uint32_t gpus[MAX_GPUS];
};

struct queue_part {
	uint32_t type;
	uint64_t addresses[7];
	uint32_t words[11];
	uint32_t ctl_stack_size, mqd_size;
};

struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket device;
	struct kfd_criu_bo_bucket buffers[MK_MAX_USER + 8];
	char *private;
};

static int criu(struct mk_gpu *gpu, struct kfd_ioctl_criu_args *args, uint32_t op)
{
	args->op = op;
	return ioctl(gpu->kfd, AMDKFD_IOC_CRIU_OP, args) ? -errno : 0;
}

static void fail(const char *what)
{
	fprintf(stderr, "mkcheckpoint: %s\n", what);
	exit(1);
}

static void run(struct mk_gpu *gpu, struct mk_queue *qs)
{
	for (unsigned int i = 0; i < N_QUEUES; i++) {
		for (unsigned int n = 0; n < N_PACKETS; n++)
			mk_submit(&qs[i], 1, 1);
	}
	for (unsigned int i = 0; i < N_QUEUES; i++) {
		while (mk_pending(&qs[i]))
			mk_wait(gpu, WAIT_MS);
		if (!mk_is_right(&qs[i]))
			fail("a queue's memory is wrong");
	}
}

static void save(struct mk_gpu *gpu, struct image *im)
{
	struct kfd_ioctl_criu_args *a = &im->args;

	if (criu(gpu, a, KFD_CRIU_OP_PROCESS_INFO))
		mk_die("PROCESS_INFO");
	im->private = calloc(1, a->priv_data_size);
	if (!im->private || a->num_devices != 1 || a->num_bos > MK_MAX_USER + 8)
		fail("one GPU is expected, and not so many buffers");
	a->devices = (uintptr_t)&im->device;
	a->bos = (uintptr_t)im->buffers;
	a->priv_data = (uintptr_t)im->private;
	switch (criu(gpu, a, KFD_CRIU_OP_CHECKPOINT)) {
	case 0:
	case -EOPNOTSUPP:
	case -EINVAL:
		break;
	default:
		mk_die("CHECKPOINT");
	}
	if (criu(gpu, a, KFD_CRIU_OP_UNPAUSE))
		mk_die("UNPAUSE");
}

/* Of the first @n_queues of the objects in @from. */
static size_t queue_bytes(const char *from, unsigned int n_queues)
{
	struct queue_part q;
	size_t at = 0;

	for (unsigned int i = 0; i < n_queues; i++) {
		memcpy(&q, from + at, sizeof(q));
		if (q.type != OBJECT_QUEUE || !q.mqd_size)
			fail("the queues were not saved");
		at += sizeof(q) + q.mqd_size + q.ctl_stack_size;
	}
	return at;
}

/* Only what @gpu gave of its own memory, and the queues. */
static void reduce(const struct mk_gpu *gpu, struct image *im)
{
	size_t head = sizeof(struct process_part) + sizeof(struct device_part);
	const char *objects = im->private + head + im->args.num_bos * sizeof(struct buffer_part);
	size_t bytes = queue_bytes(objects, N_QUEUES);
	char *private = calloc(1, head + gpu->n_user * sizeof(struct buffer_part) + bytes);
	char *at = private;

	if (!private)
		mk_die("calloc");
	at = mempcpy(at, im->private, head);
	for (unsigned int i = 0; i < gpu->n_user; i++) {
		struct buffer_part part = { gpu->user[i].at, i + 1, { gpu->gpu_id } };

		im->buffers[i] = (struct kfd_criu_bo_bucket){
			.addr = gpu->user[i].at,
			.size = gpu->user[i].size,
			.gpu_id = gpu->gpu_id,
			.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
				       KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
		};
		at = mempcpy(at, &part, sizeof(part));
	}
	at = mempcpy(at, objects, bytes);
	free(im->private);
	im->private = private;
	im->args.priv_data = (uintptr_t)private;
	im->args.priv_data_size = (uint64_t)(at - private);
	im->args.num_bos = gpu->n_user;
	im->args.num_objects = N_QUEUES;
}

static void restore(struct mk_gpu *gpu, struct image *im, struct mk_queue *qs)
{
	char path[64];

	gpu->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->render_minor);
	im->device.drm_fd = (uint32_t)open(path, O_RDWR | O_CLOEXEC);
	im->device.user_gpu_id = im->device.actual_gpu_id = gpu->gpu_id;
	if (criu(gpu, &im->args, KFD_CRIU_OP_RESTORE))
		mk_die("RESTORE");
	im->args.pid = (uint32_t)getpid();
	if (criu(gpu, &im->args, KFD_CRIU_OP_RESUME))
		mk_die("RESUME");
	for (unsigned int i = 0; i < N_QUEUES; i++)
		mk_queue_destroy(&qs[i]);
}

static void restore_in_another(struct mk_gpu *gpu, struct image *im, struct mk_queue *qs)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		mk_die("fork");
	if (!pid) {
		restore(gpu, im, qs);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		fail("the second process failed");
}

int main(void)
{
	static struct mk_gpu gpu;
	static struct mk_queue qs[N_QUEUES];
	static struct image image;

	mk_gpu_open(&gpu, 0);
	gpu.user_memory = true;
	for (unsigned int i = 0; i < N_QUEUES; i++)
		mk_queue_create(&qs[i], &gpu, (enum mk_kind)i, 7);
	run(&gpu, qs);
	save(&gpu, &image);
	run(&gpu, qs);
	reduce(&gpu, &image);
	/* A restored queue is given the SDMA engine and slot it had. */
	for (unsigned int i = 0; i < N_QUEUES; i++)
		mk_queue_destroy(&qs[i]);
	restore_in_another(&gpu, &image, qs);
	return 0;
}
