/* SPDX-License-Identifier: MIT */
/*
 * One look at 1,000 queues in 200 processes through the KFD backend, and the bare reads of memory
 * that it needs. The processes and their memory are real, the driver's files are made up. In each
 * second process one queue works and moves on from look to look: of those the packets are read
 * too, of the others nothing but the pointers. The two alternate; what counts is the ratio of their
 * medians.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/aql.h"
#include "abi/mqd_v9.h"
#include "bench/stopwatch.h"
#include "gpu/kfd/backend.h"
#include "util/macros.h"

#define PROCESSES 200
#define QUEUES 5 /* of each */
#define SLOTS 64 /* of each ring */
#define RING_BYTES (SLOTS * AQL_PACKET_BYTES)
#define PENDING 4
#define ROUNDS 101
#define GPU_ID 4660

struct queue { /* shared with its process, at the same address */
	uint8_t ring[RING_BYTES] __attribute__((aligned(4096)));
	uint64_t read, write;
	uint64_t signal[AQL_SIGNAL_BYTES / sizeof(uint64_t)];
};

static struct queue (*queues)[QUEUES];
static pid_t pids[PROCESSES];

static bool is_busy(size_t process, size_t queue)
{
	return process % 2 == 0 && queue == 0;
}

/* ---- the driver's files ---- */

static int made_up_open(void *data)
{
	return 0;
}

static void made_up_close(void *data)
{
}

static int made_up_ioctl(void *data, unsigned long request, void *arg)
{
	struct kfd_ioctl_get_version_args *version = arg;

	if (request != AMDKFD_IOC_GET_VERSION)
		return -ENOTTY;
	*version = (struct kfd_ioctl_get_version_args){ 1, 17 };
	return 0;
}

static void print_mqd(FILE *out, const struct queue *q)
{
	uint32_t words[MQD9_CTX_SAVE_SIZE / 8 * 8 + 8] = { 0 };
	uint64_t base = (uintptr_t)q->ring >> 8, read = (uintptr_t)&q->read;
	uint64_t write = (uintptr_t)&q->write;

	words[MQD9_PQ_CONTROL] = (uint32_t)__builtin_ctz(RING_BYTES) - 3;
	words[MQD9_RING_BASE_LO] = (uint32_t)base;
	words[MQD9_RING_BASE_LO + 1] = (uint32_t)(base >> 32);
	words[MQD9_RPTR_ADDR_LO] = (uint32_t)read;
	words[MQD9_RPTR_ADDR_LO + 1] = (uint32_t)(read >> 32);
	words[MQD9_WPTR_ADDR_LO] = (uint32_t)write;
	words[MQD9_WPTR_ADDR_LO + 1] = (uint32_t)(write >> 32);
	fprintf(out, "  Compute queue on device %x\n", GPU_ID);
	for (size_t i = 0; i < ARRAY_SIZE(words); i += 8) {
		fprintf(out, "    %08zx:", i * sizeof(*words));
		for (size_t j = i; j < i + 8; j++)
			fprintf(out, " %08x", words[j]);
		fputc('\n', out);
	}
}

static void print_mqds(FILE *out)
{
	for (size_t p = 0; p < PROCESSES; p++) {
		fprintf(out, "Process %d PASID 0x8001:\n", pids[p]);
		for (size_t q = QUEUES; q-- > 0;)
			print_mqd(out, &queues[p][q]);
	}
}

static int made_up_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			size_t *ret_len)
{
	const char *name = strrchr(path, '/');
	FILE *out;

	if (tree == GKFD_TREE_PROC)
		return -ENOENT;
	out = open_memstream(ret_text, ret_len);
	if (!out)
		return -ENOMEM;
	if (tree == GKFD_TREE_DEBUGFS)
		print_mqds(out);
	else if (strcmp(name, "/size") == 0)
		fprintf(out, "%d", RING_BYTES);
	else
		fprintf(out, "%d", strcmp(name, "/gpuid") == 0 ? GPU_ID : 0);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int made_up_list(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	static const char ids[] = "0\0001\0002\0003\0004\0", one[] = "queues\0";
	bool is_queues = strstr(path, "/queues") != NULL;

	*ret_names = malloc(sizeof(ids) + sizeof(one));
	if (!*ret_names)
		return -ENOMEM;
	memcpy(*ret_names, is_queues ? ids : one, is_queues ? sizeof(ids) : sizeof(one));
	return 0;
}

/* ---- the processes ---- */

static void fill(size_t process)
{
	for (size_t q = 0; q < QUEUES; q++) {
		struct queue *queue = &queues[process][q];
		struct aql_dispatch *packets = (void *)queue->ring;

		queue->read = 1; /* one was consumed and is done */
		queue->write = 1 + (is_busy(process, q) ? PENDING : 0);
		for (size_t i = 0; i < SLOTS; i++)
			packets[i] = (struct aql_dispatch){
				.header = AQL_KERNEL_DISPATCH,
				.completion_signal = (uintptr_t)queue->signal,
			};
	}
}

static void work(void)
{
	for (size_t p = 0; p < PROCESSES; p++) {
		if (!is_busy(p, 0))
			continue;
		queues[p][0].write++;
		queues[p][0].read++;
	}
}

static int start_processes(void)
{
	int ready[2];
	char byte;

	queues = mmap(NULL, PROCESSES * sizeof(*queues), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (queues == MAP_FAILED || pipe(ready) < 0)
		return -errno;
	for (size_t p = 0; p < PROCESSES; p++) {
		pids[p] = fork();
		if (pids[p] < 0)
			return -errno;
		if (pids[p] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			fill(p);
			if (write(ready[1], ".", 1) == 1)
				pause();
			_exit(0);
		}
		if (read(ready[0], &byte, 1) != 1)
			return -EIO;
	}
	close(ready[0]);
	close(ready[1]);
	return 0;
}

static void end_processes(void)
{
	for (size_t p = 0; p < PROCESSES && pids[p] > 0; p++) {
		kill(pids[p], SIGKILL);
		waitpid(pids[p], NULL, 0);
	}
}

/* ---- the two ways ---- */

static struct gpu_watch *watches[PROCESSES];

static int look_at_all(struct gpu_backend *b, size_t processes)
{
	const struct gpu_sample *samples;
	struct pollfd more = { .fd = b->ops->fd(b), .events = POLLIN };
	struct gpu_done done;

	b->ops->look(b, watches, processes);
	for (size_t p = 0; p < processes; p++) {
		int n;

		while ((n = b->ops->looked(watches[p], &samples)) == -EAGAIN) {
			poll(&more, 1, -1); /* no processor for the reader */
			b->ops->take(b, &done);
		}
		if (n != QUEUES)
			return -EIO;
		for (size_t q = 0; q < QUEUES; q++)
			if (samples[q].state != (is_busy(p, q) ? GPU_BUSY : GPU_IDLE))
				return -EBADMSG;
	}
	return 0;
}

static int read_bare(size_t process, const struct iovec *remote, size_t n)
{
	static uint8_t into[RING_BYTES];
	struct iovec local = { into, 0 };

	for (size_t i = 0; i < n; i++)
		local.iov_len += remote[i].iov_len;
	return process_vm_readv(pids[process], &local, 1, remote, n, 0) < 0 ? -errno : 0;
}

static int read_packets_bare(size_t process)
{
	struct queue *q = &queues[process][0];
	uint8_t *packets = q->ring + q->read % SLOTS * AQL_PACKET_BYTES;
	uint8_t *last = q->ring + (q->read - 1) % SLOTS * AQL_PACKET_BYTES;
	size_t n = MIN(PENDING, SLOTS - q->read % SLOTS);
	struct iovec remote[] = {
		{ packets, n * AQL_PACKET_BYTES },
		{ q->ring, (PENDING - n) * AQL_PACKET_BYTES },
		{ last + offsetof(struct aql_dispatch, completion_signal), sizeof(uint64_t) },
	};

	return read_bare(process, remote, ARRAY_SIZE(remote));
}

static int read_all_bare(void)
{
	int r = 0;

	for (size_t p = 0; p < PROCESSES && r >= 0; p++) {
		struct iovec pointers[QUEUES];

		for (size_t q = 0; q < QUEUES; q++)
			pointers[q] = (struct iovec){ &queues[p][q].read, 2 * sizeof(uint64_t) };
		r = read_bare(p, pointers, ARRAY_SIZE(pointers));
		if (r >= 0 && is_busy(p, 0))
			r = read_packets_bare(p);
	}
	return r;
}

static int measure(struct gpu_backend *b)
{
	static uint64_t pass_ns[ROUNDS], bare_ns[ROUNDS], tenth_ns[ROUNDS];
	int r = look_at_all(b, PROCESSES);

	for (size_t i = 0; i < ROUNDS && r >= 0; i++) {
		uint64_t began, looked, bare;

		work();
		began = stopwatch_ns();
		r = look_at_all(b, PROCESSES);
		looked = stopwatch_ns();
		r = r < 0 ? r : read_all_bare();
		bare = stopwatch_ns();
		pass_ns[i] = looked - began;
		bare_ns[i] = bare - looked;
		work();
		began = stopwatch_ns();
		r = r < 0 ? r : look_at_all(b, PROCESSES / 10);
		tenth_ns[i] = stopwatch_ns() - began;
	}
	if (r < 0)
		return r;
	printf("{\"rounds\": %d, \"processes\": %d, \"queues\": %d, \"pass_ns\": %llu, "
	       "\"bare_ns\": %llu, \"tenth_ns\": %llu}\n",
	       ROUNDS, PROCESSES, PROCESSES * QUEUES,
	       (unsigned long long)median_ns(pass_ns, ROUNDS),
	       (unsigned long long)median_ns(bare_ns, ROUNDS),
	       (unsigned long long)median_ns(tenth_ns, ROUNDS));
	return 0;
}

static int run(struct gpu_backend *b)
{
	int r = 0;

	for (size_t p = 0; p < PROCESSES && r >= 0; p++)
		r = b->ops->watch(b, pids[p], &watches[p]);
	return r < 0 ? r : measure(b);
}

int main(void)
{
	struct gkfd_transport table = gkfd_transport_syscall;
	struct gpu_backend *b;
	struct gkfd *k;
	int r;

	table.open = made_up_open;
	table.close = made_up_close;
	table.ioctl = made_up_ioctl;
	table.ext = NULL;
	table.read_file = made_up_file;
	table.list_dir = made_up_list;
	go_before_others();
	r = start_processes();
	if (r >= 0)
		r = gkfd_new(&table, &table, &k); /* the data is not looked at */
	if (r >= 0)
		r = gkfd_backend_open(k, &(struct gkfd_backend_options){ .by_readers = true }, &b);
	if (r >= 0) {
		r = run(b);
		b->ops->close(b);
	}
	end_processes();
	if (r < 0)
		fprintf(stderr, "observe: %s\n", strerror(-r));
	return r < 0;
}
