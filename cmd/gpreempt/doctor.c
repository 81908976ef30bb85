/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/doctor.h"
#include "cmd/gpreempt/table.h"

#define MAX_LEVELS 8
#define VENDORS 2

struct findings {
	struct gpreempt_device_info info;
	struct gpreempt_gpu gpus[GPREEMPT_MAX_GPUS];
	struct gpreempt_level levels[MAX_LEVELS];
	size_t n_gpus, n_levels;
	struct gpreempt_self_test test; /* size 0: not made */
};

static bool is_nvidia(const struct findings *f)
{
	return strcmp(f->info.backend, "nvrm") == 0;
}

static int examine_open(struct cli *cli, struct findings *f)
{
	int r;

	f->info.size = sizeof(f->info);
	f->gpus[0].size = sizeof(f->gpus[0]);
	f->levels[0].size = sizeof(f->levels[0]);
	r = gpreempt_get_device_info(cli->ctx, &f->info);
	if (r < 0)
		return cli_fail_ctx(cli);
	r = gpreempt_get_gpus(cli->ctx, f->gpus, ARRAY_SIZE(f->gpus));
	if (r < 0 && !is_nvidia(f)) /* there the levels say why */
		return cli_fail_ctx(cli);
	f->n_gpus = MIN((size_t)MAX(r, 0), ARRAY_SIZE(f->gpus));
	r = gpreempt_get_levels(cli->ctx, f->levels, ARRAY_SIZE(f->levels));
	if (r < 0)
		return cli_fail_ctx(cli);
	f->n_levels = MIN((size_t)r, ARRAY_SIZE(f->levels));
	return EXIT_DONE;
}

static int self_test(struct cli *cli, struct findings *f)
{
	struct progress progress;
	int r;

	progress_begin(&progress);
	progress_now(&progress, "trying the driver on a context of our own");
	f->test.size = sizeof(f->test);
	r = gpreempt_self_test(cli->ctx, 0, &f->test);
	progress_end(&progress);
	return r < 0 ? cli_fail_ctx(cli) : EXIT_DONE;
}

/* No driver at all is a finding too, unless it was asked for by name. */
static void nothing_here(struct findings f[VENDORS])
{
	static const struct {
		const char *backend, *name, *levels[4];
	} vendors[VENDORS] = {
		{ "kfd", "AMD GPU driver (KFD)", { "K3", "K2", "K1" } },
		{ "nvrm", "NVIDIA GPU driver", { "N2", "N1" } },
	};

	for (size_t v = 0; v < VENDORS; v++) {
		struct gpreempt_error e = { .size = sizeof(e), .message = "came just now" };
		struct gpreempt_ctx *ctx = NULL;

		gpreempt_open(vendors[v].backend, &ctx, &e); /* for what it says */
		gpreempt_unref(ctx);
		snprintf(f[v].info.backend, sizeof(f[v].info.backend), "%s", vendors[v].backend);
		snprintf(f[v].info.name, sizeof(f[v].info.name), "%s", vendors[v].name);
		for (const char *const *name = vendors[v].levels; *name; name++) {
			struct gpreempt_level *level = &f[v].levels[f[v].n_levels++];

			snprintf(level->level, sizeof(level->level), "%s", *name);
			snprintf(level->reason, sizeof(level->reason), "%.190s", e.message);
		}
	}
}

#define GPU(member) FIELD(struct gpreempt_gpu, member)

static const struct field gpu_fields[] = {
	{ NULL, "GPU", FIELD_NUMBER, GPU(index) },
	{ "gpu_id", "ID", FIELD_NUMBER, GPU(gpu_id) },
	{ "name", "NAME", FIELD_TEXT, GPU(name) },
	{ "gfx", "CHIP", FIELD_TEXT, GPU(gfx), GPREEMPT_GPU_GFX },
	{ "xcc", "XCC", FIELD_NUMBER, GPU(xcc), GPREEMPT_GPU_XCC },
	{ "cu", "CU", FIELD_NUMBER, GPU(cu), GPREEMPT_GPU_CU },
	{ "hqd_total", "SLOTS", FIELD_NUMBER, GPU(hqd_total), GPREEMPT_GPU_HQD_TOTAL },
	{ "scheduler", "SCHEDULER", FIELD_TEXT, GPU(scheduler), GPREEMPT_GPU_SCHEDULER },
	{ "cwsr_bytes", "SAVE AREA/QUEUE", FIELD_BYTES, GPU(cwsr_bytes), GPREEMPT_GPU_CWSR },
	{ "fw_version", NULL, FIELD_NUMBER, GPU(fw_version), GPREEMPT_GPU_FIRMWARE },
	{ "pci", "PCI", FIELD_TEXT, GPU(pci), GPREEMPT_GPU_PCI },
	{ "uuid", NULL, FIELD_TEXT, GPU(uuid), GPREEMPT_GPU_UUID },
	{ "mig", "MIG", FIELD_FLAG, GPU(mig), GPREEMPT_GPU_MIG },
};

static const char *const amd_columns[] = { "GPU", "ID",	   "CHIP",	"XCC",
					   "CU",  "SLOTS", "SCHEDULER", "SAVE AREA/QUEUE",
					   NULL };
static const char *const nvidia_columns[] = { "GPU", "ID", "NAME", "PCI", "MIG", NULL };

#define LEVEL(member) FIELD(struct gpreempt_level, member)

static const struct field level_fields[] = {
	{ "level", NULL, FIELD_TEXT, LEVEL(level) },
	{ "available", NULL, FIELD_FLAG, LEVEL(available) },
	{ "reason", NULL, FIELD_TEXT, LEVEL(reason) },
};

#define TEST(member) FIELD(struct gpreempt_self_test, member)

static const struct field test_fields[] = {
	{ "suspend_us", NULL, FIELD_NS, TEST(suspend_ns) },
	{ "frozen_us", NULL, FIELD_NS, TEST(frozen_ns) },
	{ "resume_us", NULL, FIELD_NS, TEST(resume_ns) },
	{ "running_us", NULL, FIELD_NS, TEST(running_ns) },
};

static const char *version_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	const struct gpreempt_device_info *i = record;

	snprintf(buf, UNIT_TEXT_SIZE, "%u.%u", i->kfd_major, i->kfd_minor);
	return buf;
}

#define DEVICE(member) FIELD(struct gpreempt_device_info, member)

static const struct field device_fields[] = {
	{ "backend", NULL, FIELD_TEXT, DEVICE(backend) },
	{ "name", NULL, FIELD_TEXT, DEVICE(name) },
	{ "kfd_version", NULL, FIELD_WORD, .needs = GPREEMPT_DEVICE_VERSION, .word = version_word },
	{ "driver_version", NULL, FIELD_TEXT, DEVICE(driver_version), GPREEMPT_DEVICE_DRIVER },
	{ "module", NULL, FIELD_TEXT, DEVICE(module) },
	{ "secure_boot", NULL, FIELD_FLAG, DEVICE(secure_boot), GPREEMPT_DEVICE_SECURE_BOOT },
	{ "lockdown", NULL, FIELD_TEXT, DEVICE(lockdown), GPREEMPT_DEVICE_LOCKDOWN },
	{ "signed_modules_only", NULL, FIELD_FLAG, DEVICE(signed_modules_only) },
	{ "debugfs", NULL, FIELD_FLAG, DEVICE(debugfs) },
	{ "blind", NULL, FIELD_TEXT, DEVICE(blind) },
	{ "freezer", NULL, FIELD_TEXT, DEVICE(freezer) },
};

static void print_test(const struct gpreempt_self_test *test)
{
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE], d[UNIT_TEXT_SIZE];

	printf("self-test: a context of our own was held and freed as it should: suspend took %s "
	       "(frozen after %s), resume %s (running after %s)\n",
	       text_duration(test->suspend_ns, a), text_duration(test->frozen_ns, b),
	       text_duration(test->resume_ns, c), text_duration(test->running_ns, d));
}

static struct json_object *device_to_json(const struct findings *f)
{
	struct json_object *device =
		json_of_fields(device_fields, ARRAY_SIZE(device_fields), &f->info);

	if (!(f->info.valid & (GPREEMPT_DEVICE_SECURE_BOOT | GPREEMPT_DEVICE_LOCKDOWN)))
		json_object_object_del(device, "signed_modules_only");
	if (is_nvidia(f))
		json_object_object_del(device, "debugfs");
	json_add(device, "gpus",
		 json_of_records(gpu_fields, ARRAY_SIZE(gpu_fields), f->gpus, f->n_gpus,
				 sizeof(f->gpus[0])));
	json_add(device, "levels",
		 json_of_records(level_fields, ARRAY_SIZE(level_fields), f->levels, f->n_levels,
				 sizeof(f->levels[0])));
	if (f->test.size)
		json_add(device, "self_test",
			 json_of_fields(test_fields, ARRAY_SIZE(test_fields), &f->test));
	return device;
}

static struct json_object *watch_to_json(const struct doctor_watch *w)
{
	struct json_object *watch = json_of("reason", json_object_new_string(w->reason));

	if (w->known)
		json_add(watch, "available", json_object_new_boolean(w->available));
	return watch;
}

static int print_json(struct cli *cli, const struct findings *f, size_t n,
		      const struct doctor_watch *w)
{
	struct json_object *answer, *devices = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(devices, device_to_json(&f[i]));
	answer = json_of("devices", devices);
	json_add(answer, "watch", watch_to_json(w));
	return cli_print_json(cli, answer);
}

static void print_remarks(const struct findings *f)
{
	if (f->info.emulated)
		printf("note: a software GPU is behind the driver: its times are not a GPU's\n");
	if (f->info.hidden_gpus)
		printf("note: %u GPUs are hidden from this process (device cgroup)\n",
		       f->info.hidden_gpus);
	if (f->n_gpus && f->info.blind[0])
		printf("note: gpreemptd would not see work here, and priorities and classes are "
		       "unknown: %s\n",
		       f->info.blind);
	if (f->info.freezer[0])
		printf("note: in the freezer group %s of cgroup v1: but on level K3 only processes "
		       "in it can be held from here\n",
		       f->info.freezer);
	if (f->n_gpus && !f->info.global_pids)
		printf("note: inside a container; processes of others cannot be listed here\n");
	if ((f->info.valid & GPREEMPT_DEVICE_YAMA) && f->info.yama_scope > 0)
		printf("note: kernel.yama.ptrace_scope is %u: only root may hold processes\n",
		       f->info.yama_scope);
}

/* True: something can be held without asking for a level. */
static bool print_device(struct cli *cli, const struct findings *f)
{
	bool able = false;
	char buf[128];

	printf("%s", bold(cli, f->info.name, buf, sizeof(buf)));
	if (f->info.valid & GPREEMPT_DEVICE_VERSION)
		printf(", interface %u.%u", f->info.kfd_major, f->info.kfd_minor);
	if (f->info.module[0])
		printf(" %s, %s module", f->info.driver_version, f->info.module);
	printf(": %zu GPU%s\n\n", f->n_gpus, f->n_gpus == 1 ? "" : "s");
	if (f->n_gpus) {
		print_records(gpu_fields, ARRAY_SIZE(gpu_fields),
			      is_nvidia(f) ? nvidia_columns : amd_columns, f->gpus, f->n_gpus,
			      sizeof(f->gpus[0]));
		printf("\n");
	}
	for (size_t i = 0; i < f->n_levels; i++) {
		/* K1 must be asked for */
		able |= f->levels[i].available && strcmp(f->levels[i].level, "K1") != 0;
		printf("%-3s %-4s %s\n", f->levels[i].level, f->levels[i].available ? "yes" : "no",
		       f->levels[i].reason);
	}
	printf("\n");
	print_remarks(f);
	if (f->test.size)
		print_test(&f->test);
	return able;
}

static int print_text(struct cli *cli, const struct findings *f, size_t n,
		      const struct doctor_watch *w, const char *hint)
{
	bool able = false;
	char buf[64];

	for (size_t i = 0; i < n; i++)
		able |= print_device(cli, &f[i]);
	printf("watchpoints: %s: %s\n",
	       !w->known     ? "unknown" :
	       w->available ? "yes" :
			      "no, online work is looked for instead",
	       w->reason);
	printf("%s: %s\n", bold(cli, able ? "ready" : "not ready", buf, sizeof(buf)),
	       able ? "see what uses the GPU with: gpreempt list" : hint);
	return EXIT_DONE;
}

/* Of two vendors' GPUs in one machine "auto" is AMD's. True: there are others. */
static bool examine_nvidia(struct cli *cli, struct findings *f)
{
	struct cli other = *cli;
	bool there;

	other.ctx = NULL;
	if (gpreempt_open("nvrm", &other.ctx, NULL) < 0)
		return false;
	there = examine_open(&other, f) == EXIT_DONE;
	gpreempt_unref(other.ctx);
	return there;
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
	bool test = false, any;
	const struct command_option options[] = { { "self-test", 0, NULL, &test } };
	_cleanup_free_ struct findings *f = calloc(VENDORS, sizeof(*f));
	struct gpreempt_error e = { .size = sizeof(e), .hint = "the reasons are above" };
	struct doctor_watch watch;
	size_t n = 1;
	int status;

	if (!f)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));
	if (status != EXIT_DONE)
		return status;
	any = !cli->device || strcmp(cli->device, "auto") == 0;
	if (gpreempt_open(cli->device, &cli->ctx, &e) >= 0) {
		status = examine_open(cli, f);
		if (status == EXIT_DONE && test)
			status = self_test(cli, f);
		else if (status == EXIT_DONE && any && !is_nvidia(f))
			n += examine_nvidia(cli, &f[1]);
	} else if (e.kind == GPREEMPT_ERROR_ABSENT && any && !test) {
		nothing_here(f);
		n = VENDORS;
	} else {
		status = cli_fail_error(cli, &e);
	}
	if (status != EXIT_DONE)
		return status;
	doctor_watch(cli, &watch);
	return cli->json ? print_json(cli, f, n, &watch) : print_text(cli, f, n, &watch, e.hint);
}
