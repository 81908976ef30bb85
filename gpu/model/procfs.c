/* SPDX-License-Identifier: MIT */
/* /proc of the modelled processes, and the driver's module parameters. */
#include "gpu/model/driver.h"

static void print_stat(FILE *out, const struct model_proc *p, pid_t tid)
{
	fprintf(out, "%d (%s) S 1 %d %d 0 -1 4194304", tid, p->comm, p->pid, p->pid);
	fprintf(out, " 0 0 0 0 0 0 0 0 20 0 %zu 0 %llu", p->n_tids + 1,
		(unsigned long long)p->start_ticks);
	for (int i = 23; i <= 52; i++)
		fputs(" 0", out);
	fputc('\n', out);
}

static void print_status(FILE *out, const struct model_proc *p, pid_t tid)
{
	fprintf(out, "Name:\t%s\nUmask:\t0022\nState:\tS (sleeping)\n", p->comm);
	fprintf(out, "Tgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t1\n", p->pid, tid);
	fprintf(out, "TracerPid:\t%d\n", tid == p->pid ? p->tracer.tid : 0);
	fprintf(out, "Uid:\t%u\t%u\t%u\t%u\n", p->uid, p->uid, p->uid, p->uid);
	fprintf(out, "Gid:\t%u\t%u\t%u\t%u\n", p->uid, p->uid, p->uid, p->uid);
	fprintf(out, "NStgid:\t%d\nNSpid:\t%d\nThreads:\t%zu\n", p->pid, tid, p->n_tids + 1);
}

static void print_process(struct tree *t, const struct model_proc *p, pid_t tid)
{
	if (model_at_file(t, "cgroup"))
		fprintf(t->out, "0::%s\n", p->cgroup);
	if (model_at_file(t, "comm"))
		fprintf(t->out, "%s\n", p->comm);
	if (model_at_file(t, "stat"))
		print_stat(t->out, p, tid);
	if (model_at_file(t, "status"))
		print_status(t->out, p, tid);
}

void model_print_procfs(struct tree *t, struct model *m)
{
	bool self = *t->path && model_at_dir(t, "self");
	pid_t tid = self ? MODEL_SELF_PID : t->number <= INT32_MAX ? (pid_t)t->number : 0;
	const struct model_proc *p = model_proc_by_tid(m, tid);

	if (p && (self || model_at_number(t, t->number))) {
		print_process(t, p, tid);
		return;
	}
	for (p = m->procs; p; p = p->next)
		model_at_number(t, (uint64_t)p->pid);
}

void model_print_params(struct tree *t, struct model *m)
{
	static const char *const victims_only[] = {
		[MODEL_EXT_ALL_QUEUES] = "N",
		[MODEL_EXT_VICTIMS] = "Y",
	};
	const struct {
		const char *name, *value; /* NULL: there is no such parameter */
	} params[] = {
		{ "cwsr_enable", "1" },
		{ "debug_evictions", "N" },
		{ "gpreempt_victims_only", victims_only[m->config.ext] },
		{ "gpu_recovery", "-1" },
		{ "halt_if_hws_hang", "0" },
		{ "hws_gws_support", "N" },
		{ "hws_max_conc_proc", "-1" },
		{ "max_num_of_queues_per_device", "4096" },
		{ "mes", "0" },
		{ "num_kcq", "-1" },
		{ "queue_preemption_timeout_ms", "9000" },
		{ "sched_policy", "0" },
		{ "send_sigterm", "0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(params); i++)
		if (params[i].value && model_at_file(t, "%s", params[i].name))
			fprintf(t->out, "%s\n", params[i].value);
}
