/* SPDX-License-Identifier: MIT */
/*
 * A client of a software GPU says whatever it likes: packets, one after the other, each led by its
 * length in two bytes. Where they begin like a request, what a header must have is put right, so
 * that what follows is reached. Its pids are ours, or those of the preset's processes.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/gpreempt-softgpu/softgpu.h"
#include "gpu/soft/wire.h"
#include "tests/fuzz/fuzz.h"

#define MAX_PACKETS 64
#define MAX_BYTES 4096u

static struct softgpu *gpu;
static sd_event *loop;
static struct sockaddr_un addr = { .sun_family = AF_UNIX };

static void end(void)
{
	softgpu_free(gpu);
	sd_event_unref(loop);
	*strrchr(addr.sun_path, '/') = '\0';
	rmdir(addr.sun_path);
}

static void begin(void)
{
	char dir[] = "/tmp/gpreempt-fuzz-XXXXXX", *why = NULL;

	PROMISE(mkdtemp(dir) && sd_event_new(&loop) >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/socket", dir);
	PROMISE(softgpu_new("mi308x,gpus=2,jobs=1,ext=victims", loop, addr.sun_path, &gpu, &why) >=
		0);
	PROMISE(atexit(end) == 0);
}

static int connect_anew(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	PROMISE(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

static void run(void)
{
	while (sd_event_run(loop, 0) > 0)
		;
}

static void put_right(union device_any *p, size_t len)
{
	struct device_call *c = (struct device_call *)p;

	if (len < sizeof(p->h) || p->h.magic & 1)
		return;
	p->h = device_header(p->h.type, len, p->h.seq);
	if (p->h.type != DEVICE_CALL || len < sizeof(*c))
		return;
	c->tid = c->tid & 1 ? c->tid : gettid();
	c->pid = c->pid & 1 ? (c->pid & 2 ? 1001 : c->pid) : getpid();
}

/* False: we were hung up on. */
static bool hear(int fd)
{
	static _Alignas(8) uint8_t answer[DEVICE_MAX_CALL_BYTES];
	ssize_t n;

	while ((n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0)
		PROMISE(device_is_return((struct device_return *)answer, (size_t)n) ||
			device_is_answer((union device_any *)answer, (size_t)n));
	return n < 0;
}

static void speak(int fd, const uint8_t *bytes, size_t len)
{
	static _Alignas(8) uint8_t packet[MAX_BYTES];

	for (int i = 0; i < MAX_PACKETS && len > 2; i++) {
		size_t n = ((size_t)bytes[0] | (size_t)bytes[1] << 8) % MAX_BYTES;

		n = n < len - 2 ? n : len - 2;
		memcpy(packet, bytes + 2, n);
		put_right((union device_any *)packet, n);
		if (send(fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return;
		run();
		if (!hear(fd))
			return;
		bytes += 2 + n;
		len -= 2 + n;
	}
}

static bool are_we_there(void)
{
	char *names = NULL, own[16];
	bool there = false;
	size_t len;

	snprintf(own, sizeof(own), "%d", getpid());
	PROMISE(model_read(softgpu_now(gpu), GKFD_TREE_SYSFS, "proc", true, &names, &len) >= 0);
	for (const char *name = names; *name; name += strlen(name) + 1)
		there |= strcmp(name, own) == 0;
	free(names);
	return there;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int fd;

	if (!gpu)
		begin();
	fd = connect_anew();
	run();
	speak(fd, bytes, len);
	close(fd);
	run();
	PROMISE(!are_we_there());
	return 0;
}
