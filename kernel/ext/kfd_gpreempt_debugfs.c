/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* /sys/kernel/debug/kfd_gpreempt: what is held and what the scheduler did, GPU by GPU. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

static struct dentry *file;

static int state_show(struct seq_file *s, void *unused)
{
	struct kfd_gpreempt_node *n;

	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		struct kfd_gpreempt_hqd hqd = { .gpu_id = n->node->id };

		gp_get_hqd_of(n, &hqd);
		seq_printf(s, "gpu %u\nslots %u\nactive %u\nactive_sum %u\nqueues %u\nheld %u\n",
			   hqd.gpu_id, hqd.total, hqd.active, hqd.active_sum, hqd.queues, hqd.held);
		seq_printf(s, "flags %#x\n", hqd.flags);
		gp_monitor_show(s, n);
	}
	up_read(&gp_nodes_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

void gp_debugfs_init(void)
{
	file = debugfs_create_file(KFD_GPREEMPT_DEVICE, 0444, NULL, NULL, &state_fops);
}

void gp_debugfs_exit(void)
{
	debugfs_remove(file);
}
