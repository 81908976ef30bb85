/* SPDX-License-Identifier: MIT */
/* /sys/class/kfd/kfd in the driver's own formats, /proc, and the way into all file trees. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "gpu/model/driver.h"
#include "util/stream.h"

#define FIRST_RENDER_MINOR 128u
#define CPU_CORES 64u
#define CPU_CLOCK_MHZ 3700u

/* ---- paths ---- */

static uint64_t leading_number(const char *path)
{
	size_t n = strspn(path, "0123456789");

	if (!n || n > 18 || (path[n] != '/' && path[n]) || (path[0] == '0' && n > 1))
		return UINT64_MAX;
	return strtoull(path, NULL, 10);
}

static void enter(struct tree *t, size_t len)
{
	t->path += len + (len && t->path[len] == '/');
	t->number = leading_number(t->path);
	if (!*t->path)
		t->result = t->list ? 0 : -EISDIR;
}

static bool is_to_be_listed(const struct tree *t)
{
	return t->list && !*t->path;
}

bool model_at(struct tree *t, bool dir, const char *fmt, ...)
{
	char name[64]; /* longer than any */
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = (size_t)vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	if (is_to_be_listed(t)) {
		fwrite(name, 1, n + 1, t->out);
		return false;
	}
	if (strncmp(t->path, name, n) || (t->path[n] && !(dir && t->path[n] == '/')))
		return false;
	if (dir)
		enter(t, n);
	else
		t->result = t->list ? -ENOTDIR : 0;
	return dir || !t->list;
}

/* A directory. */
static bool at_number(struct tree *t, uint64_t number)
{
	if (is_to_be_listed(t)) {
		fprintf(t->out, "%llu%c", (unsigned long long)number, '\0');
		return false;
	}
	if (t->number != number)
		return false;
	enter(t, strspn(t->path, "0123456789"));
	return true;
}

/* ---- topology ---- */

uint32_t model_gpu_location(const struct model_gpu *gpu)
{
	return (0x0cu + gpu->index * 0x10) << 8;
}

uint32_t model_gpu_device_id(const struct model_gpu *gpu)
{
	const char *name = gpu->m->config.chip->name;

	if (!strcmp(name, "mi300x"))
		return 0x74a1;
	return !strcmp(name, "mi100") ? 0x738c : 0x74a2;
}

/* kfd_topology_set_capabilities() of Linux 6.12 */
uint32_t model_gpu_capability(const struct model_gpu *gpu)
{
	uint32_t gfx = gpu->m->config.chip->gfx_target_version;
	uint32_t caps = 0x80 /* watch points */ | 2u << 8 /* log2 of how many */ |
			2u << 12 /* doorbell type */ | 0x8000 /* trap debug */ |
			0x10000 /* launch override */ | 0x20000 /* launch mode */ |
			0x20000000 /* debug firmware */;

	if (gfx >= 90010 && gfx < 100000)
		caps |= 0x40000; /* precise memory operations */
	if (gfx >= 120000)
		caps |= 0x40000000; /* precise ALU operations */
	if (gfx / 100 == 904)
		caps |= 1u << 22; /* silicon revision: 0 would be gfx940 */
	return caps;
}

uint32_t model_gpu_debug_prop(const struct model_gpu *gpu)
{
	uint32_t gfx = gpu->m->config.chip->gfx_target_version;
	uint32_t watch_bits = gfx / 100 == 904 ? 7 | 30u << 4 : (gfx < 100000 ? 6 : 7) | 29u << 4;

	return watch_bits | (gfx == 90010 ? 0 : 0x400 /* dispatch info always valid */);
}

static void print_cpu_node(FILE *out)
{
	fprintf(out, "cpu_cores_count %u\n", CPU_CORES);
	fputs("simd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 0\n"
	      "p2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 0\nmax_waves_per_simd 0\n"
	      "lds_size_in_kb 0\ngds_size_in_kb 0\nnum_gws 0\nwave_front_size 0\narray_count 0\n"
	      "simd_arrays_per_engine 0\ncu_per_simd_array 0\nsimd_per_cu 0\n"
	      "max_slots_scratch_cu 0\ngfx_target_version 0\nvendor_id 0\ndevice_id 0\n"
	      "location_id 0\ndomain 0\ndrm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\n"
	      "num_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 0\nnum_cp_queues 0\n"
	      "cwsr_size 0\nctl_stack_size 0\n",
	      out);
	fprintf(out, "max_engine_clk_ccompute %u\n", CPU_CLOCK_MHZ);
}

static void print_gpu_compute(FILE *out, const struct model_gpu *gpu)
{
	const struct model_chip *chip = gpu->m->config.chip;
	uint32_t engines = chip->n_engines;

	fputs("cpu_cores_count 0\n", out);
	fprintf(out, "simd_count %u\n", chip->n_xcc * chip->cu_per_xcc * MODEL_SIMD_PER_CU);
	fputs("mem_banks_count 1\ncaches_count 0\nio_links_count 1\np2p_links_count 0\n"
	      "cpu_core_id_base 0\n",
	      out);
	fprintf(out, "simd_id_base %u\n", 0x80001000u + gpu->index * 0x1000);
	fprintf(out, "max_waves_per_simd %u\n", MODEL_WAVES_PER_SIMD);
	fprintf(out, "lds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws %u\nwave_front_size 64\n",
		model_gpu_gws(gpu));
	fprintf(out, "array_count %u\n", engines * chip->n_xcc);
	fputs("simd_arrays_per_engine 1\n", out);
	fprintf(out, "cu_per_simd_array %u\n", (chip->cu_per_xcc + engines - 1) / engines);
	fprintf(out, "simd_per_cu %u\n", MODEL_SIMD_PER_CU);
	fputs("max_slots_scratch_cu 32\n", out);
	fprintf(out, "gfx_target_version %u\n", chip->gfx_target_version);
	fprintf(out, "vendor_id %u\n", MODEL_PCI_VENDOR);
	fprintf(out, "device_id %u\n", model_gpu_device_id(gpu));
	fprintf(out, "location_id %u\n", model_gpu_location(gpu));
	fprintf(out, "domain 0\ndrm_render_minor %u\n", FIRST_RENDER_MINOR + gpu->index);
}

static void print_gpu_node(FILE *out, const struct model_gpu *gpu)
{
	const struct model_chip *chip = gpu->m->config.chip;
	struct cwsr_sizes sizes = model_cwsr_sizes(chip);

	print_gpu_compute(out, gpu);
	fprintf(out, "hive_id 0\nnum_sdma_engines %u\n", model_sdma_engines(chip));
	fprintf(out, "num_sdma_xgmi_engines %u\n", chip->n_sdma - model_sdma_engines(chip));
	fprintf(out, "num_sdma_queues_per_engine %u\n",
		model_sdma_queues(chip) - (model_is_mes(gpu) ? MES_SDMA_RESERVED : 0));
	fprintf(out, "num_cp_queues %u\n", chip->n_cp_queues);
	fprintf(out, "cwsr_size %u\nctl_stack_size %u\n", sizes.cwsr, sizes.ctl_stack);
	fprintf(out, "max_engine_clk_fcompute %u\nlocal_mem_size 0\n", chip->clock_mhz);
	fprintf(out, "fw_version %u\n", MODEL_MEC_FW_VERSION);
	fprintf(out, "capability %u\n", model_gpu_capability(gpu));
	fprintf(out, "debug_prop %u\n", model_gpu_debug_prop(gpu));
	fprintf(out, "sdma_fw_version 19\nunique_id %llu\n", 0x6d6f64656c000000ull + gpu->id);
	fprintf(out, "num_xcc %u\n", chip->n_xcc);
	fprintf(out, "max_engine_clk_ccompute %u\n", CPU_CLOCK_MHZ);
}

static void print_node(struct tree *t, struct model *m, uint32_t node)
{
	const struct model_gpu *gpu = node ? &m->gpus[node - 1] : NULL;

	if (model_at_file(t, "gpu_id"))
		fprintf(t->out, "%u\n", gpu ? gpu->id : 0);
	if (model_at_file(t, "name"))
		fprintf(t->out, "%s\n",
			gpu ? model_gpu_debugs_per_vmid(gpu) ? "ip discovery" : "arcturus" : "");
	if (!model_at_file(t, "properties"))
		return;
	if (gpu)
		print_gpu_node(t->out, gpu);
	else
		print_cpu_node(t->out);
}

static void print_nodes(struct tree *t, struct model *m)
{
	for (uint32_t i = 0; i <= m->config.n_gpus; i++) {
		if (at_number(t, i)) {
			print_node(t, m, i);
			return;
		}
	}
}

static void print_topology(struct tree *t, struct model *m)
{
	if (model_at_file(t, "generation_id"))
		fprintf(t->out, "%u\n", m->config.n_gpus + 1);
	if (model_at_dir(t, "nodes"))
		print_nodes(t, m);
	else if (model_at_file(t, "system_properties"))
		fputs("platform_oem 0\nplatform_id 0\nplatform_rev 0\n", t->out);
}

/* ---- processes: what each has (Linux 6.12 kfd_process.c) ---- */

/* Waves on the first XCC, taken times the XCCs for AQL queues, in compute units rounded up. */
static uint32_t cu_occupancy(const struct model_kproc *k, const struct model_pdd *pdd)
{
	uint32_t per_cu = MODEL_SIMD_PER_CU * MODEL_WAVES_PER_SIMD;
	uint32_t waves = 0;

	for (const struct model_queue *q = k->queues; q; q = q->next) {
		if (q->pdd != pdd || q->type != QUEUE_COMPUTE)
			continue;
		waves += hw_see(q->hw)->waves[0] * (q->aql ? pdd->gpu->m->config.chip->n_xcc : 1);
	}
	return (waves + per_cu - 1) / per_cu;
}

static void print_stats(struct tree *t, const struct model_kproc *k, const struct model_pdd *pdd)
{
	if (!model_is_mes(pdd->gpu) && model_at_file(t, "cu_occupancy"))
		fprintf(t->out, "%u\n", cu_occupancy(k, pdd));
	if (model_at_file(t, "evicted_ms"))
		fprintf(t->out, "%llu\n", (unsigned long long)(pdd->evicted_ns / NSEC_PER_MSEC));
}

/* None of these ends in a newline. */
static void print_queue(struct tree *t, const struct model_queue *q)
{
	if (model_at_file(t, "gpuid"))
		fprintf(t->out, "%u", q->gpu->id);
	if (model_at_file(t, "size"))
		fprintf(t->out, "%u", q->ring_bytes);
	if (model_at_file(t, "type"))
		fprintf(t->out, "%d", q->type);
}

static void print_queues(struct tree *t, const struct model_kproc *k)
{
	for (const struct model_queue *q = k->queues; q; q = q->next) {
		if (at_number(t, q->id)) {
			print_queue(t, q);
			return;
		}
	}
}

static void print_process(struct tree *t, const struct model_kproc *k)
{
	if (model_at_file(t, "pasid"))
		fprintf(t->out, "%u\n", k->pasid);
	if (model_at_dir(t, "queues")) {
		print_queues(t, k);
		return;
	}
	for (const struct model_pdd *pdd = k->pdds; pdd < k->pdds + MODEL_MAX_GPUS && pdd->gpu;
	     pdd++) {
		if (model_at_file(t, "sdma_%u", pdd->gpu->id))
			fputs("0\n", t->out);
		if (model_at_dir(t, "stats_%u", pdd->gpu->id)) {
			print_stats(t, k, pdd);
			return;
		}
		if (model_at_file(t, "vram_%u", pdd->gpu->id))
			fprintf(t->out, "%llu\n", (unsigned long long)pdd->vram_bytes);
	}
}

static void print_processes(struct tree *t, struct model *m)
{
	for (const struct model_kproc *k = m->kprocs; k; k = k->next) {
		if (at_number(t, (uint64_t)k->proc->pid)) {
			print_process(t, k);
			return;
		}
	}
}

/* ---- /proc of the modelled processes, and the driver's module parameters ---- */

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

static void print_task(struct tree *t, const struct model_proc *p, pid_t tid)
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

static void print_procfs(struct tree *t, struct model *m)
{
	bool self = *t->path && model_at_dir(t, "self");
	pid_t tid = self ? MODEL_SELF_PID : t->number <= INT32_MAX ? (pid_t)t->number : 0;
	const struct model_proc *p = model_proc_by_tid(m, tid);

	if (p && (self || at_number(t, t->number))) {
		print_task(t, p, tid);
		return;
	}
	for (p = m->procs; p; p = p->next)
		at_number(t, (uint64_t)p->pid);
}

static void print_params(struct tree *t, struct model *m)
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

/* ---- all trees ---- */

static void print_sysfs(struct tree *t, struct model *m)
{
	if (model_at_dir(t, "proc"))
		print_processes(t, m);
	else if (model_at_dir(t, "topology"))
		print_topology(t, m);
}

/* Of the rest of /sys only what the driver's extension puts there. */
static void print_sys(struct tree *t, struct model *m)
{
	t->result = -ENOENT;
	if (!t->list && m->config.ext && model_at_file(t, "kernel/debug/" KFD_GPREEMPT_DEVICE))
		model_ext_print_state(m, t->out);
}

int model_read(struct model *m, enum gkfd_tree tree, const char *path, bool list, char **ret_text,
	       size_t *ret_len)
{
	static void (*const trees[GKFD_TREE_COUNT])(struct tree * t, struct model * m) = {
		[GKFD_TREE_SYSFS] = print_sysfs,   [GKFD_TREE_DEBUGFS] = model_print_debugfs,
		[GKFD_TREE_PARAMS] = print_params, [GKFD_TREE_PROC] = print_procfs,
		[GKFD_TREE_SYS] = print_sys,
	};
	struct tree t = { .path = path, .list = list, .result = -ENOENT };
	_cleanup_free_ char *text = NULL;
	struct stream s;
	size_t len;
	int r, closed;

	if (tree >= GKFD_TREE_COUNT || !trees[tree])
		return -EINVAL;
	r = stream_open(&s);
	if (r < 0)
		return r;
	t.out = s.out;
	enter(&t, 0);
	trees[tree](&t, m);
	closed = stream_close(&s, &text, &len);
	if (t.result < 0)
		return t.result;
	if (closed < 0)
		return closed;
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}
