/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /sys/kernel/debug/kfdsim/N/: counters, processes, queues, waits and log to read; faults and
 * times to write, which take effect at once.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "kernel/kfdsim/sim.h"

static struct dentry *root;

#define COUNTER(name) \
	{ \
#name, offsetof(struct sim_counters, name) \
	}

static const struct {
	const char *name;
	size_t at;
} counters[] = {
	COUNTER(set_resources), COUNTER(runlists),     COUNTER(map_process), COUNTER(map_queues),
	COUNTER(unmaps),	COUNTER(queries),      COUNTER(write_data),  COUNTER(cycles),
	COUNTER(adds),		COUNTER(removes),      COUNTER(packets),     COUNTER(pm4),
	COUNTER(sdma),		COUNTER(sdma_bytes),   COUNTER(links),	     COUNTER(saves),
	COUNTER(saved_waves),	COUNTER(saved_bytes),  COUNTER(restores),    COUNTER(rotations),
	COUNTER(resets),	COUNTER(queue_resets), COUNTER(tlb_flushes), COUNTER(irqs),
	COUNTER(bad),		COUNTER(damaged),      COUNTER(fence_ns),    COUNTER(slot_ns),
	COUNTER(slot_taken_ns), COUNTER(slot_used_ns),
};

static int counters_show(struct seq_file *s, void *unused)
{
	struct sim_gpu *gpu = s->private;
	size_t i;

	mutex_lock(&gpu->lock);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		seq_printf(s, "%s %llu\n", counters[i].name,
			   *(u64 *)((void *)&gpu->count + counters[i].at));
	seq_printf(s, "last_reg %#x\nlast_value %#x\nmapped %u\nwaves %u\n", gpu->count.last_reg,
		   gpu->count.last_value, gpu->n_queues, gpu->waves);
	mutex_unlock(&gpu->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int processes_show(struct seq_file *s, void *unused)
{
	struct sim_gpu *gpu = s->private;
	unsigned int i;

	mutex_lock(&gpu->lock);
	for (i = 0; i < min_t(unsigned int, gpu->count.n_procs, SIM_MAX_PROCS); i++) {
		struct sim_proc_counters *p = &gpu->count.procs[i];

		seq_printf(s, "pid %d pasid %#x maps %llu unmaps %llu", p->pid, p->pasid, p->maps,
			   p->unmaps);
		seq_printf(s, " packets %llu saves %llu saved_bytes %llu\n", p->packets, p->saves,
			   p->saved_bytes);
	}
	mutex_unlock(&gpu->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(processes);

static int queues_show(struct seq_file *s, void *unused)
{
	static const char *const kinds[] = { "aql", "pm4", "sdma" };
	struct sim_gpu *gpu = s->private;
	unsigned int i;

	mutex_lock(&gpu->lock);
	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[i];

		seq_printf(s, "%s pasid %#x doorbell %#x read %llu write %llu running %u",
			   kinds[q->kind], q->pasid, q->doorbell, q->read, q->write, q->n_flight);
		if (q->resident)
			seq_printf(s, " vmid %u", q->vmid);
		if (q->slot != SIM_NO_SLOT)
			seq_printf(s, " pipe %u queue %u priority %u", q->slot / SIM_PIPE_QUEUES,
				   q->slot % SIM_PIPE_QUEUES, q->pipe_priority);
		seq_puts(s, q->hopeless ? " stuck\n" : "\n");
	}
	mutex_unlock(&gpu->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

void sim_debugfs_init(void)
{
	root = debugfs_create_dir("kfdsim", NULL);
	sim_policies_init(root);
}

void sim_debugfs_add(struct sim_gpu *gpu)
{
	struct sim_knobs *k = &gpu->knobs;
	char name[8];

	snprintf(name, sizeof(name), "%u", gpu->index);
	gpu->debugfs = debugfs_create_dir(name, root);
	debugfs_create_file("counters", 0444, gpu->debugfs, gpu, &counters_fops);
	debugfs_create_file("processes", 0444, gpu->debugfs, gpu, &processes_fops);
	debugfs_create_file("queues", 0444, gpu->debugfs, gpu, &queues_fops);
	debugfs_create_file("waits", 0644, gpu->debugfs, gpu, &sim_waits_fops);
	debugfs_create_file("log", 0644, gpu->debugfs, gpu, &sim_log_fops);
	debugfs_create_u32("preempt_us", 0644, gpu->debugfs, &k->preempt_us);
	debugfs_create_u32("save_ns_per_kib", 0644, gpu->debugfs, &k->save_ns_per_kib);
	debugfs_create_u32("quantum_us", 0644, gpu->debugfs, &k->quantum_us);
	debugfs_create_x32("stuck_doorbell", 0644, gpu->debugfs, &k->stuck_doorbell);
	debugfs_create_u32("stuck_ms", 0644, gpu->debugfs, &k->stuck_ms);
	debugfs_create_bool("dead", 0644, gpu->debugfs, &k->dead);
	debugfs_create_bool("recover", 0644, gpu->debugfs, &k->recover);
	debugfs_create_bool("queue_reset_works", 0644, gpu->debugfs, &k->queue_reset_works);
	debugfs_create_bool("log_packets", 0644, gpu->debugfs, &k->log_packets);
}

void sim_debugfs_exit(void)
{
	debugfs_remove(root);
	root = NULL;
}
