/* SPDX-License-Identifier: MIT */
/* Acting through the backend on level K3: which calls the extension gets, and what is told. */
#include "tests/kfd/counts.h"
#include "tests/kfd/ext_rig.h"

static const struct gpu_ops *ops_of(const struct ext_rig *rig)
{
	return rig->b->ops;
}

static void submit(struct ext_rig *rig)
{
	ops_of(rig)->submit(rig->b);
}

/* ---- choosing it ---- */

static void it_says_what_it_can(void **state)
{
	struct ext_rig *rig = *state;
	const struct gpu_caps *caps = &rig->b->caps;

	assert_string_equal(caps->name, "model");
	assert_string_equal(caps->level, "K3");
	assert_true(caps->counts_progress && caps->disturbs_all && caps->attach_is_free);
	assert_false(caps->outlives_owner);
	assert_int_equal(caps->unit, GPU_UNIT_QUEUE);
}

static void only_victims_are_disturbed_where_that_is_allowed(void **state)
{
	struct ext_rig rig = {
		.version = { .version = KFD_GPREEMPT_VERSION,
			     .abilities = KFD_GPREEMPT_CAN_VICTIMS_ONLY,
			     .max_entries = 8 },
	};

	assert_int_equal(ext_rig_open(&rig, GKFD_EXT_ONLY, NULL), 0);
	assert_false(rig.b->caps.disturbs_all);
	ext_rig_close(&rig);
}

/* How opening ends, and on which level. */
static void try_open(int version_result, enum gkfd_ext_use use, int expected, const char *level,
		     bool says_why)
{
	struct ext_rig rig = { .version_result = version_result,
			       .version = { .version = KFD_GPREEMPT_VERSION, .max_entries = 8 } };
	struct gpu_why why = { 0 };

	assert_int_equal(ext_rig_open(&rig, use, &why), expected);
	if (expected == 0)
		assert_string_equal(rig.b->caps.level, level);
	assert_int_equal(why.message[0] != '\0', says_why);
	ext_rig_close(&rig);
}

static void without_the_extension_it_is_the_level_below(void **state)
{
	try_open(-ENODEV, GKFD_EXT_IF_PRESENT, 0, "K2", false);
	try_open(-EACCES, GKFD_EXT_IF_PRESENT, 0, "K2", true);
	try_open(-ENOTTY, GKFD_EXT_IF_PRESENT, 0, "K2", true);
	try_open(0, GKFD_EXT_NEVER, 0, "K2", false);
}

static void who_insists_on_it_hears_that_it_is_not_there(void **state)
{
	try_open(-ENODEV, GKFD_EXT_ONLY, -EOPNOTSUPP, NULL, true);
	try_open(-ENOTTY, GKFD_EXT_ONLY, -EPROTO, NULL, true);
	try_open(0, GKFD_EXT_ONLY, 0, "K3", false);
}

/* ---- one call for all ---- */

static void what_is_asked_in_one_turn_is_one_call(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);
	struct gpu_target *c = ext_rig_attach(rig, EMPTY);
	const uint32_t ids[] = { 4, 5 };

	ops_of(rig)->suspend(a, &(struct gpu_hold){ 0 }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ ids, 2 }, 2);
	ops_of(rig)->suspend(c, &(struct gpu_hold){ 0 }, 3);
	ext_rig_expect_no_call(rig);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all 1002:4 1002:5 1003:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ext_rig_expect(rig, GPU_SUSPEND, 0, 2);
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	for (int i = 0; i < 3; i++)
		ops_of(rig)->resume(i == 0 ? a : i == 1 ? b : c, NULL, 0, 4);
	submit(rig);
	ext_rig_expect_call(rig, "map 1001:all 1002:all 1003:all");
	for (int i = 0; i < 3; i++)
		ext_rig_expect(rig, GPU_RESUME, 0, 3);
	ext_rig_expect_no_call(rig);
}

static void one_leaves_and_another_comes_back_in_one_call(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);

	ops_of(rig)->suspend(a, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ops_of(rig)->resume(a, NULL, 0, 2);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 3);
	submit(rig);
	ext_rig_expect_call(rig, "switch 1002:all | 1001:all for 1000");
	ext_rig_expect(rig, GPU_RESUME, 0, 3);
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
}

static void orders_of_one_target_keep_their_order(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t;

	ops_of(rig)->attach(rig->b, &(struct gpu_attach){ OFFLINE }, 100, &t);
	for (uint64_t i = 0; i < 10; i++) {
		ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 2 * i);
		ops_of(rig)->resume(t, NULL, 0, 2 * i + 1);
	}
	submit(rig);
	assert_int_equal(ext_rig_next(rig).cookie, 100);
	ext_rig_expect_call(rig, "stats 1001");
	for (uint64_t i = 0; i < 20; i++) {
		struct gpu_done done = ext_rig_next(rig);

		assert_ptr_equal(done.target, t);
		assert_int_equal(done.cookie, i);
		assert_int_equal(done.verb, i % 2 ? GPU_RESUME : GPU_SUSPEND);
		ext_rig_expect_call(rig, i % 2 ? "map 1001:all" : "unmap 1001:all for 1000");
	}
}

static void what_came_while_a_call_was_on_its_way_goes_together(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);
	struct gpu_target *c = ext_rig_attach(rig, EMPTY);

	rig->gate_shut = true;
	ops_of(rig)->suspend(a, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 2);
	submit(rig);
	ops_of(rig)->suspend(c, &(struct gpu_hold){ 0 }, 3);
	submit(rig);
	ext_rig_expect_no_call(rig);
	ext_rig_open_gate(rig);
	ext_rig_expect_call(rig, "unmap 1002:all 1003:all for 1000");
}

/* A call takes eight entries here. */
static void more_than_one_call_takes_are_several(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);
	const uint32_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

	ops_of(rig)->suspend(a, &(struct gpu_hold){ ids, 6 }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ ids, 3 }, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:0 1001:1 1001:2 1001:3 1001:4 1001:5 for 1000");
	ext_rig_expect_call(rig, "unmap 1002:0 1002:1 1002:2 for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 6);
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ ids, 9 }, 3);
	submit(rig);
	ext_rig_expect(rig, GPU_SUSPEND, -EINVAL, 0);
	ext_rig_expect_no_call(rig);
}

/* ---- parts ---- */

static void what_is_on_already_costs_no_call(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	const uint32_t some[] = { 1, 2 }, other[] = { 2, 3 };

	ops_of(rig)->resume(t, NULL, 0, 1);
	submit(rig);
	ext_rig_expect(rig, GPU_RESUME, 0, 0);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ some, 2 }, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:1 1001:2 for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 2);
	ops_of(rig)->resume(t, other, 2, 3);
	submit(rig);
	ext_rig_expect_call(rig, "map 1001:2");
	ext_rig_expect(rig, GPU_RESUME, 0, 1);
	ops_of(rig)->release(t, 4);
	submit(rig);
	ext_rig_expect_call(rig, "map 1001:all");
	ext_rig_expect(rig, GPU_RELEASE, 0, 3);
}

/* Queues 1 and 2 on one GPU, 3 on the other. */
static void set_queues(struct ext_rig *rig, struct kfd_gpreempt_queue queues[3])
{
	for (uint32_t i = 0; i < 3; i++)
		queues[i] = (struct kfd_gpreempt_queue){ .queue_id = i + 1,
							 .gpu_id = rig->gpus[i / 2] };
	rig->queues = queues;
	rig->n_queues = 3;
}

static void of_all_a_gpu_comes_back_and_the_other_stays(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	struct kfd_gpreempt_queue queues[3];
	const uint32_t first[] = { 1, 2 };
	char line[EXT_LINE];

	set_queues(rig, queues);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ops_of(rig)->resume(t, first, 2, 2);
	submit(rig);
	ext_rig_expect_call(rig, "stats 1001");
	snprintf(line, sizeof(line), "map 1001:all@%u", rig->gpus[0]);
	ext_rig_expect_call(rig, line);
	ext_rig_expect(rig, GPU_RESUME, 0, 3);
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	snprintf(line, sizeof(line), "unmap 1001:all@%u for 1000", rig->gpus[1]);
	ext_rig_expect_call(rig, line);
}

static void of_all_one_queue_comes_back_and_the_others_stay(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	struct kfd_gpreempt_queue queues[3];
	const uint32_t one[] = { 2 }, last[] = { 3 };
	char line[EXT_LINE];

	set_queues(rig, queues);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	ops_of(rig)->resume(t, one, 1, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect_call(rig, "stats 1001");
	ext_rig_expect_call(rig, "map 1001:2");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ext_rig_expect(rig, GPU_RESUME, 0, 1);
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	snprintf(line, sizeof(line), "unmap 1001:all@%u 1001:1 for 1000", rig->gpus[1]);
	ext_rig_expect_call(rig, line);
	ops_of(rig)->resume(t, last, 1, 3);
	submit(rig);
	ext_rig_expect_call(rig, "stats 1001");
	snprintf(line, sizeof(line), "map 1001:all@%u", rig->gpus[1]);
	ext_rig_expect_call(rig, line);
	ext_rig_expect(rig, GPU_RESUME, 0, 3);
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	ext_rig_expect_call(rig, "unmap 1001:1 for 1000");
}

/* ---- time ---- */

static void a_hold_is_the_drivers_for_no_longer_than_told(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);

	ops_of(rig)->suspend(t, &(struct gpu_hold){ .longest_ns = 200 * NSEC_PER_MSEC }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 200");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ext_rig_move_clock(rig, 199 * NSEC_PER_MSEC); /* nobody renews it */
	ext_rig_move_clock(rig, NSEC_PER_MSEC);
	ops_of(rig)->resume(t, NULL, 0, 2);
	submit(rig);
	ext_rig_expect(rig, GPU_RESUME, 0, 0); /* it is back */
	ext_rig_expect_no_call(rig);
}

static void a_longer_one_is_renewed_up_to_its_end(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);

	ops_of(rig)->suspend(a, &(struct gpu_hold){ .longest_ns = 1400 * NSEC_PER_MSEC }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all 1002:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	ext_rig_move_clock(rig, 500 * NSEC_PER_MSEC);
	ext_rig_expect_call(rig, "unmap 1002:all 1001:all for 900");
	ext_rig_move_clock(rig, 500 * NSEC_PER_MSEC);
	ext_rig_expect_call(rig, "unmap 1002:all for 1000"); /* the other has its time */
	ops_of(rig)->release(b, 2);
	submit(rig);
	ext_rig_expect_call(rig, "map 1002:all");
}

static void holds_of_very_different_times_are_different_calls(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);

	ops_of(rig)->suspend(a, &(struct gpu_hold){ .longest_ns = 10 * NSEC_PER_MSEC }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 10");
	ext_rig_expect_call(rig, "unmap 1002:all for 1000");
}

static void a_hold_that_is_over_before_it_began_is_not_made(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);

	ops_of(rig)->suspend(t, &(struct gpu_hold){ .longest_ns = NSEC_PER_MSEC }, 1);
	__atomic_add_fetch(&rig->now_ns, NSEC_PER_MSEC, __ATOMIC_ACQ_REL);
	submit(rig);
	ext_rig_expect(rig, GPU_SUSPEND, -ETIMEDOUT, 0);
	ext_rig_expect_no_call(rig);
}

static void what_cannot_be_renewed_is_let_go_and_told(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);

	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	rig->failing = OFFLINE;
	rig->failure = -EBUSY;
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect_call(rig, "map 1001:all");
	ext_rig_expect(rig, GPU_ENDED, -EBUSY, 0);
}

/* ---- failures ---- */

static void a_gpu_that_fails_is_named_and_nothing_is_kept(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE);
	struct kfd_gpreempt_queue queues[3];
	struct gpu_done done;

	set_queues(rig, queues);
	rig->failing = ONLINE;
	rig->failure = -EIO;
	rig->hanging_gpu = rig->gpus[1];
	ops_of(rig)->suspend(a, &(struct gpu_hold){ 0 }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all 1002:all for 1000");
	ext_rig_expect_call(rig, "stats 1002");
	ext_rig_expect_call(rig, "map 1002:all");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	done = ext_rig_next(rig);
	assert_int_equal(done.result, -EIO);
	assert_true(done.gpu_failed);
	assert_int_equal(done.gpu, rig->gpus[1]);
	assert_non_null(strstr(done.why.message, "process 1002 could not be taken off GPU"));
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000"); /* only that is renewed */
}

static void what_was_held_before_stays_when_more_fails(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	const uint32_t first[] = { 1 }, more[] = { 1, 3 };

	ops_of(rig)->suspend(t, &(struct gpu_hold){ first, 1 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:1 for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 1);
	rig->failing = OFFLINE;
	rig->failure = -EBUSY;
	ops_of(rig)->suspend(t, &(struct gpu_hold){ more, 2 }, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:1 1001:3 for 1000");
	ext_rig_expect_call(rig, "stats 1001"); /* who else has it */
	ext_rig_expect_call(rig, "map 1001:3");
	ext_rig_expect(rig, GPU_SUSPEND, -EBUSY, 0);
	rig->failing = 0;
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	ext_rig_expect_call(rig, "unmap 1001:1 for 1000");
}

static void a_call_that_was_not_tried_is_nobodys_failure(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	struct gpu_done done;

	rig->call_failure = -ENOMEM;
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	done = ext_rig_next(rig);
	assert_int_equal(done.result, -ENOMEM);
	assert_false(done.gpu_failed);
	assert_true(done.why.message[0]);
}

static void queues_that_are_gone_are_as_good_as_off(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);
	const uint32_t ids[] = { 77 };

	rig->failing = OFFLINE;
	rig->failure = -ENOENT;
	ops_of(rig)->suspend(t, &(struct gpu_hold){ ids, 1 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:77 for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 0);
	ext_rig_move_clock(rig, NSEC_PER_SEC);
	ext_rig_expect_call(rig, "unmap 1001:77 for 1000");
	ext_rig_move_clock(rig, NSEC_PER_SEC); /* and is asked for no more */
	ops_of(rig)->resume(t, NULL, 0, 2);
	submit(rig);
	ext_rig_expect(rig, GPU_RESUME, 0, 0);
	ext_rig_expect_no_call(rig);
}

/* ---- ends ---- */

static void who_cannot_be_attached_is_refused_with_what_was_asked_of_it(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t;

	rig->unknown = OFFLINE;
	rig->unknown_result = -EPERM;
	ops_of(rig)->attach(rig->b, &(struct gpu_attach){ OFFLINE }, 1, &t);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 2);
	ops_of(rig)->release(t, 3);
	submit(rig);
	ext_rig_expect_call(rig, "stats 1001");
	ext_rig_expect(rig, GPU_ATTACH, -EPERM, 0);
	ext_rig_expect(rig, GPU_SUSPEND, -EPERM, 0);
	ext_rig_expect(rig, GPU_RELEASE, 0, 0);
	ext_rig_expect_no_call(rig);
}

static void nobody_is_attached_who_does_not_use_the_driver(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t;
	struct gpu_done done;

	rig->unknown = ONLINE;
	rig->unknown_result = -ESRCH;
	ops_of(rig)->attach(rig->b, &(struct gpu_attach){ ONLINE }, 1, &t);
	submit(rig);
	done = ext_rig_next(rig);
	assert_int_equal(done.result, -ESRCH);
	assert_non_null(strstr(done.why.message, "does not use the GPU driver"));
	ops_of(rig)->attach(rig->b, &(struct gpu_attach){ 4711 }, 2, &t);
	submit(rig);
	done = ext_rig_next(rig);
	assert_int_equal(done.result, -ESRCH);
	assert_non_null(strstr(done.why.message, "there is no process 4711"));
}

static void the_end_of_a_process_is_told_once(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, OFFLINE);

	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, 0, 3);
	closep(&rig->exits[1]);
	rig->exits[1] = -1;
	ext_rig_expect(rig, GPU_ENDED, -ESRCH, 0);
	ops_of(rig)->resume(t, NULL, 0, 2);
	ops_of(rig)->release(t, 3);
	submit(rig);
	ext_rig_expect(rig, GPU_RESUME, -ESRCH, 0);
	ext_rig_expect(rig, GPU_RELEASE, 0, 0);
	ext_rig_expect_no_call(rig);
}

static void the_driver_may_know_of_an_end_first(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *t = ext_rig_attach(rig, ONLINE);

	rig->failing = ONLINE;
	rig->failure = -ESRCH;
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 1);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1002:all for 1000");
	ext_rig_expect(rig, GPU_SUSPEND, -ESRCH, 0);
	ext_rig_expect(rig, GPU_ENDED, -ESRCH, 0);
	ext_rig_expect_no_call(rig);
}

static void closing_lets_everybody_go(void **state)
{
	struct ext_rig *rig = *state;
	struct gpu_target *a = ext_rig_attach(rig, OFFLINE), *b = ext_rig_attach(rig, ONLINE), *c;

	ops_of(rig)->suspend(a, &(struct gpu_hold){ 0 }, 1);
	ops_of(rig)->suspend(b, &(struct gpu_hold){ 0 }, 2);
	submit(rig);
	ext_rig_expect_call(rig, "unmap 1001:all 1002:all for 1000");
	ops_of(rig)->attach(rig->b, &(struct gpu_attach){ EMPTY }, 3, &c);
	ops_of(rig)->suspend(c, &(struct gpu_hold){ 0 }, 4); /* that nobody has submitted */
	ext_rig_close_backend(rig);
	ext_rig_expect_call(rig, "map 1002:all 1001:all");
	assert_true(rig->closed);
}

static void nothing_is_left_behind(void **state)
{
	size_t threads = count_threads(), fds = count_fds();

	for (int i = 0; i < 3; i++) {
		struct ext_rig *rig;
		void *own;

		ext_rig_setup(&own);
		rig = own;
		ops_of(rig)->release(ext_rig_attach(rig, OFFLINE), 1);
		submit(rig);
		ext_rig_expect(rig, GPU_RELEASE, 0, 0);
		ext_rig_attach(rig, ONLINE);
		ext_rig_teardown(&own);
	}
	assert_int_equal(count_threads(), threads);
	assert_int_equal(count_fds(), fds);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, ext_rig_setup, ext_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(it_says_what_it_can),
		cmocka_unit_test(only_victims_are_disturbed_where_that_is_allowed),
		cmocka_unit_test(without_the_extension_it_is_the_level_below),
		cmocka_unit_test(who_insists_on_it_hears_that_it_is_not_there),
		WITH_RIG(what_is_asked_in_one_turn_is_one_call),
		WITH_RIG(one_leaves_and_another_comes_back_in_one_call),
		WITH_RIG(orders_of_one_target_keep_their_order),
		WITH_RIG(what_came_while_a_call_was_on_its_way_goes_together),
		WITH_RIG(more_than_one_call_takes_are_several),
		WITH_RIG(what_is_on_already_costs_no_call),
		WITH_RIG(of_all_a_gpu_comes_back_and_the_other_stays),
		WITH_RIG(of_all_one_queue_comes_back_and_the_others_stay),
		WITH_RIG(a_hold_is_the_drivers_for_no_longer_than_told),
		WITH_RIG(a_longer_one_is_renewed_up_to_its_end),
		WITH_RIG(holds_of_very_different_times_are_different_calls),
		WITH_RIG(a_hold_that_is_over_before_it_began_is_not_made),
		WITH_RIG(what_cannot_be_renewed_is_let_go_and_told),
		WITH_RIG(a_gpu_that_fails_is_named_and_nothing_is_kept),
		WITH_RIG(what_was_held_before_stays_when_more_fails),
		WITH_RIG(a_call_that_was_not_tried_is_nobodys_failure),
		WITH_RIG(queues_that_are_gone_are_as_good_as_off),
		WITH_RIG(who_cannot_be_attached_is_refused_with_what_was_asked_of_it),
		WITH_RIG(nobody_is_attached_who_does_not_use_the_driver),
		WITH_RIG(the_end_of_a_process_is_told_once),
		WITH_RIG(the_driver_may_know_of_an_end_first),
		WITH_RIG(closing_lets_everybody_go),
		cmocka_unit_test(nothing_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
