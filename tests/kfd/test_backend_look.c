/* SPDX-License-Identifier: MIT */
/* Looking through the backend, on the software device: attached to nobody. */

#include "tests/kfd/backend_rig.h"

#define MANY 150

static int setup(void **state)
{
	return rig_setup(state, "mi308x,gpus=2,occupancy=0");
}

static struct gpu_watch *watch(struct rig *rig, pid_t pid)
{
	struct gpu_watch *w;

	assert_int_equal(ops_of(rig)->watch(rig->b, pid, &w), 0);
	return w;
}

static uint32_t add_queue(struct rig *rig, pid_t pid, uint32_t gpu_index, uint32_t type)
{
	struct model_queue_spec spec = { .gpu_index = gpu_index, .type = type };
	uint32_t id;

	assert_int_equal(model_queue_create(rig_lock(rig), pid, &spec, &id), 0);
	rig_unlock(rig);
	return id;
}

static void submit(struct rig *rig, pid_t pid, uint32_t queue, uint64_t wg_ns, bool signal)
{
	struct model_work work = {
		.workgroups = 1, .wg_ns = wg_ns, .wg_per_cu = 1, .signal = signal
	};

	assert_int_equal(model_submit(rig_lock(rig), pid, queue, &work, NULL), 0);
	rig_unlock(rig);
}

static int look(struct rig *rig, struct gpu_watch *w, const struct gpu_sample **ret)
{
	ops_of(rig)->look(rig->b, &w, 1);
	return ops_of(rig)->looked(w, ret);
}

static struct gpu_sample look_at(struct rig *rig, struct gpu_watch *w, uint32_t queue)
{
	const struct gpu_sample *samples;
	int n = look(rig, w, &samples);

	for (int i = 0; i < n; i++)
		if (samples[i].queue == queue)
			return samples[i];
	fail_msg("queue %u was not looked at", queue);
	return (struct gpu_sample){ 0 };
}

static enum gpu_state state_of(struct rig *rig, struct gpu_watch *w, uint32_t queue)
{
	return look_at(rig, w, queue).state;
}

static void a_process_without_a_device_cannot_be_watched(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w;

	assert_int_equal(ops_of(rig)->watch(rig->b, 4711, &w), -ESRCH);
}

static void queues_are_found_with_their_pointers(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w = watch(rig, OFFLINE);
	const struct gpu_queue *queues;
	size_t n = 0;

	queues = ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 10);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(queues[i].gpu, model_gpu_id(rig_lock(rig), 0));
		rig_unlock(rig);
		assert_false(queues[i].unseen);
	}
	ops_of(rig)->unwatch(w);
	ops_of(rig)->unwatch(NULL);
}

/* Each of several that look alike is the one it is taken for. */
static void work_is_seen_in_the_queue_it_was_given_to(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w;
	uint32_t ids[5];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = add_queue(rig, EMPTY, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	w = watch(rig, EMPTY);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct gpu_sample sample;

		assert_int_equal(state_of(rig, w, ids[i]), GPU_IDLE);
		submit(rig, EMPTY, ids[i], NSEC_PER_MSEC, true);
		rig_advance(rig, 100 * NSEC_PER_USEC);
		for (size_t j = 0; j < ARRAY_SIZE(ids); j++)
			assert_int_equal(state_of(rig, w, ids[j]), i == j ? GPU_BUSY : GPU_IDLE);
		rig_advance(rig, 10 * NSEC_PER_MSEC);
		sample = look_at(rig, w, ids[i]);
		assert_int_equal(sample.state, GPU_IDLE);
		assert_int_equal(sample.read, 1);
		assert_int_equal(sample.write, 1);
	}
}

/* Under lockdown it is not there. */
static void with_the_extension_nobody_needs_debugfs(void **state)
{
	struct rig *rig = *state;

	rig_close(rig);
	rig_ext = GKFD_EXT_ONLY;
	rig_open(rig, "mi308x,ext=1");
	rig->no_mqds = true;
	work_is_seen_in_the_queue_it_was_given_to(state);
	assert_int_equal(rig->mqds_reads, 0);

	rig_close(rig);
	rig_open(rig, "mi308x,ext=1");
	rig_ext = GKFD_EXT_NEVER;
	rig->no_stats = EMPTY; /* no right to ask about it: then it is debugfs */
	work_is_seen_in_the_queue_it_was_given_to(state);
	assert_true(rig->mqds_reads > 0);
}

static size_t unseen(struct rig *rig, struct gpu_watch *w)
{
	const struct gpu_queue *queues;
	size_t n, count = 0;

	queues = ops_of(rig)->queues(w, &n);
	for (size_t i = 0; i < n; i++)
		count += queues[i].unseen;
	return count;
}

/* Nor does it take with it what was known. */
static void one_that_cannot_be_asked_about_hides_nobody_else(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w, *refused;

	rig_close(rig);
	rig_ext = GKFD_EXT_ONLY;
	rig_open(rig, "mi308x,ext=1");
	rig_ext = GKFD_EXT_NEVER;
	rig->no_mqds = true;
	rig->no_stats = OFFLINE;
	w = watch(rig, ONLINE);
	refused = watch(rig, OFFLINE);
	assert_int_equal(unseen(rig, w), 0);
	assert_int_equal(unseen(rig, refused), 10);

	rig->no_stats = -1;
	rig_advance(rig, NSEC_PER_SEC);
	add_queue(rig, ONLINE, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	assert_int_equal(unseen(rig, w), 1); /* the new one only */

	rig->no_stats = 0;
	rig_advance(rig, NSEC_PER_SEC);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	assert_int_equal(ops_of(rig)->refresh(refused), 1);
	assert_int_equal(unseen(rig, w) + unseen(rig, refused), 0);
}

static void an_interrupted_packet_keeps_its_queue_busy(void **state)
{
	struct rig *rig = *state;
	uint32_t id = add_queue(rig, EMPTY, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct gpu_target *t = rig_attach(rig, EMPTY);
	struct gpu_watch *w = watch(rig, EMPTY);

	submit(rig, EMPTY, id, 50 * NSEC_PER_MSEC, true);
	rig_advance(rig, NSEC_PER_MSEC);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 1);
	rig_advance(rig, 500 * NSEC_PER_MSEC);
	assert_int_equal(state_of(rig, w, id), GPU_BUSY);
	ops_of(rig)->resume(t, NULL, 0, 0);
	rig_expect(rig, GPU_RESUME, 0, 1);
	rig_advance(rig, 500 * NSEC_PER_MSEC);
	assert_int_equal(state_of(rig, w, id), GPU_IDLE);
}

/* What names no signal is finished once nobody is on the GPU, unless we took it off. */
static void occupancy_settles_what_memory_leaves_open(void **state)
{
	struct rig *rig = *state;
	uint32_t id = add_queue(rig, EMPTY, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct gpu_target *t = rig_attach(rig, EMPTY);
	struct gpu_watch *w = watch(rig, EMPTY);

	submit(rig, EMPTY, id, 50 * NSEC_PER_MSEC, false);
	rig_advance(rig, NSEC_PER_MSEC);
	assert_int_equal(look_at(rig, w, id).read, 1); /* taken up, as far as memory says */
	assert_int_not_equal(state_of(rig, w, id), GPU_IDLE);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 1);
	assert_int_not_equal(state_of(rig, w, id), GPU_IDLE);
	ops_of(rig)->resume(t, NULL, 0, 0);
	rig_expect(rig, GPU_RESUME, 0, 1);
	rig_advance(rig, 500 * NSEC_PER_MSEC);
	assert_int_equal(state_of(rig, w, id), GPU_IDLE);
	submit(rig, EMPTY, id, 50 * NSEC_PER_MSEC, false); /* and is not idle for ever */
	assert_int_equal(state_of(rig, w, id), GPU_BUSY);
}

static void another_set_of_queues_is_noticed(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w = watch(rig, EMPTY);
	const struct gpu_queue *queues;
	const struct gpu_sample *samples;
	uint32_t id;
	size_t n;

	assert_int_equal(ops_of(rig)->refresh(w), 0);
	rig_advance(rig, NSEC_PER_SEC);
	id = add_queue(rig, EMPTY, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	queues = ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 1);
	assert_int_equal(queues[0].queue, id);
	assert_int_equal(queues[0].gpu, model_gpu_id(rig_lock(rig), 1));
	rig_unlock(rig);
	assert_false(queues[0].unseen);
	assert_int_equal(ops_of(rig)->refresh(w), 0);
	model_proc_exit(rig_lock(rig), EMPTY);
	rig_unlock(rig);
	assert_int_equal(ops_of(rig)->refresh(w), -ESRCH);
	assert_true(look(rig, w, &samples) < 0);
}

static void the_long_file_is_read_once_for_all(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w[] = { watch(rig, OFFLINE), watch(rig, ONLINE), watch(rig, EMPTY) };

	assert_int_equal(rig->mqds_reads, 1);
	for (int round = 0; round < 5; round++) {
		rig_advance(rig, NSEC_PER_SEC);
		for (size_t i = 0; i < ARRAY_SIZE(w); i++)
			assert_int_equal(ops_of(rig)->refresh(w[i]), 0);
	}
	assert_int_equal(rig->mqds_reads, 1); /* nothing has changed */
	add_queue(rig, OFFLINE, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	add_queue(rig, EMPTY, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	for (size_t i = 0; i < ARRAY_SIZE(w); i++)
		assert_int_equal(ops_of(rig)->refresh(w[i]), i != 1);
	assert_int_equal(rig->mqds_reads, 2);
}

/* Too soon after the last reading a new queue is not known yet; it is looked for again. */
static void a_queue_missed_at_first_is_found_later(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w = watch(rig, EMPTY);
	const struct gpu_queue *queues;
	size_t n;

	add_queue(rig, EMPTY, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	queues = ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 1);
	assert_true(queues[0].unseen);
	assert_int_equal(ops_of(rig)->refresh(w), 0);
	rig_advance(rig, NSEC_PER_SEC);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	assert_false(ops_of(rig)->queues(w, &n)[0].unseen);
}

static void what_cannot_be_known_is_said_to_be_so(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w;
	const struct gpu_queue *queues;
	const struct gpu_sample *samples;
	size_t n;

	add_queue(rig, ONLINE, 0, KFD_IOC_QUEUE_TYPE_SDMA);
	w = watch(rig, ONLINE);
	queues = ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_false(queues[i].unseen);
	/* Of one for copies nobody looks at the pointers. */
	assert_int_equal(look(rig, w, &samples), 2);
	assert_null(ops_of(rig)->blind(w));
	assert_null(ops_of(rig)->problem(rig->b));

	rig->no_mqds = true;
	rig_advance(rig, NSEC_PER_SEC);
	w = watch(rig, OFFLINE);
	queues = ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 10);
	assert_true(queues[0].unseen);
	assert_int_equal(look(rig, w, &samples), 10);
	assert_non_null(strstr(ops_of(rig)->blind(w), "mqds"));
	assert_non_null(strstr(ops_of(rig)->problem(rig->b), "mqds"));
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(samples[i].state, GPU_UNSEEN);
		assert_int_equal(samples[i].queue, queues[i].queue);
		assert_int_equal(samples[i].read | samples[i].write, 0);
	}
}

/* The kernel makes a directory before the files in it. */
static void a_queue_that_is_just_being_made_is_found_soon(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w;
	size_t n;

	rig->no_queue_files = true;
	w = watch(rig, ONLINE);
	ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 0);
	rig->no_queue_files = false;
	rig_advance(rig, 60 * NSEC_PER_MSEC);
	assert_int_equal(ops_of(rig)->refresh(w), 1);
	ops_of(rig)->queues(w, &n);
	assert_int_equal(n, 2);
}

static void whatever_keeps_it_from_being_read_is_told(void **state)
{
	static const int errors[] = { -ETIMEDOUT, -EUSERS, -EIO,     -EPERM,   -EACCES, -ENOMEM,
				      -EMFILE,	  -ENOSPC, -ENOBUFS, -EBADMSG, -EAGAIN };
	struct rig *rig = *state;
	struct gpu_watch *w = watch(rig, ONLINE);
	const struct gpu_sample *samples;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		rig->mem_error = errors[i];
		assert_int_equal(look(rig, w, &samples), 2);
		assert_int_equal(samples[0].state, GPU_UNSEEN);
		assert_non_null(ops_of(rig)->blind(w));
	}
	rig->mem_error = -ESRCH;
	assert_int_equal(look(rig, w, &samples), -ESRCH);
	rig->mem_error = 0;
	assert_int_equal(look(rig, w, &samples), 2);
	assert_null(ops_of(rig)->blind(w));
}

static void pointers_that_cannot_be_read_are_told(void **state)
{
	struct rig *rig = *state;
	struct gpu_watch *w = watch(rig, ONLINE);
	const struct gpu_sample *samples;

	rig->mem_holes = 1;
	assert_int_equal(look(rig, w, &samples), 2);
	assert_int_equal(samples[0].state, GPU_UNSEEN);
	assert_int_equal(samples[1].state, GPU_IDLE);
	assert_non_null(ops_of(rig)->blind(w));
	rig->mem_holes = 0;
	assert_int_equal(look(rig, w, &samples), 2);
	assert_int_equal(samples[0].state, GPU_IDLE);
	assert_null(ops_of(rig)->blind(w));
}

/* More than are followed at a time. */
static void many_queues_are_all_looked_at(void **state)
{
	struct rig *rig = *state;
	const struct gpu_sample *samples;
	struct gpu_watch *w;
	uint32_t ids[MANY];

	for (size_t i = 0; i < MANY; i++)
		ids[i] = add_queue(rig, EMPTY, (uint32_t)i % 2, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	w = watch(rig, EMPTY);
	for (size_t i = 0; i < MANY; i += 3)
		submit(rig, EMPTY, ids[i], 100 * NSEC_PER_SEC, true);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(look(rig, w, &samples), MANY);
		for (size_t i = 0; i < MANY; i++) {
			assert_int_equal(samples[i].queue, ids[i]);
			assert_int_equal(samples[i].state, i % 3 ? GPU_IDLE : GPU_BUSY);
			assert_int_equal(samples[i].write, i % 3 ? 0 : 1);
		}
	}
	assert_int_equal(ops_of(rig)->looked(w, &samples), -ECANCELED); /* it is told once */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_process_without_a_device_cannot_be_watched),
		T(queues_are_found_with_their_pointers),
		T(work_is_seen_in_the_queue_it_was_given_to),
		T(with_the_extension_nobody_needs_debugfs),
		T(one_that_cannot_be_asked_about_hides_nobody_else),
		T(an_interrupted_packet_keeps_its_queue_busy),
		T(occupancy_settles_what_memory_leaves_open),
		T(another_set_of_queues_is_noticed),
		T(the_long_file_is_read_once_for_all),
		T(a_queue_missed_at_first_is_found_later),
		T(what_cannot_be_known_is_said_to_be_so),
		T(a_queue_that_is_just_being_made_is_found_soon),
		T(whatever_keeps_it_from_being_read_is_told),
		T(pointers_that_cannot_be_read_are_told),
		T(many_queues_are_all_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
