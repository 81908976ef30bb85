/* SPDX-License-Identifier: MIT */
/*
 * usage: mkhostile ATTACK FOLDER
 *
 * A job that means harm: it has whoever looks at it, or asks the driver about it, wait for a file
 * system that does not answer (silentfs on FOLDER). It needs no rights. ATTACK is
 *
 *     signal       the completion signal of a packet is on a page of that file system
 *     pointer      the read and write pointers of a queue are
 *     save         the area where the driver saves a queue is
 *     descriptor   one of its descriptors is of a file with "/dev/" in its path
 *     memory       it keeps its address space locked: its command line cannot be read
 *     wave         it keeps its lock in the driver, with GET_QUEUE_WAVE_STATE
 *     snapshot     the same, with a snapshot of its own queues
 *     exec         it executes a file that cannot be read, and cannot be traced meanwhile
 *
 * Says "ready PID", does what a line of its standard input says, and says the line when it has
 * done so:
 *
 *     idle     makes its queues         work     the same, and keeps one busy from then on
 *     go       begins the attack        stop     lets what is submitted finish, checks it, ends
 *
 * and at its end "done PID packets N wrong Q", as mkqueues does.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "abi/kfd.h"
#include "tests/vm/mk.h"

#define PAGE 4096
#define DEPTH 4
#define TICKS 20
#define LONG_TICKS 1000000
#define WAIT_MS 20
#define STALL_MS 20000

struct hostile {
	struct mk_gpu gpu;
	struct mk_queue busy, trap; /* one works, one is what the attack needs */
	bool works;
	const char *folder;
	char *page; /* nobody has touched it */
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		mk_die("%s", path);
	return fd;
}

/* A page of the silent file, anywhere or in place of one that the GPU goes on to see. */
static char *map_silent(const struct hostile *h, volatile void *at)
{
	int fd = open_in(h->folder, "page", O_RDONLY);
	void *page = (void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
	char *p =
		mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);

	if (p == MAP_FAILED)
		mk_die("mmap of a silent page");
	close(fd);
	return p;
}

/* ---- attacks, each on a thread of its own ---- */

static void attack_signal(struct hostile *h)
{
	map_silent(h, h->trap.signal);
}

static void attack_pointer(struct hostile *h)
{
	map_silent(h, h->trap.read);
}

static void attack_save(struct hostile *h)
{
	map_silent(h, h->trap.save_area);
}

/* In the place of one whose number is less than that of the driver's. */
static void attack_descriptor(struct hostile *h)
{
	int fd = open_in(h->folder, "dev/node", O_RDONLY);

	if (dup2(fd, STDERR_FILENO) < 0)
		mk_die("dup2");
}

struct peeker { /* sleeps while it keeps others from changing the address space */
	const char *page;
	volatile pid_t tid;
};

static void *peek(void *arg)
{
	struct peeker *p = arg;
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char c;

	if (mem < 0)
		mk_die("/proc/self/mem");
	p->tid = gettid();
	if (pread(mem, &c, 1, (off_t)(uintptr_t)p->page) != 1)
		mk_die("/proc/self/mem");
	close(mem);
	return NULL;
}

static char state_of(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (mkhostile) %c", &state) != 1)
		mk_die("%s", path);
	fclose(f);
	return state;
}

/* Whoever wants to read waits for us, who want to write and wait for the one who reads. */
static void attack_memory(struct hostile *h)
{
	struct peeker p = { .page = h->page };
	pthread_t thread;

	if (pthread_create(&thread, NULL, peek, &p))
		mk_die("pthread_create");
	while (!p.tid || state_of(p.tid) == 'R')
		;
	mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_join(thread, NULL);
}

static void take_off(const struct mk_queue *q)
{
	struct kfd_ioctl_update_queue_args a = {
		.ring_base_address = (uintptr_t)q->ring,
		.queue_id = q->id,
		.ring_size = MK_SLOTS * 64,
		.queue_percentage = 0,
		.queue_priority = q->priority,
	};

	if (ioctl(q->gpu->kfd, AMDKFD_IOC_UPDATE_QUEUE, &a))
		mk_die("UPDATE_QUEUE");
}

static void attack_wave(struct hostile *h)
{
	struct kfd_ioctl_get_queue_wave_state_args a = {
		.ctl_stack_address = (uintptr_t)h->page,
		.queue_id = h->trap.id,
	};

	take_off(&h->trap);
	ioctl(h->gpu.kfd, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &a);
}

/* Whom nobody debugs debugs itself. */
static void enable_debug(struct hostile *h)
{
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args a = {
		.pid = (uint32_t)getpid(),
		.op = KFD_IOC_DBG_TRAP_ENABLE,
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int fds[2];

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		mk_die("pipe");
	a.enable.dbg_fd = (uint32_t)fds[1];
	ioctl(h->gpu.kfd, AMDKFD_IOC_DBG_TRAP, &a);
}

static void attack_snapshot(struct hostile *h)
{
	struct kfd_ioctl_dbg_trap_args a = {
		.pid = (uint32_t)getpid(),
		.op = KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT,
		.queue_snapshot = { .snapshot_buf_ptr = (uintptr_t)h->page,
				    .num_queues = 2,
				    .entry_size = sizeof(struct kfd_queue_snapshot_entry) },
	};

	if (ioctl(h->gpu.kfd, AMDKFD_IOC_DBG_TRAP, &a) == 0)
		return;
	enable_debug(h);
	ioctl(h->gpu.kfd, AMDKFD_IOC_DBG_TRAP, &a);
}

static void attack_exec(struct hostile *h)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/program", h->folder);
	execl(path, path, (char *)NULL); /* it is no program: we come back */
}

static const struct attack {
	const char *name;
	void (*run)(struct hostile *h);
} attacks[] = {
	{ "signal", attack_signal },	     { "pointer", attack_pointer }, { "save", attack_save },
	{ "descriptor", attack_descriptor }, { "memory", attack_memory },   { "wave", attack_wave },
	{ "snapshot", attack_snapshot },     { "exec", attack_exec },
};

struct run {
	struct hostile *h;
	const struct attack *attack;
};

static void *run_attack(void *arg)
{
	const struct run *r = arg;

	r->attack->run(r->h);
	return NULL;
}

/* ---- a job like any other ---- */

static void make_queues(struct hostile *h)
{
	int64_t *signal = mk_alloc(&h->gpu, PAGE, NULL);

	mk_gpu_runtime(&h->gpu, true);
	mk_queue_create(&h->busy, &h->gpu, MK_AQL, 7);
	mk_queue_create(&h->trap, &h->gpu, MK_AQL, 7);
	h->trap.signal = signal; /* apart from the pointers */
	mk_submit(&h->trap, LONG_TICKS, 1); /* whether it is done yet only the signal tells */
}

static void feed(struct hostile *h)
{
	while (h->works && mk_pending(&h->busy) < DEPTH)
		mk_submit(&h->busy, TICKS, 1);
	mk_wait(&h->gpu, WAIT_MS);
}

static int finish(struct hostile *h)
{
	uint64_t until = now_ms() + STALL_MS;
	unsigned int wrong = 0;

	while (h->busy.submitted && mk_pending(&h->busy) && now_ms() < until)
		mk_wait(&h->gpu, WAIT_MS);
	if (h->busy.submitted)
		wrong = mk_pending(&h->busy) || !mk_is_right(&h->busy);
	printf("done %d packets %llu wrong %u\n", getpid(), (unsigned long long)h->busy.submitted,
	       wrong);
	return wrong != 0;
}

/* False: it is to end. */
static bool obey(struct run *r)
{
	pthread_t thread;
	char line[64];

	if (!fgets(line, sizeof(line), stdin) || !strcmp(line, "stop\n"))
		return false;
	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "go")) {
		if (pthread_create(&thread, NULL, run_attack, r))
			mk_die("pthread_create");
	} else {
		make_queues(r->h);
		r->h->works = !strcmp(line, "work");
		feed(r->h);
	}
	say(line);
	return true;
}

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		if (!strcmp(attacks[i].name, name))
			return &attacks[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hostile h;
	struct run r = { .h = &h, .attack = argc == 3 ? find(argv[1]) : NULL };
	struct pollfd command = { .fd = STDIN_FILENO, .events = POLLIN };

	if (!r.attack) {
		fprintf(stderr, "usage: mkhostile ATTACK FOLDER\n");
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	h.folder = argv[2];
	h.page = map_silent(&h, NULL);
	mk_gpu_open(&h.gpu, 0);
	printf("ready %d\n", getpid());
	fflush(stdout);
	do {
		while (poll(&command, 1, h.works ? 0 : -1) == 0)
			feed(&h);
	} while (obey(&r));
	return finish(&h);
}
