// SPDX-License-Identifier: MIT
// Kernels of the workloads: an fp32 matrix product, and one that never ends.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "job.h"

#define CHECK(call)                                                                     \
	do {                                                                            \
		cudaError_t error_ = (call);                                            \
		if (error_ != cudaSuccess) {                                            \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,   \
				cudaGetErrorString(error_));                            \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

#define TILE 128
#define DEPTH 8
#define EACH 8 // results of a thread, in both directions
#define THREADS 256
#define PROGRESS_BLOCKS 64 // one in so many tells how far it is

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

// c = a * b, all n by n, n a multiple of TILE; a block makes a tile. Some blocks tell in host memory
// which they are, counted from first, and four multiprocessors beat there. Either may be NULL.
__global__ void __launch_bounds__(THREADS)
matmul(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
       volatile unsigned long long *progress, unsigned long long first, volatile uint32_t *beats)
{
	__shared__ __align__(16) float sa[DEPTH][TILE + 4];
	__shared__ __align__(16) float sb[DEPTH][TILE];
	const int tid = threadIdx.x;
	const int row = tid / (TILE / EACH) * EACH, column = tid % (TILE / EACH) * EACH;
	const int a_row = tid / 2, a_k = tid % 2 * 4;
	const int b_k = tid / 32, b_column = tid % 32 * 4;
	float sum[EACH][EACH] = {};
	uint32_t sm;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	a += (size_t)blockIdx.y * TILE * n;
	b += (size_t)blockIdx.x * TILE;
	for (int k = 0; k < n; k += DEPTH) {
		const float4 fa = *(const float4 *)&a[(size_t)a_row * n + k + a_k];
		const float4 fb = *(const float4 *)&b[(size_t)(k + b_k) * n + b_column];

		__syncthreads();
		sa[a_k][a_row] = fa.x;
		sa[a_k + 1][a_row] = fa.y;
		sa[a_k + 2][a_row] = fa.z;
		sa[a_k + 3][a_row] = fa.w;
		*(float4 *)&sb[b_k][b_column] = fb;
		__syncthreads();
		if (beats && tid == 0 && sm < JOB_N_BEATS && k % 32 == 0)
			beats[sm * JOB_BEAT_STRIDE] = (uint32_t)clock64();
#pragma unroll
		for (int q = 0; q < DEPTH; q++) {
			float x[EACH], y[EACH];

#pragma unroll
			for (int i = 0; i < EACH; i++) {
				x[i] = sa[q][row + i];
				y[i] = sb[q][column + i];
			}
#pragma unroll
			for (int i = 0; i < EACH; i++)
#pragma unroll
				for (int j = 0; j < EACH; j++)
					sum[i][j] += x[i] * y[j];
		}
	}
	c += ((size_t)blockIdx.y * TILE + row) * n + (size_t)blockIdx.x * TILE + column;
#pragma unroll
	for (int i = 0; i < EACH; i++)
#pragma unroll
		for (int j = 0; j < EACH; j++)
			c[(size_t)i * n + j] = sum[i][j];
	const unsigned int block = blockIdx.y * gridDim.x + blockIdx.x;
	if (progress && tid == 0 && block % PROGRESS_BLOCKS == PROGRESS_BLOCKS - 1)
		*progress = first + block;
}

// Runs until told to stop, on whatever it fills. Four blocks beat in host memory; one reads there
// whether to stop, the others hear of it in the GPU's: many that did would slow the firmware that is
// to preempt them. What is counted in registers and in shared memory must be the same at the end.
__global__ void __launch_bounds__(1024)
spin(volatile uint32_t *beats, volatile unsigned long long *progress,
     const volatile unsigned long long *stop, volatile uint32_t *told, uint32_t *wrong)
{
	__shared__ uint32_t counted[1024];
	__shared__ volatile int over;
	const unsigned int every = gridDim.x / JOB_N_BEATS;
	float heat = threadIdx.x;
	uint32_t rounds = 0;
	int ends = 0;

	counted[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		over = 0;
	__syncthreads();
	while (!ends) {
		for (int i = 0; i < 256; i++)
			heat = heat * 1.0001f + 0.5f;
		rounds++;
		counted[threadIdx.x]++;
		if (threadIdx.x == 0) {
			if (blockIdx.x % every == 0 && blockIdx.x / every < JOB_N_BEATS)
				beats[blockIdx.x / every * JOB_BEAT_STRIDE] = rounds;
			if (blockIdx.x == 0) {
				*progress = rounds;
				if (*stop)
					*told = 1;
			}
			over = *told != 0;
		}
		__syncthreads();
		ends = over;
		__syncthreads();
	}
	if (counted[threadIdx.x] != rounds || heat == 12345.678f)
		atomicAdd(wrong, 1u);
}

// Fractions in -0.5 .. 0.5, the same for the same seed.
__global__ void fill(float *to, size_t n, uint32_t seed)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step) {
		uint32_t x = (uint32_t)i + seed * 0x9e3779b9u;

		x = (x ^ (x >> 16)) * 0x7feb352du;
		x = (x ^ (x >> 15)) * 0x846ca68bu;
		x ^= x >> 16;
		to[i] = (float)(x >> 8) * (1.0f / 16777216.0f) - 0.5f;
	}
}

__global__ void count_different(const uint32_t *a, const uint32_t *b, size_t n, uint32_t *ret)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step)
		if (a[i] != b[i])
			atomicAdd(ret, 1u);
}

// A matrix product that is done over and over, and what comes of it when nobody disturbs it.
struct product {
	int n;
	unsigned int blocks; // in all
	float *a, *b, *c, *expected;
	uint32_t *different;
	volatile unsigned long long *progress;
	volatile uint32_t *beats;
	unsigned long long launches;
	cudaStream_t stream;
};

static inline void product_launch(struct product *p)
{
	const dim3 grid(p->n / TILE, p->n / TILE);

	matmul<<<grid, THREADS, 0, p->stream>>>(p->n, p->a, p->b, p->c, p->progress,
						p->launches++ * p->blocks, p->beats);
	CHECK(cudaGetLastError());
}

// Is the result as expected, bit for bit? It is spoilt then, so that the next one is looked at.
static inline bool product_is_right(struct product *p)
{
	const size_t n = (size_t)p->n * p->n;
	uint32_t different = 1;

	CHECK(cudaMemsetAsync(p->different, 0, sizeof(different), p->stream));
	count_different<<<1024, THREADS, 0, p->stream>>>((const uint32_t *)p->c,
							 (const uint32_t *)p->expected, n,
							 p->different);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(&different, p->different, sizeof(different), cudaMemcpyDeviceToHost,
			      p->stream));
	CHECK(cudaMemsetAsync(p->c, 0xff, n * sizeof(float), p->stream));
	CHECK(cudaStreamSynchronize(p->stream));
	return different == 0;
}

// The first operand anew, the same.
static inline void product_prepare(struct product *p)
{
	fill<<<1024, THREADS, 0, p->stream>>>(p->a, (size_t)p->n * p->n, 1);
	CHECK(cudaGetLastError());
}

// What is expected is made by the kernel itself, twice, and must be the same; at this time nobody is
// suspended. progress and beats are set afterwards by who wants them.
static inline void product_init(struct product *p, int n, cudaStream_t stream)
{
	const size_t bytes = (size_t)n * n * sizeof(float);

	*p = {};
	p->n = n;
	p->blocks = (n / TILE) * (n / TILE);
	p->stream = stream;
	CHECK(cudaMalloc(&p->a, bytes));
	CHECK(cudaMalloc(&p->b, bytes));
	CHECK(cudaMalloc(&p->c, bytes));
	CHECK(cudaMalloc(&p->expected, bytes));
	CHECK(cudaMalloc(&p->different, sizeof(*p->different)));
	product_prepare(p);
	fill<<<1024, THREADS, 0, stream>>>(p->b, bytes / sizeof(float), 2);
	product_launch(p);
	CHECK(cudaMemcpyAsync(p->expected, p->c, bytes, cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemsetAsync(p->c, 0xff, bytes, stream));
	product_launch(p);
	if (!product_is_right(p)) {
		fprintf(stderr, "the matrix product is not the same twice\n");
		exit(1);
	}
	p->launches = 0;
}
