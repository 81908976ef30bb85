/* SPDX-License-Identifier: MIT */
#include "cmd/wire/device_client.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/macros.h"

static int send_packet(int fd, const void *packet, size_t len)
{
	ssize_t r;

	do {
		r = send(fd, packet, len, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return 0;
}

/* *ret_file: what came along, or -1. */
static int receive(int fd, union device_any *ret, int *ret_file)
{
	union device_any packet;
	struct iovec part = { &packet, sizeof(packet) };
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ret_file ? &control : NULL,
		.msg_controllen = ret_file ? sizeof(control) : 0,
	};
	ssize_t len;

	do {
		len = recvmsg(fd, &m, MSG_TRUNC | MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (ret_file && len >= 0 && m.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(ret_file, CMSG_DATA(&control.h), sizeof(int));
	if (len < 0)
		return -errno;
	if (len == 0)
		return -ECONNRESET;
	if ((size_t)len > sizeof(packet) || !device_is_answer(&packet, (size_t)len))
		return -EBADMSG;
	*ret = packet;
	return 0;
}

int device_receive(int fd, union device_any *ret)
{
	return receive(fd, ret, NULL);
}

/* Sends a request whose answer is the next packet, and takes that. */
static int ask(int fd, const void *request, size_t len, enum device_type type,
	       union device_any *ret, int *ret_file)
{
	int r = send_packet(fd, request, len);

	if (r < 0)
		return r;
	r = receive(fd, ret, ret_file);
	if (r < 0)
		return r;
	if (ret->h.type == DEVICE_ERROR)
		return -ret->error.error;
	return ret->h.type == type ? 0 : -EBADMSG;
}

/* They are this process's alone, as its place on the device is. */
static bool pages_mapped; /* maybe those of an earlier connection */
static uint64_t *write_ptrs[DEVICE_MAX_PROCESS_REQUESTS]; /* of queues, in those */

/* Where they cannot be mapped, the device is asked what they would show. */
static void map_pages(int file)
{
	int how = MAP_SHARED | (pages_mapped ? MAP_FIXED : MAP_FIXED_NOREPLACE);
	void *at = (void *)(uintptr_t)DEVICE_PAGES_VA;

	memset(write_ptrs, 0, sizeof(write_ptrs));
	if (file < 0 ||
	    mmap(at, DEVICE_PAGES_BYTES, PROT_READ | PROT_WRITE, how, file, 0) != at)
		return;
	madvise(at, DEVICE_PAGES_BYTES, MADV_DONTFORK);
	pages_mapped = true;
}

static bool is_own_page(uint64_t va)
{
	return va >= DEVICE_PAGES_VA && va < DEVICE_PAGES_VA + DEVICE_PAGES_BYTES &&
	       va % sizeof(uint64_t) == 0;
}

int device_connect(const char *path, int *ret_fd, struct device_welcome *ret)
{
	struct device_header hello = device_header(DEVICE_HELLO, sizeof(hello), 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1, file = -1;
	union device_any answer;
	int r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	r = ask(fd, &hello, sizeof(hello), DEVICE_HELLO, &answer, &file);
	if (r < 0)
		return r;
	map_pages(file);
	*ret = answer.welcome;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int device_create_queue(int fd, uint32_t gpu, uint32_t priority, uint32_t *ret_queue)
{
	struct device_queue request = {
		.h = device_header(DEVICE_QUEUE, sizeof(request), 0),
		.gpu = gpu,
		.priority = priority,
	};
	union device_any answer;
	int r = ask(fd, &request, sizeof(request), DEVICE_QUEUE, &answer, NULL);

	if (r < 0)
		return r;
	*ret_queue = answer.queue.queue;
	if (pages_mapped && *ret_queue < ARRAY_SIZE(write_ptrs) &&
	    is_own_page(answer.queue.write_ptr))
		write_ptrs[*ret_queue] = (void *)(uintptr_t)answer.queue.write_ptr;
	return 0;
}

int device_submit(int fd, uint32_t seq, const struct device_submit *work)
{
	struct device_submit request = *work;
	uint64_t *write_ptr = work->queue < ARRAY_SIZE(write_ptrs) ? write_ptrs[work->queue] : NULL;

	if (write_ptr)
		__atomic_fetch_add(write_ptr, 1, __ATOMIC_RELEASE);
	request.h = device_header(DEVICE_SUBMIT, sizeof(request), seq);
	return send_packet(fd, &request, sizeof(request));
}
