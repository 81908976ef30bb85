/* SPDX-License-Identifier: MIT */
/*
 * usage: packetjudge GPU ONLINE-PASID BOUND-MS [LONG] <REQUESTS
 *
 * Holds the software GPU's log (log_packets must be on) against what mkonline says of its requests:
 * between a request's doorbell plus the bound and its completion, as the GPU has it, no packet of
 * another process may start. Requests the log no longer reaches back to are passed over. Prints
 *
 *     judged N long N intruders N late_us N p50_us N max_us N
 *
 * long: those that took longer than the bound, in which somebody could intrude; late: the longest
 * after its doorbell that a packet of somebody else still started; p50 and max: how long requests
 * took. Exit status 0 when something was judged, LONG were long (0) and nobody intruded.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS 32768
#define MAX_REQUESTS 4096

struct event {
	uint64_t us;
	uint32_t pasid;
	char what; /* 's'tart or 'd'one */
};

struct request {
	uint64_t began_us, seen_done_us;
};

static struct event events[MAX_EVENTS];
static struct request requests[MAX_REQUESTS];
static uint64_t took[MAX_REQUESTS];
static size_t n_events, n_requests;

static void read_log(const char *gpu)
{
	unsigned long long s, us;
	unsigned int pasid;
	char path[64], line[256], what[32];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kfdsim/%s/log", gpu);
	f = fopen(path, "re");
	if (!f) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof(line), f) && n_events < MAX_EVENTS) {
		if (sscanf(line, "%llu.%llu %31s pasid %x", &s, &us, what, &pasid) != 4)
			continue;
		if (strcmp(what, "start") == 0 || strcmp(what, "done") == 0)
			events[n_events++] = (struct event){ s * 1000000 + us, pasid, what[0] };
	}
	fclose(f);
}

static void read_requests(void)
{
	unsigned long long began, done;
	char line[256];

	while (fgets(line, sizeof(line), stdin) && n_requests < MAX_REQUESTS) {
		if (sscanf(line, "request %llu %llu", &began, &done) == 2)
			requests[n_requests++] = (struct request){ began / 1000, done / 1000 };
	}
}

/* By the GPU's own account, which is earlier than when the program noticed. */
static uint64_t done_us(const struct request *r, uint32_t online)
{
	uint64_t last = 0;

	for (size_t i = 0; i < n_events; i++) {
		if (events[i].pasid == online && events[i].what == 'd' &&
		    events[i].us >= r->began_us && events[i].us <= r->seen_done_us)
			last = events[i].us;
	}
	return last;
}

struct tally {
	unsigned long judged, is_long, intruders;
	uint64_t late_us;
};

static void judge(const struct request *r, uint32_t online, uint64_t bound_us, struct tally *t)
{
	uint64_t until = done_us(r, online);

	if (!n_events || r->began_us < events[0].us || !until)
		return;
	took[t->judged++] = until - r->began_us;
	t->is_long += until - r->began_us > bound_us;
	for (size_t i = 0; i < n_events; i++) {
		const struct event *e = &events[i];

		if (e->what != 's' || e->pasid == online || e->us < r->began_us || e->us >= until)
			continue;
		if (e->us - r->began_us > t->late_us)
			t->late_us = e->us - r->began_us;
		t->intruders += e->us > r->began_us + bound_us;
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct tally t = { 0 };

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: packetjudge GPU ONLINE-PASID BOUND-MS [LONG] <REQUESTS\n");
		return 2;
	}
	read_log(argv[1]);
	read_requests();
	for (size_t i = 0; i < n_requests; i++)
		judge(&requests[i], (uint32_t)strtoul(argv[2], NULL, 0),
		      strtoull(argv[3], NULL, 0) * 1000, &t);
	qsort(took, t.judged, sizeof(took[0]), by_size);
	printf("judged %lu long %lu intruders %lu late_us %llu p50_us %llu max_us %llu\n", t.judged,
	       t.is_long, t.intruders, (unsigned long long)t.late_us,
	       (unsigned long long)took[t.judged / 2],
	       (unsigned long long)(t.judged ? took[t.judged - 1] : 0));
	return !t.judged || t.is_long < (argc > 4 ? strtoul(argv[4], NULL, 0) : 0) || t.intruders;
}
