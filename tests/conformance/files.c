/* SPDX-License-Identifier: MIT */
/* What the driver prints in sysfs and debugfs. */
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/topics.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of a directory, sorted: its order means nothing. */
static void say_names(struct world *w, enum gkfd_tree tree, const char *path, const char *what)
{
	_cleanup_free_ char *names = NULL;
	const char *sorted[128];
	char line[2048];
	size_t n = 0, at = 0;
	int r = w->ops->list_dir(w, tree, path, &names);

	if (r < 0) {
		say(w, "%s: %s", what, text_of(r));
		return;
	}
	for (const char *p = names; *p && n < ARRAY_SIZE(sorted); p += strlen(p) + 1)
		sorted[n++] = p;
	qsort(sorted, n, sizeof(sorted[0]), by_name);
	line[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s", sorted[i]);
	say(w, "%s:%s", what, line);
}

/* A whole file in one line: what ends a line is a "|". */
static void say_text(struct world *w, enum gkfd_tree tree, const char *path, const char *what)
{
	_cleanup_free_ char *text = NULL;
	int r = w->ops->read_file(w, tree, path, &text);

	for (char *p = text; r == 0 && *p; p++)
		if (*p == '\n')
			*p = '|';
	say(w, "%s: %s", what, r < 0 ? text_of(r) : text);
}

static void proc_path(char *path, size_t size, const struct actor *a, const char *name)
{
	snprintf(path, size, "proc/%d%s%s", a->pid, *name ? "/" : "", name);
}

static void say_proc(struct actor *a, const char *name)
{
	char path[96];

	proc_path(path, sizeof(path), a, name);
	say_text(a->w, GKFD_TREE_SYSFS, path, name);
}

static void say_proc_names(struct actor *a, const char *name, const char *what)
{
	char path[96];

	proc_path(path, sizeof(path), a, name);
	say_names(a->w, GKFD_TREE_SYSFS, path, what);
}

/* Files of a GPU have its number in their names: "vram_12345". */
static void gpu_path(char *path, size_t size, struct actor *a, const char *prefix,
		     const char *suffix)
{
	snprintf(path, size, "proc/%d/%s%u%s", a->pid, prefix, gpu_id(a->w), suffix);
}

static void say_gpu_file(struct actor *a, const char *prefix, const char *suffix)
{
	char path[96], what[64];

	gpu_path(path, sizeof(path), a, prefix, suffix);
	snprintf(what, sizeof(what), "%s<gpu>%s", prefix, suffix);
	say_text(a->w, GKFD_TREE_SYSFS, path, what);
}

static void proc_of_a_process(struct world *w)
{
	struct actor *a = actor(w, "self");
	_cleanup_free_ char *names = NULL;
	char path[64];

	say_proc_names(a, "", "before it opens");
	open_kfd(a);
	proc_path(path, sizeof(path), a, "");
	say(w, "after: %s", text_of(w->ops->list_dir(w, GKFD_TREE_SYSFS, path, &names)));
	say_proc_names(a, "queues", "queues");
	say_gpu_file(a, "vram_", "");
	say_gpu_file(a, "stats_", "/cu_occupancy");
	say_gpu_file(a, "stats_", "/evicted_ms");
	gpu_path(path, sizeof(path), a, "stats_", "");
	say_names(w, GKFD_TREE_SYSFS, path, "stats_<gpu>");
	say_proc(a, "nothing");
	kill_actor(a);
	say_proc_names(a, "", "after its end");
}

/* "sdma_12345" as "sdma_<gpu>" and the like. */
static void proc_names(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	_cleanup_free_ char *names = NULL;
	char path[64], number[16];
	const char *known[] = { "pasid", "queues", "vram_", "sdma_", "stats_", "counters_" };

	proc_path(path, sizeof(path), a, "");
	w->ops->list_dir(w, GKFD_TREE_SYSFS, path, &names);
	snprintf(number, sizeof(number), "%u", gpu_id(w));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const char *found = "no";

		for (const char *p = names; *p; p += strlen(p) + 1) {
			if (strncmp(p, known[i], strlen(known[i])))
				continue;
			if (!p[strlen(known[i])])
				found = "yes";
			else if (!strcmp(p + strlen(known[i]), number))
				found = "of the GPU";
		}
		say(w, "%s %s", known[i], found);
	}
}

static void proc_of_queues(struct world *w)
{
	static const uint32_t types[] = { KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
					  KFD_IOC_QUEUE_TYPE_COMPUTE, KFD_IOC_QUEUE_TYPE_SDMA };
	struct actor *a = kfd_actor(w, "self");
	char name[48];

	acquire_vm(a);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		add_queue(a, types[i]);
	say_proc_names(a, "queues", "queues");
	say_proc_names(a, "queues/0", "queues/0");
	for (uint32_t i = 0; i < ARRAY_SIZE(types); i++) {
		static const char *const files[] = { "size", "type", "gpuid" };

		for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
			snprintf(name, sizeof(name), "queues/%u/%s", i, files[k]);
			say_proc(a, name);
		}
	}
	destroy_queue(me(a), 1);
	say_proc_names(a, "queues", "queues");
	say_proc(a, "queues/1/size");
	add_queues(a, 1);
	say_proc_names(a, "queues", "queues");
}

static void proc_of_a_debugged_process(struct world *w)
{
	struct actor *target = actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");

	seize(me(debugger), target);
	say_proc_names(target, "queues", "before");
	enable(me(debugger), target, 0);
	say_proc_names(target, "queues", "enabled, never opened");
}

/* ---- topology ---- */

/* The names of all properties, and the values the driver decides on. */
static void properties(struct world *w)
{
	static const char *const decided[] = {
		"gfx_target_version",
		"vendor_id",
		"domain",
		"hive_id",
		"num_sdma_engines",
		"num_sdma_xgmi_engines",
		"num_sdma_queues_per_engine",
		"num_cp_queues",
		"num_xcc",
		"debug_prop",
		"num_gws",
		"cpu_cores_count",
	};
	_cleanup_free_ char *text = NULL;
	char line[1024];
	size_t at = 0;

	w->ops->read_file(w, GKFD_TREE_SYSFS, "topology/nodes/1/properties", &text);
	for (const char *p = text; *p; p = strchrnul(p, '\n'), p += *p == '\n')
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %.*s",
				       (int)strcspn(p, " \n"), p);
	say(w, "names:%s", line);
	for (size_t i = 0; i < ARRAY_SIZE(decided); i++)
		say(w, "%s %u", decided[i], node_property(w, decided[i]));
	say(w, "capability %x and a silicon revision",
	    node_property(w, "capability") & ~0x03c00000u);
}

/* kfd_queue_ctx_save_restore_size(): so much of a compute unit's state, by chip. */
static void save_area_sizes(struct world *w)
{
	uint32_t cu = node_property(w, "simd_count") / node_property(w, "simd_per_cu") /
		      node_property(w, "num_xcc");
	uint32_t stack = node_property(w, "ctl_stack_size");
	uint32_t data = node_property(w, "cwsr_size") - stack;

	say(w, "of a compute unit %u, stack in whole pages %u", data / cu, stack % 4096 == 0);
}

static void nodes(struct world *w)
{
	say_names(w, GKFD_TREE_SYSFS, "topology/nodes", "nodes");
	say_text(w, GKFD_TREE_SYSFS, "topology/nodes/0/gpu_id", "gpu_id of the CPU");
	say_text(w, GKFD_TREE_SYSFS, "topology/nodes/1/gpu_id", "gpu_id");
	say_text(w, GKFD_TREE_SYSFS, "topology/nodes/0/name", "name of the CPU");
	say_text(w, GKFD_TREE_SYSFS, "topology/nodes/2/gpu_id", "gpu_id of none");
}

/* ---- debugfs ---- */

/* The lines of a dump that are no hexadecimal rows, and how many rows are between them. */
static void say_outline(struct world *w, const char *name, size_t max)
{
	_cleanup_free_ char *text = NULL;
	size_t rows = 0, said = 0;
	int r = w->ops->read_file(w, GKFD_TREE_DEBUGFS, name, &text);

	if (r < 0) {
		say(w, "%s %s", name, text_of(r));
		return;
	}
	for (char *p = text, *end; *p && said < max; p = end + 1) {
		size_t digits;

		end = strchrnul(p, '\n');
		p += strspn(p, " ");
		digits = strspn(p, "0123456789abcdef");
		if (digits == 8 && p[digits] == ':') {
			rows++;
		} else {
			if (rows)
				say(w, "%s: %zu rows", name, rows);
			rows = 0;
			said++;
			say(w, "%s: \"%.*s\"", name, (int)(end - p), p);
		}
		if (!*end)
			break;
	}
	if (rows)
		say(w, "%s: %zu rows", name, rows);
}

static void name_pasid(struct actor *a)
{
	_cleanup_free_ char *text = NULL;
	char path[64];

	proc_path(path, sizeof(path), a, "pasid");
	if (a->w->ops->read_file(a->w, GKFD_TREE_SYSFS, path, &text) < 0)
		broken("no pasid");
	world_name(a->w, NAME_PASID, strtoul(text, NULL, 10), 0, "pasid of %s", a->name);
}

static void debugfs_idle(struct world *w)
{
	say_names(w, GKFD_TREE_DEBUGFS, "", "names");
	say_outline(w, "mqds", 10);
	say_outline(w, "rls", 10);
}

static void debugfs_mqds(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	name_pasid(a);
	say_outline(w, "mqds", 10);
	add_queue(a, KFD_IOC_QUEUE_TYPE_SDMA);
	add_queue(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	say_outline(w, "mqds", 10);
	add_queue(a, KFD_IOC_QUEUE_TYPE_SDMA);
	say_outline(w, "mqds", 20);
}

static void debugfs_rls(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct actor *b = kfd_actor(w, "other");

	acquire_vm(a);
	acquire_vm(b);
	add_queues(a, 1);
	say_outline(w, "rls", 10);
	add_queues(a, 2);
	say_outline(w, "rls", 10);
	add_queues(b, 1);
	say_outline(w, "rls", 10);
	kill_actor(a);
	say_outline(w, "rls", 10);
	destroy_queue(me(b), 0);
	say_outline(w, "rls", 10);
}

/* Which registers there are is the chip's affair; the driver prints all of them. */
static void debugfs_hqds(struct world *w)
{
	_cleanup_free_ char *text = NULL;
	size_t hiqs = 0, slots = 0, engines = 0;
	int r = w->ops->read_file(w, GKFD_TREE_DEBUGFS, "hqds", &text);

	for (const char *p = text; r == 0 && (p = strchr(p, '\n')); p++) {
		hiqs += !strncmp(p + 1, "   Inst ", 8);
		slots += !strncmp(p + 1, " Inst ", 6);
		engines += !strncmp(p + 1, "  SDMA Engine ", 14);
	}
	say(w, "%s HIQs %zu, slots %zu, SDMA slots %zu", text_of(r), hiqs, slots, engines);
}

const struct conformance_case files_cases[] = {
	{ "files/proc_of_a_process", proc_of_a_process },
	{ "files/proc_names", proc_names },
	{ "files/proc_of_queues", proc_of_queues },
	{ "files/proc_of_a_debugged_process", proc_of_a_debugged_process },
	{ "files/properties", properties },
	{ "files/save_area_sizes", save_area_sizes },
	{ "files/nodes", nodes },
	{ "files/debugfs_idle", debugfs_idle },
	{ "files/debugfs_mqds", debugfs_mqds },
	{ "files/debugfs_rls", debugfs_rls },
	{ "files/debugfs_hqds", debugfs_hqds },
	{ NULL, NULL },
};
