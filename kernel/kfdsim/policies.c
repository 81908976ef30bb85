/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /sys/kernel/debug/kfdsim/policies: the table of cases that policies are tried with in user space,
 * asked of the policies inside the driver. Only where the driver has some.
 */
#ifdef KFDSIM_POLICIES
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kernel/kfdsim/sim.h"
#include "tests/core/policy_cases.h"

struct room {
	struct gpol_job jobs[POLICY_CASE_MAX_JOBS];
	struct gpol_verdict verdicts[POLICY_CASE_MAX_JOBS];
};

static void check_case(struct seq_file *s, const struct policy_case *c, struct room *room)
{
	struct policy_surprise p = policy_case_check(c, room->jobs, room->verdicts);

	if (p.what)
		seq_printf(s, "# %s, step %zu, job %zu: %s is %llu, expected %llu\n", c->ops->name,
			   p.step, p.job, p.what, p.got, p.expected);
	seq_printf(s, "%s - in the driver: %s\n", p.what ? "not ok" : "ok", c->name);
}

static int policies_show(struct seq_file *s, void *unused)
{
	const struct policy_cases *const *t;
	struct room *room = kvzalloc(sizeof(*room), GFP_KERNEL);
	size_t i;

	if (!room)
		return -ENOMEM;
	for (t = policy_cases_all; *t; t++) {
		for (i = 0; i < (*t)->n; i++)
			check_case(s, &(*t)->cases[i], room);
	}
	kvfree(room);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(policies);

void sim_policies_init(struct dentry *root)
{
	debugfs_create_file("policies", 0444, root, NULL, &policies_fops);
}
#endif
