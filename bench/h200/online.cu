// SPDX-License-Identifier: MIT
// usage: online [--kernels N] [--every-us N] [--seconds N] [--watch FILE]... [--same FILE]
//               [--library FILE --socket PATH --ahead-us N --for-us N] [--prepare-us N]
//               [--idle]
//
// An online job: a request of fp32 1024^3 matrix products on a stream of high priority, every so
// often. Says "ready", waits for a line, makes requests, and ends with JSON: how long each took from
// its launch until it was synchronised, how late it was launched, and what the best-effort jobs of
// the files (job.h) did meanwhile. --same: one of them runs in this process, on a stream of low
// priority. --library: each request is announced to gpreemptd so long before, for so long.
// --prepare-us: its input is made on the GPU so long before, by one small kernel, which brings the
// context back. --idle: has a context and does nothing until its input ends.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "multiply.cuh"

#define SIZE 1024
#define MAX_WATCHED 16
#define MAX_REQUESTS 100000
#define WARM_S 0.5 // requests that do not count: clocks go up

struct options {
	int kernels;
	uint64_t every_ns, ahead_ns, for_ns, prepare_ns;
	double seconds;
	const char *library, *socket, *same;
	const char *watched[MAX_WATCHED];
	int n_watched;
	bool idle;
};

// Of libgpreempt, what is used: gpreempt/daemon.h.
struct announcer {
	void *daemon;
	int (*hint)(void *daemon, int pid, uint64_t ahead_ns, uint64_t for_ns);
	uint64_t failed;
};

struct before {
	uint64_t progress, iterations;
};

static void usage(void)
{
	fprintf(stderr, "online: see the head of online.cu\n");
	exit(2);
}

static double number(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || value < 0)
		usage();
	return value;
}

static void take(struct options *o, const char *name, const char *value)
{
	if (!strcmp(name, "--kernels"))
		o->kernels = (int)number(value);
	else if (!strcmp(name, "--every-us"))
		o->every_ns = (uint64_t)(number(value) * 1e3);
	else if (!strcmp(name, "--seconds"))
		o->seconds = number(value);
	else if (!strcmp(name, "--ahead-us"))
		o->ahead_ns = (uint64_t)(number(value) * 1e3);
	else if (!strcmp(name, "--for-us"))
		o->for_ns = (uint64_t)(number(value) * 1e3);
	else if (!strcmp(name, "--prepare-us"))
		o->prepare_ns = (uint64_t)(number(value) * 1e3);
	else if (!strcmp(name, "--library"))
		o->library = value;
	else if (!strcmp(name, "--socket"))
		o->socket = value;
	else if (!strcmp(name, "--same"))
		o->same = value;
	else if (!strcmp(name, "--watch") && o->n_watched < MAX_WATCHED)
		o->watched[o->n_watched++] = value;
	else
		usage();
}

static struct options parse(int argc, char **argv)
{
	struct options o = {};

	o.kernels = 6;
	o.every_ns = 10000000;
	o.seconds = 5;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--idle")) {
			o.idle = true;
		} else if (i + 1 < argc) {
			take(&o, argv[i], argv[i + 1]);
			i++;
		} else {
			usage();
		}
	}
	return o;
}

static void open_announcer(struct announcer *a, const struct options *o)
{
	void *library = dlopen(o->library, RTLD_NOW | RTLD_LOCAL);
	int (*open_daemon)(const char *path, void **ret, void *ret_error);
	int r;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&open_daemon = dlsym(library, "gpreempt_daemon_open");
	*(void **)&a->hint = dlsym(library, "gpreempt_daemon_hint");
	r = open_daemon && a->hint ? open_daemon(o->socket, &a->daemon, NULL) : -1;
	if (r < 0) {
		fprintf(stderr, "no daemon to announce to: %d\n", r);
		exit(1);
	}
}

// The last processor is this thread's own: rig.py keeps the others off it.
static void take_processor(void)
{
	cpu_set_t last;

	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	pthread_setaffinity_np(pthread_self(), sizeof(last), &last);
}

// A processor of a virtual machine that sleeps may be woken milliseconds late: this one does not.
static void wait_until(uint64_t when_ns)
{
	while (now_ns() < when_ns)
		;
}

static volatile uint64_t *progress_of(struct job *job)
{
	return (volatile uint64_t *)((char *)job + JOB_PROGRESS);
}

static void *run_same(void *arg)
{
	struct job *job = (struct job *)arg;
	cudaStream_t stream;
	int lowest, highest;
	char *seen;

	CHECK(cudaHostRegister(job, JOB_BYTES, cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer((void **)&seen, job, 0));
	CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lowest));
	multiply(job, seen, 8192, 64, false, stream);
	return NULL;
}

// Returns how many requests there were.
static size_t serve(const struct options *o, struct announcer *a, struct product *p,
		    uint64_t *took_ns, uint64_t *late_ns)
{
	const uint64_t began = now_ns(), end = began + (uint64_t)(o->seconds * 1e9);
	uint64_t due = began + o->every_ns;
	size_t n = 0;

	while (due < end && n < MAX_REQUESTS) {
		uint64_t launched, now;

		if (a->daemon) {
			wait_until(due - o->ahead_ns);
			a->failed += a->hint(a->daemon, 0, o->ahead_ns, o->for_ns) < 0;
		}
		if (o->prepare_ns) {
			wait_until(due - o->prepare_ns);
			product_prepare(p);
		}
		wait_until(due);
		launched = now_ns();
		for (int i = 0; i < o->kernels; i++)
			product_launch(p);
		CHECK(cudaStreamSynchronize(p->stream));
		now = now_ns();
		late_ns[n] = launched - due;
		took_ns[n++] = now - launched;
		due += o->every_ns;
		if (due < now + o->ahead_ns) // it fell behind
			due = now + o->ahead_ns + 1000000;
	}
	return n;
}

static void print_list(const char *name, const uint64_t *ns, size_t n)
{
	printf("\"%s\": [", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%.1f", i ? ", " : "", (double)ns[i] / 1e3);
	printf("], ");
}

static void print_watched(struct job *const *jobs, const struct before *before, int n)
{
	printf("\"jobs\": [");
	for (int i = 0; i < n; i++)
		printf("%s{\"pid\": %llu, \"units\": %lld, \"iterations\": %lld, "
		       "\"units_per_iteration\": %llu, \"checks\": %llu, \"wrong\": %llu}",
		       i ? ", " : "", (unsigned long long)jobs[i]->pid,
		       (long long)(*progress_of(jobs[i]) - before[i].progress),
		       (long long)(jobs[i]->iterations - before[i].iterations),
		       (unsigned long long)jobs[i]->units, (unsigned long long)jobs[i]->checks,
		       (unsigned long long)jobs[i]->wrong);
	printf("], ");
}

static void measure(const struct options *o, struct announcer *a, struct product *p,
		    struct job *const *jobs, int n_jobs)
{
	uint64_t *took = (uint64_t *)calloc(MAX_REQUESTS, sizeof(*took));
	uint64_t *late = (uint64_t *)calloc(MAX_REQUESTS, sizeof(*late));
	struct before before[MAX_WATCHED + 1];
	struct options warm = *o;
	uint64_t began, ns;
	size_t n;

	take_processor();
	warm.seconds = WARM_S;
	serve(&warm, a, p, took, late);
	for (int i = 0; i < n_jobs; i++) {
		before[i].progress = *progress_of(jobs[i]);
		before[i].iterations = jobs[i]->iterations;
	}
	began = now_ns();
	n = serve(o, a, p, took, late);
	ns = now_ns() - began;
	printf("{");
	print_watched(jobs, before, n_jobs); // first: they go on
	print_list("request_us", took, n);
	print_list("late_us", late, n);
	printf("\"seconds\": %.6f, \"kernels\": %d, \"hints_failed\": %llu, \"right\": %s}\n",
	       (double)ns / 1e9, o->kernels, (unsigned long long)a->failed,
	       product_is_right(p) ? "true" : "false");
	free(took);
	free(late);
}

static void wait_for_line(void)
{
	int c;

	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct job *jobs[MAX_WATCHED + 1];
	struct announcer announcer = {};
	int lowest, highest, n = 0;
	cudaStream_t stream;
	struct product p;
	pthread_t same;

	CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
	product_init(&p, SIZE, stream);
	for (; n < o.n_watched; n++)
		jobs[n] = job_map(o.watched[n]);
	if (o.same) {
		jobs[n] = job_map(o.same);
		pthread_create(&same, NULL, run_same, jobs[n]);
		while (!jobs[n]->ready)
			wait_until(now_ns() + 1000000);
		n++;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_for_line();
	if (o.idle)
		return 0;
	if (o.library)
		open_announcer(&announcer, &o);
	measure(&o, &announcer, &p, jobs, n);
	fflush(stdout);
	if (o.same) {
		jobs[n - 1]->stop = 1;
		pthread_join(same, NULL);
	}
	return 0;
}
