/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "abi/kfd_gpreempt.h"
#include "tests/kfd/backend_rig.h"

/* The model's table has no room for us: tests run one rig at a time. */
static struct rig *the_rig;

enum gkfd_ext_use rig_ext = GKFD_EXT_NEVER;

static void pass_gate(uint32_t pid)
{
	struct rig *rig = the_rig;
	char byte = '.';

	if ((pid_t)pid != __atomic_load_n(&rig->blocked, __ATOMIC_ACQUIRE))
		return;
	assert_int_equal(write(rig->at_gate[1], &byte, 1), 1);
	while (read(rig->gate[0], &byte, 1) < 0)
		;
}

static int gated_ioctl(void *data, unsigned long request, void *arg)
{
	if (request == AMDKFD_IOC_DBG_TRAP)
		pass_gate(((const struct kfd_ioctl_dbg_trap_args *)arg)->pid);
	return gkfd_transport_model.ioctl(data, request, arg);
}

static int gated_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	pass_gate((uint32_t)pid);
	return gkfd_transport_model.ioctl_on(data, pid, fd, request, arg);
}

static int counted_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			     size_t *ret_len)
{
	struct rig *rig = the_rig;

	if (tree == GKFD_TREE_DEBUGFS && strcmp(path, "mqds") == 0) {
		char byte;

		rig->mqds_reads++;
		while (rig->mqds_blocked && read(rig->gate[0], &byte, 1) < 0)
			;
		if (rig->no_mqds)
			return -EACCES;
	}
	if (rig->no_queue_files && tree == GKFD_TREE_SYSFS && strstr(path, "/queues/"))
		return -ENOENT;
	return gkfd_transport_model.read_file(data, tree, path, ret_text, ret_len);
}

static int refusing_ext(void *data, unsigned long request, void *arg)
{
	const struct kfd_gpreempt_stats *stats = arg;
	const struct kfd_gpreempt_batch *batch = arg;

	if (request == KFD_GPREEMPT_BATCH_UNMAP_QUEUES)
		pass_gate(((const struct kfd_gpreempt_entry *)(uintptr_t)batch->entries)->pid);

	if (request == KFD_GPREEMPT_GET_STATS &&
	    (the_rig->no_stats == -1 || the_rig->no_stats == (pid_t)stats->pid))
		return -EPERM;
	return gkfd_transport_model.ext(data, request, arg);
}

static int refusing_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			     size_t n)
{
	int r = the_rig->mem_error ? the_rig->mem_error :
				     gkfd_transport_model.read_mem(data, pid, mem, spans, n);

	for (size_t i = 0; i < MIN(n, the_rig->mem_holes); i++)
		spans[i].ok = false;
	return r;
}

int rig_try(struct rig *rig, const char *spec, enum gkfd_way way, struct gpu_why *why)
{
	_cleanup_free_ char *reason = NULL;
	struct model *m;
	struct gkfd *k;

	*rig = (struct rig){ .table = gkfd_transport_model };
	the_rig = rig;
	rig->table.ioctl = gated_ioctl;
	rig->table.ioctl_on = gated_ioctl_on;
	rig->table.read_file = counted_read_file;
	rig->table.ext = refusing_ext;
	rig->table.read_mem = refusing_read_mem;
	assert_int_equal(pipe2(rig->gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(rig->at_gate, O_CLOEXEC), 0);
	assert_int_equal(model_new_preset(spec, &m, &reason), 0);
	rig->device = model_transport_new(m);
	assert_int_equal(gkfd_new(&rig->table, rig->device, &k), 0);
	return gkfd_backend_open(k,
				 &(struct gkfd_backend_options){
					 .ext = rig_ext,
					 .way = way,
					 .why = why,
				 },
				 &rig->b);
}

void rig_open(struct rig *rig, const char *spec)
{
	assert_int_equal(rig_try(rig, spec, GKFD_BY_DEBUG, NULL), 0);
}

void rig_close(struct rig *rig)
{
	if (rig->b)
		rig->b->ops->close(rig->b);
	for (int i = 0; i < 2; i++) {
		closep(&rig->gate[i]);
		closep(&rig->at_gate[i]);
	}
}

int rig_setup(void **state, const char *spec)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig_open(rig, spec);
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *rig = *state;

	rig_unblock(rig); /* a test that failed has left whoever waits there */
	rig_close(rig);
	free(rig);
	return 0;
}

struct model *rig_lock(struct rig *rig)
{
	return model_transport_lock(rig->device);
}

void rig_unlock(struct rig *rig)
{
	model_transport_unlock(rig->device);
}

void rig_advance(struct rig *rig, uint64_t ns)
{
	model_advance(rig_lock(rig), ns);
	rig_unlock(rig);
}

bool rig_is_suspended(struct rig *rig, pid_t pid, uint32_t queue)
{
	struct model_queue_stats stats = { 0 };
	int r = model_queue_stats(rig_lock(rig), pid, queue, &stats);

	rig_unlock(rig);
	return r >= 0 && stats.suspended;
}

uint32_t rig_count_suspended(struct rig *rig, pid_t pid)
{
	uint32_t n = 0;

	for (uint32_t id = 0; id < 256; id++)
		n += rig_is_suspended(rig, pid, id);
	return n;
}

struct gpu_done rig_next(struct rig *rig)
{
	struct pollfd p = { .fd = rig->b->ops->fd(rig->b), .events = POLLIN };
	struct gpu_done done;

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(rig->b->ops->take(rig->b, &done), 1);
	return done;
}

bool rig_is_quiet(struct rig *rig)
{
	struct pollfd p = { .fd = rig->b->ops->fd(rig->b), .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

void rig_expect(struct rig *rig, enum gpu_verb verb, int result, uint32_t queues)
{
	struct gpu_done done = rig_next(rig);

	assert_int_equal(done.verb, verb);
	assert_int_equal(done.result, result);
	assert_int_equal(done.queues, queues);
	assert_int_equal(done.why.message[0] != '\0', result < 0);
	assert_true(done.done_ns >= done.began_ns);
}

struct gpu_target *rig_attach(struct rig *rig, pid_t pid)
{
	struct gpu_target *t;

	assert_int_equal(rig->b->ops->attach(rig->b, &(struct gpu_attach){ pid }, 1, &t), 0);
	rig_expect(rig, GPU_ATTACH, 0, 0);
	return t;
}

void rig_block(struct rig *rig, pid_t pid)
{
	__atomic_store_n(&rig->blocked, pid, __ATOMIC_RELEASE);
}

void rig_await_blocked(struct rig *rig)
{
	char byte;

	assert_int_equal(read(rig->at_gate[0], &byte, 1), 1);
}

void rig_unblock(struct rig *rig)
{
	__atomic_store_n(&rig->blocked, 0, __ATOMIC_RELEASE);
	closep(&rig->gate[1]);
	rig->gate[1] = -1;
}
