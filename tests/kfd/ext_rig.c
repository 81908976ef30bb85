/* SPDX-License-Identifier: MIT */
#include "tests/kfd/ext_rig.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <time.h>

#define WAIT_S 10

/* The model's table has no room for us: tests run one rig at a time. */
static struct ext_rig *the_rig;

/* ---- the script ---- */

static void log_line(const char *line)
{
	struct ext_rig *rig = the_rig;

	pthread_mutex_lock(&rig->lock);
	if (rig->n_lines < EXT_CALLS)
		snprintf(rig->lines[rig->n_lines++], EXT_LINE, "%s", line);
	pthread_cond_broadcast(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
}

static void append(char line[EXT_LINE], const char *fmt, ...) _printf_(2, 3);

static void append(char line[EXT_LINE], const char *fmt, ...)
{
	size_t len = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + len, EXT_LINE - len, fmt, ap);
	va_end(ap);
}

static void append_entry(char line[EXT_LINE], const struct kfd_gpreempt_entry *e)
{
	append(line, " %u:", e->pid);
	if (e->queue_id == KFD_GPREEMPT_ALL_QUEUES)
		append(line, "all");
	else
		append(line, "%u", e->queue_id);
	if (e->gpu_id != KFD_GPREEMPT_ANY_GPU)
		append(line, "@%u", e->gpu_id);
}

static void pass_gate(void)
{
	char byte;

	while (the_rig->gate_shut && read(the_rig->gate[0], &byte, 1) < 0)
		;
}

/* Three queues for all of a process. */
static int answer_batch(const char *name, struct kfd_gpreempt_batch *b)
{
	struct kfd_gpreempt_entry *entries = (void *)(uintptr_t)b->entries;
	char line[EXT_LINE] = "";
	int done = 0;

	append(line, "%s", name);
	for (uint32_t i = 0; i < b->n_unmap + b->n_map; i++) {
		struct kfd_gpreempt_entry *e = &entries[i];
		bool fails = the_rig->failing && e->pid == (uint32_t)the_rig->failing;

		if (i == b->n_unmap && i > 0)
			append(line, " |");
		append_entry(line, e);
		assert_int_equal(e->result, 0);
		assert_true(e->start_ticks > 0);
		e->result = fails ? the_rig->failure : 0;
		e->queues = fails ? 0 : e->queue_id == KFD_GPREEMPT_ALL_QUEUES ? 3 : 1;
		done += !fails;
	}
	if (b->n_unmap)
		append(line, " for %u", b->hold_ms);
	log_line(line);
	pass_gate();
	return the_rig->call_failure ? the_rig->call_failure : done;
}

static int answer_stats(struct kfd_gpreempt_stats *s)
{
	char line[EXT_LINE] = "";

	append(line, "stats %u", s->pid);
	log_line(line);
	if (s->pid == (uint32_t)the_rig->unknown)
		return the_rig->unknown_result;
	if (the_rig->n_queues)
		memcpy((void *)(uintptr_t)s->queues, the_rig->queues,
		       MIN(s->n, the_rig->n_queues) * sizeof(*the_rig->queues));
	s->n = the_rig->n_queues;
	return 0;
}

static int scripted_ext(void *data, unsigned long request, void *arg)
{
	struct kfd_gpreempt_hqd *hqd = arg;

	switch (request) {
	case KFD_GPREEMPT_GET_VERSION:
		*(struct kfd_gpreempt_version *)arg = the_rig->version;
		return the_rig->version_result;
	case KFD_GPREEMPT_BATCH_UNMAP_QUEUES:
		return answer_batch("unmap", arg);
	case KFD_GPREEMPT_FAST_REMAP:
		return answer_batch("map", arg);
	case KFD_GPREEMPT_SWITCH:
		return answer_batch("switch", arg);
	case KFD_GPREEMPT_GET_STATS:
		return answer_stats(arg);
	case KFD_GPREEMPT_GET_HQD_STATUS:
		hqd->flags = hqd->gpu_id == the_rig->hanging_gpu ? KFD_GPREEMPT_HQD_HANG : 0;
		return 0;
	default:
		return -ENOTTY;
	}
}

static int scripted_pidfd(void *data, pid_t pid)
{
	return pid == OFFLINE ? fcntl(the_rig->exits[0], F_DUPFD_CLOEXEC, 3) : -ENOSYS;
}

static uint64_t standing_now_ns(void *data)
{
	return __atomic_load_n(&the_rig->now_ns, __ATOMIC_ACQUIRE);
}

static int ticking_wait(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	struct pollfd all[16];
	uint64_t count;
	int r;

	assert_true(n < ARRAY_SIZE(all));
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){ .fd = the_rig->tick, .events = POLLIN };
	__atomic_store_n(&the_rig->asked_ns, timeout_ns, __ATOMIC_RELEASE);
	r = poll(all, n + 1, timeout_ns == 0 ? 0 : -1);
	memcpy(fds, all, n * sizeof(*fds));
	if (r > 0 && all[n].revents) {
		assert_int_equal(read(the_rig->tick, &count, sizeof(count)), sizeof(count));
		r--;
	}
	return r;
}

static void noticed_close(void *data)
{
	the_rig->closed = true;
	gkfd_transport_model.close(data);
}

/* ---- the rig ---- */

static void make_tables(struct ext_rig *rig)
{
	rig->table = gkfd_transport_model;
	rig->trace = *gkfd_transport_model.trace;
	rig->trace.pidfd = scripted_pidfd;
	rig->table.trace = &rig->trace;
	rig->table.ext = scripted_ext;
	rig->table.now_ns = standing_now_ns;
	rig->table.wait = ticking_wait;
	rig->table.made_up_time = false; /* it moves by ticks of ours */
	rig->table.close = noticed_close;
}

int ext_rig_open(struct ext_rig *rig, enum gkfd_ext_use use, struct gpu_why *why)
{
	_cleanup_free_ char *reason = NULL;
	struct model *m;
	struct gkfd *k;

	the_rig = rig;
	make_tables(rig);
	rig->now_ns = NSEC_PER_SEC;
	rig->tick = eventfd(0, EFD_CLOEXEC);
	assert_true(rig->tick >= 0);
	assert_int_equal(pipe2(rig->exits, O_CLOEXEC), 0);
	assert_int_equal(pipe2(rig->gate, O_CLOEXEC), 0);
	pthread_mutex_init(&rig->lock, NULL);
	pthread_cond_init(&rig->changed, NULL);
	assert_int_equal(model_new_preset("mi308x,gpus=2", &m, &reason), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(rig->gpus); i++)
		rig->gpus[i] = model_gpu_id(m, i);
	assert_int_equal(gkfd_new(&rig->table, model_transport_new(m), &k), 0);
	return gkfd_backend_open(k, &(struct gkfd_backend_options){ .ext = use, .why = why },
				 &rig->b);
}

void ext_rig_close_backend(struct ext_rig *rig)
{
	if (rig->b)
		rig->b->ops->close(rig->b);
	rig->b = NULL;
}

void ext_rig_close(struct ext_rig *rig)
{
	ext_rig_open_gate(rig);
	ext_rig_close_backend(rig);
	for (int i = 0; i < 2; i++) {
		closep(&rig->exits[i]);
		closep(&rig->gate[i]);
	}
	closep(&rig->tick);
	pthread_cond_destroy(&rig->changed);
	pthread_mutex_destroy(&rig->lock);
}

int ext_rig_setup(void **state)
{
	struct ext_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->version = (struct kfd_gpreempt_version){
		.version = KFD_GPREEMPT_VERSION,
		.abilities = KFD_GPREEMPT_CAN_BATCH | KFD_GPREEMPT_IS_ADMIN,
		.max_entries = 8,
		.max_hold_ms = KFD_GPREEMPT_MAX_HOLD_MS,
	};
	assert_int_equal(ext_rig_open(rig, GKFD_EXT_IF_PRESENT, NULL), 0);
	*state = rig;
	return 0;
}

int ext_rig_teardown(void **state)
{
	struct ext_rig *rig = *state;

	ext_rig_close(rig);
	free(rig);
	return 0;
}

void ext_rig_expect_call(struct ext_rig *rig, const char *line)
{
	struct timespec until;
	const char *got = NULL;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&rig->lock);
	while (rig->n_read == rig->n_lines &&
	       pthread_cond_timedwait(&rig->changed, &rig->lock, &until) == 0)
		;
	if (rig->n_read < rig->n_lines)
		got = rig->lines[rig->n_read++];
	pthread_mutex_unlock(&rig->lock);
	assert_non_null(got);
	assert_string_equal(got, line);
}

void ext_rig_expect_no_call(struct ext_rig *rig)
{
	pthread_mutex_lock(&rig->lock);
	assert_int_equal(rig->n_read, rig->n_lines);
	pthread_mutex_unlock(&rig->lock);
}

struct gpu_done ext_rig_next(struct ext_rig *rig)
{
	struct pollfd p = { .fd = rig->b->ops->fd(rig->b), .events = POLLIN };
	struct gpu_done done;

	assert_int_equal(poll(&p, 1, WAIT_S * 1000), 1);
	assert_int_equal(rig->b->ops->take(rig->b, &done), 1);
	return done;
}

void ext_rig_expect(struct ext_rig *rig, enum gpu_verb verb, int result, uint32_t queues)
{
	struct gpu_done done = ext_rig_next(rig);

	assert_int_equal(done.verb, verb);
	assert_int_equal(done.result, result);
	assert_int_equal(done.queues, queues);
	assert_int_equal(done.why.message[0] != '\0', result < 0);
	assert_true(done.began_ns && done.done_ns >= done.began_ns);
}

struct gpu_target *ext_rig_attach(struct ext_rig *rig, pid_t pid)
{
	char line[EXT_LINE] = "";
	struct gpu_target *t;

	append(line, "stats %d", (int)pid);
	assert_int_equal(rig->b->ops->attach(rig->b, &(struct gpu_attach){ pid }, 1, &t), 0);
	rig->b->ops->submit(rig->b);
	ext_rig_expect_call(rig, line);
	ext_rig_expect(rig, GPU_ATTACH, 0, 0);
	return t;
}

void ext_rig_move_clock(struct ext_rig *rig, uint64_t ns)
{
	uint64_t one = 1;

	__atomic_add_fetch(&rig->now_ns, ns, __ATOMIC_ACQ_REL);
	assert_int_equal(write(rig->tick, &one, sizeof(one)), sizeof(one));
}

void ext_rig_open_gate(struct ext_rig *rig)
{
	closep(&rig->gate[1]);
	rig->gate[1] = -1;
}
