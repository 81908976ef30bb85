/* SPDX-License-Identifier: MIT */
/*
 * usage: silentfs FOLDER
 *
 * Mounts a file system of its own on FOLDER and serves it, as any user may with FUSE:
 *
 *     page       a file of zeros, to be mapped      program    may be executed; is no program
 *     dev/node   a file whose path has "/dev/"
 *
 * It does what a line of its standard input says:
 *
 *     silent read          reads are not answered any more
 *     silent attributes    questions for attributes are not
 *     speak                all are again, those that wait too
 *
 * and says "mounted", each command when it was done, and "waits" of each question that it does not
 * answer. Whoever asked it sleeps until then and cannot be killed. At the end
 * of its input it answers all and ends; where it is killed the kernel answers them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_FILE_BYTES (1u << 20)
#define REQUEST_BYTES (FUSE_MIN_READ_BUFFER * 2)
#define MAX_WAITING 256
#define FOREVER_S 3600

enum node { ROOT = FUSE_ROOT_ID, PAGE, PROGRAM, DEV, NODE, NODES };

static const struct {
	const char *name;
	enum node parent;
	mode_t mode;
	uint64_t size;
} nodes[NODES] = {
	[ROOT] = { "", 0, S_IFDIR | 0755, 0 },
	[PAGE] = { "page", ROOT, S_IFREG | 0666, PAGE_FILE_BYTES },
	[PROGRAM] = { "program", ROOT, S_IFREG | 0755, 4096 },
	[DEV] = { "dev", ROOT, S_IFDIR | 0755, 0 },
	[NODE] = { "node", DEV, S_IFREG | 0666, 4096 },
};

struct request {
	struct fuse_in_header head;
	char body[REQUEST_BYTES - sizeof(struct fuse_in_header)];
};

struct server {
	int fd; /* of the kernel's questions */
	uint32_t silent; /* of this opcode; 0: of none */
	struct request waiting[MAX_WAITING];
	unsigned int n_waiting;
};

_Noreturn static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

/* Who asked may be gone: then nobody wants the answer. */
static void answer(const struct server *s, const struct request *q, int error, const void *data,
		   size_t len)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + len),
		.error = error,
		.unique = q->head.unique,
	};
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)data, len } };

	if (writev(s->fd, parts, 2) < 0 && errno != ENOENT)
		die("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = nodes[node].mode,
		.nlink = 1,
		.size = nodes[node].size,
		.blksize = 4096,
	};
}

/* Of a limit of 0 for reading ahead follows that whoever faults a page in waits for it himself. */
static void init(const struct server *s, const struct request *q)
{
	const struct fuse_init_in *in = (const void *)q->body;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = in->minor < FUSE_KERNEL_MINOR_VERSION ? in->minor :
								 FUSE_KERNEL_MINOR_VERSION,
		.max_write = 4096,
	};

	answer(s, q, 0, &out, sizeof(out));
}

/* Names are known for long, attributes never: they are asked for each time. */
static void look_up(const struct server *s, const struct request *q)
{
	struct fuse_entry_out out = { .entry_valid = FOREVER_S };

	for (enum node n = PAGE; n < NODES; n++) {
		if (nodes[n].parent != q->head.nodeid || strcmp(nodes[n].name, q->body))
			continue;
		out.nodeid = n;
		out.attr = attributes(n);
		answer(s, q, 0, &out, sizeof(out));
		return;
	}
	answer(s, q, -ENOENT, NULL, 0);
}

static void get_attributes(const struct server *s, const struct request *q)
{
	struct fuse_attr_out out = { .attr = attributes(q->head.nodeid) };

	answer(s, q, 0, &out, sizeof(out));
}

static void read_zeros(const struct server *s, const struct request *q)
{
	static char zeros[PAGE_FILE_BYTES];
	const struct fuse_read_in *in = (const void *)q->body;
	uint64_t size = nodes[q->head.nodeid].size,
		 left = in->offset < size ? size - in->offset : 0;

	answer(s, q, 0, zeros, in->size < left ? in->size : left);
}

static void serve(const struct server *s, const struct request *q)
{
	static const struct fuse_open_out opened;
	static const struct fuse_statfs_out size;

	switch (q->head.opcode) {
	case FUSE_INIT:
		init(s, q);
		break;
	case FUSE_LOOKUP:
		look_up(s, q);
		break;
	case FUSE_GETATTR:
		get_attributes(s, q);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(s, q, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_zeros(s, q);
		break;
	case FUSE_STATFS:
		answer(s, q, 0, &size, sizeof(size));
		break;
	case FUSE_READDIR: /* names are to be known */
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(s, q, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* they may wait */
		break;
	default:
		answer(s, q, -ENOSYS, NULL, 0);
	}
}

static bool keep_waiting(struct server *s, const struct request *q)
{
	if (q->head.opcode != s->silent)
		return false;
	if (s->n_waiting == MAX_WAITING) {
		errno = ENOSPC;
		die("too many wait");
	}
	s->waiting[s->n_waiting++] = *q;
	say("waits");
	return true;
}

static void take_question(struct server *s)
{
	struct request q;

	if (read(s->fd, &q, sizeof(q)) < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ENOENT)
			return;
		die("question");
	}
	if (!keep_waiting(s, &q))
		serve(s, &q);
}

static void speak(struct server *s)
{
	s->silent = 0;
	for (unsigned int i = 0; i < s->n_waiting; i++)
		serve(s, &s->waiting[i]);
	s->n_waiting = 0;
}

/* False at the end of the input. */
static bool take_command(struct server *s)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "silent read"))
		s->silent = FUSE_READ;
	else if (!strcmp(line, "silent attributes"))
		s->silent = FUSE_GETATTR;
	else if (!strcmp(line, "speak"))
		speak(s);
	say(line);
	return true;
}

static int mount_on(const char *folder)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	char options[128];

	if (fd < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other",
		 fd);
	if (mount("silentfs", folder, "fuse.silentfs", MS_NOSUID | MS_NODEV, options) < 0)
		die(folder);
	return fd;
}

int main(int argc, char **argv)
{
	static struct server s;
	bool more = true;

	if (argc != 2) {
		fprintf(stderr, "usage: silentfs FOLDER\n");
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* what is left in a buffer nobody would poll for */
	s.fd = mount_on(argv[1]);
	say("mounted");
	while (more) {
		struct pollfd ends[] = { { .fd = s.fd, .events = POLLIN },
					 { .fd = STDIN_FILENO, .events = POLLIN } };

		if (poll(ends, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (ends[0].revents)
			take_question(&s);
		if (ends[1].revents)
			more = take_command(&s);
	}
	speak(&s);
	umount2(argv[1], MNT_DETACH);
	return 0;
}
