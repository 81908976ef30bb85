// SPDX-License-Identifier: MIT
// usage: besteffort FILE [--size N] [--check-every N] [--beat] [--spin]
//
// A best-effort job: fp32 matrix products, one kernel after the other, two always queued, until the
// file (job.h) says stop. Every so many the result is compared bit for bit. --beat: also beats inside
// the kernel; --spin: instead one kernel that never ends, on every multiprocessor. Ends with JSON.
#include <stddef.h>
#include <string.h>

#include "multiply.cuh"

struct options {
	const char *file;
	int size, check_every;
	bool beat, spin;
};

static struct options parse(int argc, char **argv)
{
	struct options o = { NULL, 8192, 64, false, false };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--size") && i + 1 < argc)
			o.size = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--check-every") && i + 1 < argc)
			o.check_every = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--beat"))
			o.beat = true;
		else if (!strcmp(argv[i], "--spin"))
			o.spin = true;
		else
			o.file = argv[i];
	}
	if (!o.file || o.size <= 0 || o.size % TILE || o.check_every <= 0) {
		fprintf(stderr, "usage: besteffort FILE [--size N] [--check-every N] [--beat] "
				"[--spin]\n");
		exit(2);
	}
	return o;
}

static void spin_until_stopped(struct job *job, char *seen, cudaStream_t stream)
{
	struct cudaDeviceProp props;
	uint32_t *words, wrong = 1;
	int per_sm;

	CHECK(cudaGetDeviceProperties(&props, 0));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, spin, 1024, 0));
	CHECK(cudaMalloc(&words, 2 * sizeof(*words)));
	CHECK(cudaMemset(words, 0, 2 * sizeof(*words)));
	CHECK(cudaDeviceSynchronize());
	spin<<<props.multiProcessorCount * per_sm, 1024, 0, stream>>>(
		(volatile uint32_t *)(seen + JOB_BEATS),
		(volatile unsigned long long *)(seen + JOB_PROGRESS),
		(const volatile unsigned long long *)(seen + offsetof(struct job, stop)), words,
		words + 1);
	CHECK(cudaGetLastError());
	job_begin(job, 1);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&wrong, words + 1, sizeof(wrong), cudaMemcpyDeviceToHost));
	job->wrong = wrong;
	job->checks = 1;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct job *job = job_map(o.file);
	cudaStream_t stream;
	int lowest, highest;
	char *seen;

	CHECK(cudaHostRegister(job, JOB_BYTES, cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer((void **)&seen, job, 0));
	CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lowest));
	if (o.spin)
		spin_until_stopped(job, seen, stream);
	else
		multiply(job, seen, o.size, o.check_every, o.beat, stream);
	printf("{\"iterations\": %llu, \"checks\": %llu, \"wrong\": %llu}\n",
	       (unsigned long long)job->iterations, (unsigned long long)job->checks,
	       (unsigned long long)job->wrong);
	return 0;
}
