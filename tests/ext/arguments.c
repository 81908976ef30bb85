/* SPDX-License-Identifier: MIT */
/* What calls take and what they refuse; what each entry of a batch is told. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define REMAP KFD_GPREEMPT_FAST_REMAP
#define NOBODY 0x3ffff0u /* no such pid */
#define SIZED(request, bytes) \
	(((request) & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) | \
	 (unsigned long)(bytes) << _IOC_SIZESHIFT)

static void version(void)
{
	struct kfd_gpreempt_version v = { 77, 77, 77, 77 }, *theirs = shared(sizeof(*theirs));
	struct actor *a = job(0);
	int fd = open_ext();

	expect_is("GET_VERSION", ext(fd, KFD_GPREEMPT_GET_VERSION, &v), 0);
	expect_is("version", v.version, KFD_GPREEMPT_VERSION);
	expect_is("abilities", v.abilities, KFD_GPREEMPT_CAN_BATCH | KFD_GPREEMPT_IS_ADMIN);
	expect_is("entries", v.max_entries, KFD_GPREEMPT_MAX_ENTRIES);
	expect_is("time", v.max_hold_ms, KFD_GPREEMPT_MAX_HOLD_MS);
	expect_is("of /dev/kfd", kfd_call(a, KFD_GPREEMPT_GET_VERSION, theirs), 0);
	expect(!memcmp(&v, theirs, sizeof(v)), "/dev/kfd tells something else");
}

static void unknown_numbers(void)
{
	struct actor *a = job(0);
	uint64_t *word = shared(sizeof(*word));
	int fd = open_ext();

	expect_is("0xcd", ext(fd, _IOWR('K', 0xcd, uint64_t), word), -ENOTTY);
	expect_is("0xcf", ext(fd, _IOWR('K', 0xcf, uint64_t), word), -ENOTTY);
	expect_is("0xd7", ext(fd, _IOWR('K', 0xd7, uint64_t), word), -ENOTTY);
	expect_is("0xe0", ext(fd, _IOWR('K', 0xe0, uint64_t), word), -ENOTTY);
	expect_is("0x01", ext(fd, _IOWR('K', 0x01, uint64_t), word), -ENOTTY);
	expect_is("0xce of /dev/kfd", kfd_call(a, _IOWR('K', 0xce, uint64_t), word), -ENOTTY);
	expect_is("0xd0 of /dev/kfd", kfd_call(a, _IOWR('K', 0xd0, uint64_t), word), -ENOTTY);
}

static int with(int fd, unsigned long request, struct kfd_gpreempt_batch b)
{
	return ext(fd, request, &b);
}

#define REFUSED(what, field_and_value, request, wanted) \
	do { \
		struct kfd_gpreempt_batch b = *good; \
		b.field_and_value; \
		expect_is(what, with(fd, request, b), wanted); \
	} while (0)

static void bad_batches(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	const struct kfd_gpreempt_batch *good = batch(e, 1, 0);
	struct meter m = meter(0);

	REFUSED("no entries", n_unmap = 0, UNMAP, -EINVAL);
	REFUSED("1025 entries", n_unmap = 1025, UNMAP, -EINVAL);
	REFUSED("very many", n_unmap = UINT32_MAX, UNMAP, -EINVAL);
	REFUSED("2^32 in all", n_unmap = UINT32_MAX; b.n_map = 1, KFD_GPREEMPT_SWITCH, -EINVAL);
	REFUSED("unmap maps", n_map = 1, UNMAP, -EINVAL);
	REFUSED("remap unmaps", n_map = 1, REMAP, -EINVAL);
	REFUSED("remap of none", n_map = 0, REMAP, -EINVAL);
	REFUSED("switch without map", n_map = 0, KFD_GPREEMPT_SWITCH, -EINVAL);
	REFUSED("switch without unmap", n_unmap = 0; b.n_map = 1, KFD_GPREEMPT_SWITCH, -EINVAL);
	REFUSED("unknown flag", flags = 0x8, UNMAP, -EINVAL);
	REFUSED("unknown flag", flags = 0x80, KFD_GPREEMPT_SELECTIVE_UNMAP, -EINVAL);
	REFUSED("keep-mqd of a batch", flags = KFD_GPREEMPT_KEEP_MQD, UNMAP, -EINVAL);
	REFUSED("no-cwsr of a batch", flags = KFD_GPREEMPT_NO_CWSR, UNMAP, -EINVAL);
	REFUSED("no-cwsr", flags = KFD_GPREEMPT_NO_CWSR, KFD_GPREEMPT_SELECTIVE_UNMAP, -EOPNOTSUPP);
	REFUSED("victims only", flags = KFD_GPREEMPT_VICTIMS_ONLY, UNMAP, -EOPNOTSUPP);
	REFUSED("grace 0", grace = 0, UNMAP, -EINVAL);
	REFUSED("grace 256", grace = 256, UNMAP, -EINVAL);
	REFUSED("hold too long", hold_ms = 60001, UNMAP, -EINVAL);
	REFUSED("hold for ever", hold_ms = UINT32_MAX, UNMAP, -EINVAL);
	e->pad = 1;
	expect_is("pad", with(fd, UNMAP, *good), -EINVAL);
	expect_is("held", hqd(0).held, 0);
	expect_no_work(m, 0);
}

static void good_graces(void)
{
	static const uint32_t graces[] = { 1, 255, KFD_GPREEMPT_DEFAULT_GRACE };
	struct actor *a = job(2);
	int fd = open_ext();

	for (unsigned int i = 0; i < 3; i++) {
		struct kfd_gpreempt_batch *b = batch(entry_of(a, ALL, ANY), 1, 0);
		uint64_t writes = counter(0, "write_data");

		give(a, 20);
		b->grace = graces[i];
		expect_is("unmap", ext(fd, UNMAP, b), 1);
		expect_is("remap", let_go(fd, a), 0);
		if (!machine.is_mes)
			expect_is("register written", (long)(counter(0, "write_data") - writes),
				  i < 2 ? 2 : 0);
	}
	expect_all_done(a);
}

static void bad_pointers(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	struct kfd_gpreempt_batch *b = batch((void *)8, 1, 0);
	struct kfd_gpreempt_stats s = { .pid = (uint32_t)a->pid, .n = 4, .queues = 8 };
	struct kfd_gpreempt_entry *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned int nr = 0xc0; nr <= 0xcc; nr++) {
		expect_is("bad argument", ext(fd, _IOWR('K', nr, char[64]), (void *)8), -EFAULT);
		expect_is("of /dev/kfd", kfd_call(a, _IOWR('K', nr, char[64]), (void *)8), -EFAULT);
	}
	for (unsigned int nr = 0xd0; nr <= 0xd6; nr++)
		expect_is("bad argument", ext(fd, _IOWR('K', nr, char[64]), (void *)8), -EFAULT);
	expect_is("bad entries", ext(fd, UNMAP, b), -EFAULT);
	expect_is("bad queues", ext(fd, KFD_GPREEMPT_GET_STATS, &s), -EFAULT);
	expect_is("held", hqd(0).held, 0);
	*page = *entry_of(a, ALL, ANY);
	mprotect(page, 4096, PROT_READ);
	b->entries = (uintptr_t)page;
	expect_is("entries that cannot be written", ext(fd, UNMAP, b), -EFAULT);
	munmap(page, 4096);
	expect_is("let go", let_go(fd, a), 0);
	give(a, 5);
	expect_all_done(a);
}

/* As copy_struct_from_user() has it: what is missing is 0, what is too much must be. */
static void sizes(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	struct kfd_gpreempt_version v = { 77, 77, 77, 77 };
	struct {
		struct kfd_gpreempt_batch b;
		uint64_t more;
	} longer = { *batch(entry_of(a, ALL, ANY), 1, 0), 0 };
	struct kfd_gpreempt_batch *shorter = batch(entry_of(a, ALL, ANY), 0, 1);

	expect_is("short version", ext(fd, SIZED(KFD_GPREEMPT_GET_VERSION, 8), &v), 0);
	expect(v.version == 1 && v.abilities != 77 && v.max_entries == 77,
	       "of a short struct %u %u %u is told", v.version, v.abilities, v.max_entries);
	expect_is("longer batch", ext(fd, SIZED(UNMAP, sizeof(longer)), &longer), 1);
	longer.more = 1;
	expect_is("with something more", ext(fd, SIZED(UNMAP, sizeof(longer)), &longer), -E2BIG);
	expect_is("held", hqd(0).held, 1);
	shorter->cycles = 77;
	expect_is("shorter batch", ext(fd, SIZED(REMAP, 32), shorter), 1);
	expect_is("what lies behind it", shorter->cycles, 77);
	expect_is("too short a batch", ext(fd, SIZED(UNMAP, 4), shorter), -EINVAL);
	expect_is("held", hqd(0).held, 0);
}

static void most_entries(void)
{
	struct actor *a = job(2);
	struct kfd_gpreempt_entry *e = entries(1024);
	int fd = open_ext();
	struct meter m;

	for (unsigned int i = 0; i < 2; i++)
		e[i] = *entry_of(a, queue_id(a, i), ANY);
	for (unsigned int i = 2; i < 1024; i++)
		e[i] = e[i % 2];
	m = meter(0);
	expect_is("unmap", ext(fd, UNMAP, batch(e, 1024, 0)), 1024);
	expect_one_cycle(m, 0, 2, 0);
	expect_is("queues of the first", e[0].queues, 1);
	expect_is("queues of the last", e[1023].queues, 1);
	expect_is("held", hqd(0).held, 2);
	expect_is("remap", ext(fd, REMAP, batch(e, 0, 1024)), 2);
	expect_is("the last", e[1023].result, -EALREADY);
}

static void each_entry_is_told(void)
{
	struct actor *a = job(2), *idle = actor(0);
	struct kfd_gpreempt_entry *e = entries(10);
	static const int wanted[10] = { 0,	 -ESRCH, -ESRCH, -ESRCH, -ENOENT,
					-ENOENT, -ESRCH, 0,	 0,	 -ESRCH };
	struct kfd_gpreempt_batch *b = batch(e, 10, 0);
	int fd = open_ext();

	for (unsigned int i = 0; i < 10; i++)
		e[i] = *entry_of(a, queue_id(a, 0), ANY);
	e[1].pid = NOBODY;
	e[2].pid = 0;
	e[3].pid = (uint32_t)idle->pid;
	e[4].queue_id = 77;
	e[5].gpu_id = 12345;
	e[6].start_ticks = start_ticks_of(a->pid) + 1;
	e[7].start_ticks = start_ticks_of(a->pid);
	e[8] = *entry_of(a, queue_id(a, 1), machine.gpu_ids[0]);
	e[9].pid = UINT32_MAX;
	expect_is("unmap", ext(fd, UNMAP, b), 3);
	for (unsigned int i = 0; i < 10; i++) {
		expect(e[i].result == wanted[i], "entry %u: %s instead of %s", i,
		       result_name(e[i].result), result_name(wanted[i]));
		expect(wanted[i] == 0 || e[i].queues == 0, "entry %u changed queues", i);
	}
	expect_is("cycles", b->cycles, machine.is_mes ? 0 : 1);
	expect_is("ticket", (long)b->ticket, 0);
	expect(b->fence_ns > 0 && b->fence_ns <= b->took_ns, "waited %llu ns in %llu",
	       (unsigned long long)b->fence_ns, (unsigned long long)b->took_ns);
	expect_is("held", hqd(0).held, 2);
}

static void counts_of_queues(void)
{
	struct actor *a = job(3);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	int fd = open_ext();
	struct meter m;

	expect_is("unmap", ext(fd, UNMAP, batch(e, 1, 0)), 1);
	expect_is("taken off", e->queues, 3);
	m = meter(0);
	expect_is("again", ext(fd, UNMAP, batch(e, 1, 0)), 1);
	expect_is("taken off", e->queues, 0);
	expect_no_work(m, 0);
	expect_is("remap", ext(fd, REMAP, batch(e, 0, 1)), 1);
	expect_is("put on", e->queues, 3);
	m = meter(0);
	expect_is("again", ext(fd, REMAP, batch(e, 0, 1)), 1);
	expect_is("put on", e->queues, 0);
	expect_no_work(m, 0);
}

static void one_queue(void)
{
	struct actor *a = job(2);
	struct kfd_gpreempt_one *o = one(a, queue_id(a, 1)), *bad;
	int fd = open_ext();

	give(a, 60);
	expect_is("PREEMPT_QUEUE", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), 0);
	expect_queue_stands(a, 1);
	expect_queue_runs(a, 0);
	expect_is("RESUME_QUEUE", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, o), 0);
	expect_queue_runs(a, 1);
	expect_is("again", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, o), -EALREADY);
	bad = one(a, 77);
	expect_is("no such queue", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, bad), -ENOENT);
	expect_is("no such queue", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, bad), -ENOENT);
	bad = one(a, ALL);
	bad->pid = NOBODY;
	expect_is("nobody", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, bad), -ESRCH);
	bad = one(a, ALL);
	bad->state = 1;
	expect_is("a state", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, bad), -EINVAL);
	expect_is("a state", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, bad), -EINVAL);
	bad->state = 0;
	bad->grace = 0;
	expect_is("no grace", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, bad), -EINVAL);
	expect_all_done(a);
}

static void set_state(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_one *o = one(a, queue_id(a, 0));
	int fd = open_ext();

	give(a, 40);
	o->state = KFD_GPREEMPT_ACTIVE;
	expect_is("active as it is", ext(fd, KFD_GPREEMPT_SET_QUEUE_STATE, o), 0);
	o->state = KFD_GPREEMPT_INACTIVE;
	expect_is("inactive", ext(fd, KFD_GPREEMPT_SET_QUEUE_STATE, o), 0);
	expect_is("inactive again", ext(fd, KFD_GPREEMPT_SET_QUEUE_STATE, o), 0);
	expect_stands(a);
	o->state = 2;
	expect_is("a third state", ext(fd, KFD_GPREEMPT_SET_QUEUE_STATE, o), -EINVAL);
	o->state = KFD_GPREEMPT_ACTIVE;
	expect_is("active", ext(fd, KFD_GPREEMPT_SET_QUEUE_STATE, o), 0);
	expect_all_done(a);
}

static void *pause_thread(void *arg)
{
	*(volatile pid_t *)arg = gettid();
	for (;;)
		pause();
	return NULL;
}

static int do_thread(void *arg)
{
	volatile pid_t *tid = arg;
	pthread_t t;

	if (pthread_create(&t, NULL, pause_thread, arg))
		return -EAGAIN;
	while (!*tid)
		;
	return 0;
}

static void any_thread(void)
{
	struct actor *a = job(1);
	pid_t *tid = shared(sizeof(*tid));
	struct kfd_gpreempt_one *o = one(a, queue_id(a, 0));
	int fd = open_ext();

	expect_is("thread", in(a, do_thread, tid), 0);
	give(a, 40);
	o->pid = (uint32_t)*tid;
	o->start_ticks = start_ticks_of(a->pid);
	expect_is("by its thread", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), 0);
	expect_stands(a);
	o->pid = (uint32_t)a->pid;
	expect_is("by its first", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, o), 0);
	expect_all_done(a);
}

const struct ext_case argument_cases[] = {
	{ "the version is told on both devices", version, BOTH },
	{ "unknown numbers are refused", unknown_numbers, BOTH },
	{ "a batch that makes no sense is refused and changes nothing", bad_batches, BOTH },
	{ "every grace there is is taken, and is gone afterwards", good_graces, BOTH },
	{ "bad pointers are refused", bad_pointers, BOTH },
	{ "arguments can be shorter and longer than ours", sizes, BOTH },
	{ "a batch of 1024 entries is one cycle", most_entries, BOTH },
	{ "each entry is told its own result", each_entry_is_told, BOTH },
	{ "the queues that changed are counted", counts_of_queues, BOTH },
	{ "one queue is preempted and resumed", one_queue, BOTH },
	{ "the state of a queue is set", set_state, BOTH },
	{ "any thread of a process names it", any_thread, BOTH },
	{ 0 },
};
