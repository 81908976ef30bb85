/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static int setup_config(void **state, struct model_config config)
{
	static const struct model_proc_spec procs[] = {
		{ .pid = TARGET, .uid = 1000, .comm = "train" },
		{ .pid = DAEMON, .comm = "daemon" },
		{ .pid = SECOND, .comm = "second" },
		{ .pid = OTHER, .uid = 2000, .comm = "other" },
	};
	struct rig *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	config.n_gpus = 2;
	config.log_packets = true;
	if (model_new(&config, &r->m) < 0 || pipe2(r->pipe, O_NONBLOCK | O_CLOEXEC) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(procs); i++)
		if (model_proc_start(r->m, &procs[i]) < 0)
			return -1;
	r->target = (struct model_task){ TARGET, TARGET };
	r->daemon = (struct model_task){ DAEMON, DAEMON };
	r->second = (struct model_task){ SECOND, SECOND };
	if (model_kfd_open(r->m, r->daemon) < 0 || model_kfd_open(r->m, r->second) < 0)
		return -1;
	*state = r;
	return 0;
}

int rig_setup(void **state)
{
	return setup_config(state, (struct model_config){ .chip = model_chip_find("mi308x") });
}

int rig_setup_old_permission(void **state)
{
	return setup_config(state, (struct model_config){
					   .chip = model_chip_find("mi308x"),
					   .no_debugger_clause = true,
				   });
}

int rig_setup_kfd_1_11(void **state)
{
	return setup_config(state, (struct model_config){
					   .chip = model_chip_find("mi308x"),
					   .kfd_minor = 11,
				   });
}

int rig_setup_ext(void **state)
{
	return setup_config(state, (struct model_config){
					   .chip = model_chip_find("mi308x"),
					   .ext = MODEL_EXT_ALL_QUEUES,
				   });
}

int rig_setup_victims(void **state)
{
	return setup_config(state, (struct model_config){
					   .chip = model_chip_find("mi308x"),
					   .ext = MODEL_EXT_VICTIMS,
				   });
}

int rig_setup_ext_mes(void **state)
{
	return setup_config(state, (struct model_config){
					   .chip = model_chip_find("gfx1200"),
					   .ext = MODEL_EXT_ALL_QUEUES,
				   });
}

int rig_setup_mi100_like(void **state)
{
	static struct model_chip chip;

	chip = *model_chip_find("mi308x");
	chip.name = "mi100";
	chip.gfx_target_version = 90008;
	chip.n_xcc = 1;
	return setup_config(state, (struct model_config){ .chip = &chip });
}

int rig_teardown(void **state)
{
	struct rig *r = *state;

	model_free(r->m);
	close(r->pipe[0]);
	close(r->pipe[1]);
	free(r);
	return 0;
}

int rig_ioctl(struct rig *r, struct model_task who, unsigned long request, void *arg)
{
	return model_ioctl(r->m, who, who.pid, request, arg);
}

int rig_dbg(struct rig *r, struct model_task who, pid_t pid, uint32_t op,
	    struct kfd_ioctl_dbg_trap_args *args)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return rig_ioctl(r, who, AMDKFD_IOC_DBG_TRAP, args);
}

int rig_enable(struct rig *r, struct model_task who, pid_t pid, uint64_t mask,
	       struct kfd_runtime_info *rinfo)
{
	struct kfd_runtime_info ignored;
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.exception_mask = mask,
			.rinfo_ptr = (uintptr_t)(rinfo ? rinfo : &ignored),
			.rinfo_size = sizeof(ignored),
			.dbg_fd = (uint32_t)r->pipe[1],
		},
	};

	return rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_ENABLE, &args);
}

int rig_disable(struct rig *r, struct model_task who, pid_t pid)
{
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	return rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_DISABLE, &args);
}

int rig_suspend(struct rig *r, struct model_task who, pid_t pid, uint32_t *ids, uint32_t n,
		uint32_t grace)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = n,
			.grace_period = grace,
		},
	};

	return rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);
}

int rig_resume(struct rig *r, struct model_task who, pid_t pid, uint32_t *ids, uint32_t n)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.resume_queues = { .queue_array_ptr = (uintptr_t)ids, .num_queues = n },
	};

	return rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES, &args);
}

int rig_snapshot(struct rig *r, struct model_task who, pid_t pid, uint64_t clear,
		 struct kfd_queue_snapshot_entry *entries)
{
	struct kfd_queue_snapshot_entry ignored[64];
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.exception_mask = clear,
			.snapshot_buf_ptr = (uintptr_t)(entries ? entries : ignored),
			.num_queues = 64,
			.entry_size = sizeof(ignored[0]),
		},
	};
	int n = rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);

	return n < 0 ? n : (int)args.queue_snapshot.num_queues;
}

int rig_send_runtime(struct rig *r, struct model_task who, pid_t pid)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.send_runtime_event = { .exception_mask = RUNTIME_MASK },
	};

	return rig_dbg(r, who, pid, KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT, &args);
}

int rig_runtime_disable(struct rig *r, struct model_task who)
{
	struct kfd_ioctl_runtime_enable_args args = { 0 };

	return rig_ioctl(r, who, AMDKFD_IOC_RUNTIME_ENABLE, &args);
}

int rig_destroy(struct rig *r, struct model_task who, uint32_t id)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = id };

	return rig_ioctl(r, who, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

static struct kfd_queue_snapshot_entry entry_of(struct rig *r, uint32_t id)
{
	struct kfd_queue_snapshot_entry entries[64];
	int n = rig_snapshot(r, r->daemon, TARGET, 0, entries);

	for (int i = 0; i < n; i++)
		if (entries[i].queue_id == id)
			return entries[i];
	fail_msg("no queue %u in the snapshot", id);
	return entries[0];
}

int rig_update(struct rig *r, struct model_task who, uint32_t id, uint32_t percent)
{
	struct kfd_queue_snapshot_entry e = entry_of(r, id);
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = e.ring_base_address,
		.ring_size = e.ring_size,
		.queue_id = id,
		.queue_percentage = percent,
	};

	return rig_ioctl(r, who, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

uint32_t rig_queue(struct rig *r, pid_t pid, uint32_t gpu_index, uint32_t type)
{
	struct model_queue_spec spec = { .gpu_index = gpu_index, .type = type, .priority = 7 };
	uint32_t id = UINT32_MAX;

	assert_int_equal(model_queue_create(r->m, pid, &spec, &id), 0);
	return id;
}

void rig_target(struct rig *r, uint32_t n)
{
	assert_int_equal(model_runtime_enable(r->m, TARGET), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), i);
}

void rig_attached(struct rig *r, uint32_t n)
{
	rig_target(r, n);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, NEW_MASK | RUNTIME_MASK | DELETE_MASK,
				    NULL),
			 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, NEW_MASK, NULL), n);
}

void rig_busy(struct rig *r, pid_t pid, uint32_t id)
{
	struct model_work work = {
		.workgroups = 80,
		.wg_ns = 200 * NSEC_PER_USEC,
		.wg_per_cu = 1,
		.signal = true,
	};

	assert_int_equal(model_loop(r->m, pid, id, &work, 4), 0);
	model_advance(r->m, 50 * NSEC_PER_USEC);
}

uint64_t rig_cycles(struct rig *r, uint32_t gpu_index)
{
	struct model_gpu_stats stats;

	assert_int_equal(model_gpu_stats(r->m, gpu_index, &stats), 0);
	return stats.cycles;
}

struct model_queue_stats rig_queue_stats(struct rig *r, uint32_t id)
{
	struct model_queue_stats stats;

	assert_int_equal(model_queue_stats(r->m, TARGET, id, &stats), 0);
	return stats;
}

int rig_dots(struct rig *r)
{
	char buf[64];
	ssize_t n = read(r->pipe[0], buf, sizeof(buf));

	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(buf[i], '.');
	return n < 0 ? 0 : (int)n;
}

struct kfd_context_save_area_header rig_header(struct rig *r, uint32_t id, uint32_t xcc)
{
	struct kfd_queue_snapshot_entry e = entry_of(r, id);
	struct kfd_context_save_area_header header;

	assert_int_equal(model_mem_read(r->m, TARGET,
					e.ctx_save_restore_address +
						(uint64_t)xcc * e.ctx_save_restore_area_size,
					&header, sizeof(header)),
			 0);
	return header;
}

char *rig_file(struct rig *r, enum gkfd_tree tree, const char *path)
{
	char *text;
	size_t len;

	return model_read(r->m, tree, path, false, &text, &len) < 0 ? NULL : text;
}
