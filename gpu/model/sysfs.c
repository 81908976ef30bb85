/* SPDX-License-Identifier: MIT */
/* /sys/class/kfd/kfd in the driver's own formats, and the way into all file trees. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "abi/kfd_gpreempt.h"
#include "gpu/model/driver.h"
#include "util/stream.h"

#define FIRST_RENDER_MINOR 128u
#define CPU_CORES 64u
#define CPU_CLOCK_MHZ 3700u

/* ---- paths ---- */

bool model_path_take(const char **path, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(*path, name, n) || ((*path)[n] != '/' && (*path)[n]))
		return false;
	*path += n + ((*path)[n] == '/');
	return true;
}

bool model_path_take_number(const char **path, uint64_t *ret)
{
	size_t n = strspn(*path, "0123456789");

	if (!n || n > 18 || ((*path)[n] != '/' && (*path)[n]) || ((*path)[0] == '0' && n > 1))
		return false;
	*ret = strtoull(*path, NULL, 10);
	*path += n + ((*path)[n] == '/');
	return true;
}

void model_list_name(FILE *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fputc('\0', out);
}

/* Of the rest of /sys only what the driver's extension puts there. */
static int read_sys(struct model *m, const char *path, bool list, FILE *out)
{
	if (list || !m->config.ext || strcmp(path, "kernel/debug/" KFD_GPREEMPT_DEVICE))
		return -ENOENT;
	model_ext_print_state(m, out);
	return 0;
}

static int read_tree(struct model *m, enum gkfd_tree tree, const char *path, bool list, FILE *out)
{
	switch (tree) {
	case GKFD_TREE_SYSFS:
		return model_sysfs(m, path, list, out);
	case GKFD_TREE_DEBUGFS:
		return model_debugfs(m, path, list, out);
	case GKFD_TREE_PARAMS:
		return model_params(m, path, list, out);
	case GKFD_TREE_PROC:
		return model_procfs(m, path, list, out);
	case GKFD_TREE_SYS:
		return read_sys(m, path, list, out);
	default:
		return -EINVAL;
	}
}

static int read_text(struct model *m, enum gkfd_tree tree, const char *path, bool list,
		     char **ret_text, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	struct stream s;
	size_t len;
	int r, closed;

	r = stream_open(&s);
	if (r < 0)
		return r;
	r = read_tree(m, tree, path, list, s.out);
	closed = stream_close(&s, &text, &len);
	if (r < 0)
		return r;
	if (closed < 0)
		return closed;
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

int model_read_file(struct model *m, enum gkfd_tree tree, const char *path, char **ret_text,
		    size_t *ret_len)
{
	return read_text(m, tree, path, false, ret_text, ret_len);
}

/* The stream's own NUL behind the last name is the empty name that ends the list. */
int model_list_dir(struct model *m, enum gkfd_tree tree, const char *path, char **ret_names)
{
	size_t len;

	return read_text(m, tree, path, true, ret_names, &len);
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
	struct cwsr_sizes sizes;

	model_cwsr_sizes(chip, &sizes);
	print_gpu_compute(out, gpu);
	fprintf(out, "hive_id 0\nnum_sdma_engines %u\n", model_sdma_engines(chip));
	fprintf(out, "num_sdma_xgmi_engines %u\n", model_xgmi_engines(chip));
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

static int node_file(struct model *m, uint64_t node, const char *path, bool list, FILE *out)
{
	const struct model_gpu *gpu = node ? &m->gpus[node - 1] : NULL;

	if (list) {
		if (*path)
			return -ENOTDIR;
		model_list_name(out, "gpu_id");
		model_list_name(out, "name");
		model_list_name(out, "properties");
		return 0;
	}
	if (!strcmp(path, "gpu_id"))
		fprintf(out, "%u\n", gpu ? gpu->id : 0);
	else if (!strcmp(path, "name"))
		fprintf(out, "%s\n", gpu ? model_gpu_debugs_per_vmid(gpu) ? "ip discovery" :
								       "arcturus" : "");
	else if (strcmp(path, "properties"))
		return -ENOENT;
	else if (gpu)
		print_gpu_node(out, gpu);
	else
		print_cpu_node(out);
	return 0;
}

static int topology(struct model *m, const char *path, bool list, FILE *out)
{
	uint64_t node;

	if (list && !*path) {
		model_list_name(out, "generation_id");
		model_list_name(out, "nodes");
		model_list_name(out, "system_properties");
		return 0;
	}
	if (!list && !strcmp(path, "generation_id")) {
		fprintf(out, "%u\n", m->config.n_gpus + 1);
		return 0;
	}
	if (!list && !strcmp(path, "system_properties")) {
		fputs("platform_oem 0\nplatform_id 0\nplatform_rev 0\n", out);
		return 0;
	}
	if (!model_path_take(&path, "nodes"))
		return -ENOENT;
	if (list && !*path) {
		for (uint32_t i = 0; i <= m->config.n_gpus; i++)
			model_list_name(out, "%u", i);
		return 0;
	}
	if (!model_path_take_number(&path, &node) || node > m->config.n_gpus)
		return -ENOENT;
	return node_file(m, node, path, list, out);
}

int model_sysfs(struct model *m, const char *path, bool list, FILE *out)
{
	if (list && !*path) {
		model_list_name(out, "proc");
		model_list_name(out, "topology");
		return 0;
	}
	if (model_path_take(&path, "topology"))
		return topology(m, path, list, out);
	if (model_path_take(&path, "proc"))
		return model_sysfs_proc(m, path, list, out);
	return -ENOENT;
}
