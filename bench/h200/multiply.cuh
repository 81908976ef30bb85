// SPDX-License-Identifier: MIT
// A best-effort job's work: matrix products until its file says stop, checked now and then.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels.cuh"

static inline struct job *job_map(const char *file)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED :
			   mmap(NULL, JOB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED) {
		perror(file);
		exit(1);
	}
	return (struct job *)p;
}

static inline void job_begin(struct job *job, uint64_t units)
{
	job->units = units;
	job->pid = (uint64_t)getpid();
	__sync_synchronize();
	job->ready = 1;
}

// Two kernels are always queued. seen: the job's file, as the GPU has it.
static inline void multiply(struct job *job, char *seen, int size, int check_every, bool beat,
			    cudaStream_t stream)
{
	cudaEvent_t done[2];
	struct product p;
	uint64_t i = 0;

	product_init(&p, size, stream);
	p.progress = (volatile unsigned long long *)(seen + JOB_PROGRESS);
	if (beat)
		p.beats = (volatile uint32_t *)(seen + JOB_BEATS);
	CHECK(cudaEventCreateWithFlags(&done[0], cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&done[1], cudaEventDisableTiming));
	job_begin(job, p.blocks);
	for (; !job->stop; i++) {
		product_launch(&p);
		CHECK(cudaEventRecord(done[i % 2], stream));
		if (i > 0)
			CHECK(cudaEventSynchronize(done[(i - 1) % 2]));
		job->iterations = i;
		if (i % check_every == check_every - 1) {
			job->wrong += !product_is_right(&p);
			job->checks++;
		}
	}
	product_launch(&p);
	job->wrong += !product_is_right(&p);
	job->checks++;
	job->iterations = i + 1;
}
