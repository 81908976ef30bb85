/* SPDX-License-Identifier: MIT */
/*
 * usage: randsuspend PID N [SEED]
 *
 * Suspends the process N times, or until it ends, with the library: each time another set of its
 * queues, for another time, after another pause. Prints
 *
 *     suspends N caught N saved_bytes N seed N
 *
 * where a suspend has caught a dispatch when wave state had to be saved. Exit status 0 when no
 * call failed.
 */
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_QUEUES 64
#define LONGEST_NS 3000000u /* of a suspension, and of a pause */

struct tally {
	unsigned long suspends, caught;
	unsigned long long saved_bytes;
};

static int failed(struct gpreempt_ctx *ctx, const char *what)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	printf("%s: %s\n", what, e.message);
	return 1;
}

static uint64_t below(unsigned int *seed, uint64_t n)
{
	return (uint64_t)rand_r(seed) % n;
}

/* At least one; how many of them. */
static size_t choose(unsigned int *seed, const struct gpreempt_queue *qs, size_t n, uint32_t *ids)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (below(seed, 2))
			ids[k++] = qs[i].queue_id;
	}
	if (!k)
		ids[k++] = qs[below(seed, n)].queue_id;
	return k;
}

static int once(struct gpreempt_ctx *ctx, struct gpreempt_process *p, unsigned int *seed,
		const struct gpreempt_queue *qs, size_t n, struct tally *t)
{
	struct gpreempt_suspend_options options = { .size = sizeof(options), .want_saved = true };
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	uint32_t ids[MAX_QUEUES];
	size_t k = choose(seed, qs, n, ids);

	if (gpreempt_suspend_queues(p, ids, k, &options, &timing) < 0)
		return failed(ctx, "suspend");
	t->suspends++;
	if (timing.has_saved && timing.saved_bytes) {
		t->caught++;
		t->saved_bytes += timing.saved_bytes;
	}
	gpreempt_wait(ctx, NULL, 0, below(seed, LONGEST_NS));
	if (gpreempt_resume_queues(p, NULL) < 0)
		return failed(ctx, "resume");
	gpreempt_wait(ctx, NULL, 0, below(seed, LONGEST_NS));
	return 0;
}

static int run(struct gpreempt_ctx *ctx, pid_t pid, unsigned long n, unsigned int seed)
{
	struct gpreempt_queue qs[MAX_QUEUES] = { { .size = sizeof(qs[0]) } };
	struct gpreempt_process *p = NULL;
	struct tally t = { 0 };
	unsigned int state = seed;
	int n_queues, r = 0;

	if (gpreempt_attach(ctx, pid, 0, &p) < 0)
		return failed(ctx, "attach");
	n_queues = gpreempt_snapshot(p, qs, MAX_QUEUES, NULL);
	if (n_queues <= 0 || n_queues > MAX_QUEUES)
		return failed(ctx, "snapshot");
	while (!r && t.suspends < n)
		r = once(ctx, p, &state, qs, (size_t)n_queues, &t);
	gpreempt_detach(p);
	printf("suspends %lu caught %lu saved_bytes %llu seed %u\n", t.suspends, t.caught,
	       t.saved_bytes, seed);
	return r;
}

static long number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 0);

	if (*text && !*end && n >= 0)
		return n;
	fprintf(stderr, "randsuspend: '%s' is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_ctx *ctx = NULL;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: randsuspend PID N [SEED]\n");
		return 2;
	}
	if (gpreempt_open("kfd", &ctx, &e) < 0) {
		printf("%s\n", e.message);
		return 1;
	}
	r = run(ctx, (pid_t)number(argv[1]), (unsigned long)number(argv[2]),
		argc > 3 ? (unsigned int)number(argv[3]) : 1);
	gpreempt_unref(ctx);
	return r;
}
