/* SPDX-License-Identifier: MIT */
/* Hints: the page shared with the daemon, and the call for processes that have none. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gpreempt/kernel.h"
#include "lib/daemon_internal.h"
#include "util/clock.h"

/*
 * Nothing here waits but opening, for a moment: a program opens its hints when it starts, and is
 * known to the daemon only when it uses a GPU. The daemon answers then, and whoever hints next
 * takes the page. Until then hints are dropped: work that nobody could make room for is past when
 * somebody can.
 */
#define FIRST_NS (5 * NSEC_PER_MSEC)
#define WAIT_NS (600 * NSEC_PER_SEC) /* for one answer; it is asked for again */
#define AGAIN_NS NSEC_PER_SEC /* after a refusal, or where there is no daemon */
#define LOOK_NS (5 * NSEC_PER_MSEC) /* between two looks for an answer */

struct gpreempt_hint {
	struct wire_hint_page *page; /* atomic; NULL: it has had none yet. Its place stays */
	size_t bytes;
	pid_t busy; /* atomic: a thread of that process is at what follows; 0: none is */
	pid_t asker; /* whose is what follows: a child has a copy of it */
	char *path;
	struct gpreempt_daemon *d; /* that was asked; NULL: it is not */
	bool impatient; /* that daemon lets nobody wait */
	uint64_t next_ns; /* when it is asked, or looked, again */
	struct gpreempt_error why; /* there is no page */
};

/* One that is too short, or could become so, would end the program when it is touched. */
static bool stays_long_enough(int fd)
{
	struct stat st;
	int seals;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct wire_hint_page))
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* A version of 0: the daemon that had it does not look at it any more. */
static struct wire_hint_page *living_page(const struct gpreempt_hint *hint)
{
	struct wire_hint_page *page = __atomic_load_n(&hint->page, __ATOMIC_ACQUIRE);

	return page && __atomic_load_n(&page->version, __ATOMIC_RELAXED) ? page : NULL;
}

static bool is_sound(int fd)
{
	struct wire_hint_page page;

	return stays_long_enough(fd) && pread(fd, &page, sizeof(page), 0) == sizeof(page) &&
	       page.magic == WIRE_MAGIC && page.version >= 1 && page.since <= WIRE_HINT_VERSION;
}

/* In the place of the one before, if any: other threads may be writing to that. */
static int map_page(struct gpreempt_hint *hint, int fd)
{
	int flags = MAP_SHARED | (hint->page ? MAP_FIXED : 0);
	void *page;

	if (!is_sound(fd))
		return daemon_fail_nonsense(hint->d);
	page = mmap(hint->page, hint->bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (page == MAP_FAILED)
		return daemon_fail(hint->d, -errno, GPREEMPT_ERROR_FAILED, NULL,
				   "cannot map the page of hints: %s", strerror(errno));
	__atomic_store_n(&hint->page, page, __ATOMIC_RELEASE);
	return 0;
}

/* ---- asking, by one thread at a time ---- */

static void hang_up(struct gpreempt_hint *hint, uint64_t next_ns)
{
	hint->d = gpreempt_daemon_close(hint->d);
	hint->next_ns = next_ns;
}

static void ask(struct gpreempt_hint *hint, uint64_t now_ns)
{
	struct wire_hint request = { .wait_ns = hint->impatient ? 0 : WAIT_NS };

	hint->asker = getpid();
	hint->next_ns = now_ns + AGAIN_NS;
	if (!hint->d && daemon_open(hint->path, true, &hint->d, &hint->why) < 0)
		return;
	if (daemon_send(hint->d, WIRE_HINT_PAGE, &request, sizeof(request)) < 0) {
		hint->why = hint->d->last;
		hang_up(hint, now_ns + AGAIN_NS);
		return;
	}
	hint->next_ns = now_ns;
	error_note(&hint->why, -EAGAIN, GPREEMPT_ERROR_ABSENT,
		   "it is when it uses a GPU and is of the class online",
		   "gpreemptd does not know this process as an online one yet");
}

static void take(struct gpreempt_hint *hint, uint64_t now_ns, uint64_t until_ns)
{
	_cleanup_close_ int fd = -1;
	union wire_packet answer;
	int r = daemon_answer(hint->d, WIRE_HINT_PAGE, until_ns, &answer, &fd);

	hint->next_ns = now_ns + LOOK_NS;
	if (r == -EAGAIN || r == -ETIMEDOUT)
		return;
	if (r >= 0)
		r = map_page(hint, fd);
	hint->why = hint->d->last;
	if (r == -E2BIG) /* it knows no waiting: it is asked as often as it takes */
		hint->impatient = true;
	hang_up(hint, now_ns + (r == -E2BIG ? 0 : AGAIN_NS));
}

/*
 * The answer to a parent is not its child's, who asks by itself. In the middle of something another
 * thread, which the child does not have, may have left anything.
 */
static bool enter(struct gpreempt_hint *hint)
{
	pid_t self = getpid(), at = __atomic_load_n(&hint->busy, __ATOMIC_RELAXED);

	if (at == self || !__atomic_compare_exchange_n(&hint->busy, &at, self, false,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	if (hint->asker && hint->asker != self) {
		hint->d = at ? NULL : hint->d;
		hang_up(hint, 0);
		hint->asker = 0;
	}
	return true;
}

static void see_to(struct gpreempt_hint *hint, uint64_t first_ns)
{
	uint64_t now_ns = monotonic_ns();

	if (!enter(hint))
		return;
	if (now_ns >= hint->next_ns) {
		if (!hint->d || first_ns)
			ask(hint, now_ns);
		if (hint->d)
			take(hint, now_ns, first_ns ? now_ns + first_ns : 0);
	}
	__atomic_store_n(&hint->busy, 0, __ATOMIC_RELEASE);
}

/* ---- for programs ---- */

struct gpreempt_hint *hint_from(struct gpreempt_daemon *d, const char *path,
				struct gpreempt_error *ret_error)
{
	struct gpreempt_error none = { .size = sizeof(none) };
	struct gpreempt_hint *hint = calloc(1, sizeof(*hint));
	char *copy = path ? strdup(path) : NULL;

	if (!hint || (path && !copy)) {
		error_note(&none, -ENOMEM, GPREEMPT_ERROR_FAILED, "free some memory",
			   "out of memory");
		error_tell(&none, ret_error);
		gpreempt_daemon_close(d);
		free(copy);
		free(hint);
		return NULL;
	}
	hint->bytes = (size_t)sysconf(_SC_PAGESIZE);
	hint->path = copy;
	hint->d = d;
	hint->why.size = sizeof(hint->why);
	see_to(hint, FIRST_NS);
	if (hint->impatient)
		see_to(hint, FIRST_NS);
	gpreempt_hint_is_active(hint, ret_error);
	return hint;
}

EXPORT struct gpreempt_hint *gpreempt_hint_open(const char *path, struct gpreempt_error *ret_error)
{
	return hint_from(NULL, path, ret_error);
}

EXPORT bool gpreempt_hint_is_active(struct gpreempt_hint *hint, struct gpreempt_error *ret_error)
{
	const struct gpreempt_error none = { .size = sizeof(none) };

	if (!hint)
		return false;
	if (!living_page(hint))
		see_to(hint, 0);
	error_tell(living_page(hint) ? &none : &hint->why, ret_error);
	return living_page(hint);
}

/* The daemon reads the count first: when it has changed, the times belong to it or are newer. */
static void store(struct gpreempt_hint *hint, uint64_t at_ns, uint64_t for_ns)
{
	struct wire_hint_page *page = living_page(hint);

	if (!page) {
		see_to(hint, 0);
		page = living_page(hint);
	}
	if (!page)
		return;
	__atomic_store_n(&page->at_ns, at_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&page->for_ns, for_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&page->calls, 1, __ATOMIC_RELEASE);
}

EXPORT void gpreempt_hint_now(struct gpreempt_hint *hint)
{
	if (hint)
		store(hint, 0, 0);
}

EXPORT void gpreempt_hint_in(struct gpreempt_hint *hint, uint64_t ahead_ns)
{
	gpreempt_hint_for(hint, ahead_ns, 0);
}

EXPORT void gpreempt_hint_for(struct gpreempt_hint *hint, uint64_t ahead_ns, uint64_t for_ns)
{
	uint64_t now;

	if (!hint)
		return;
	now = monotonic_ns(); /* of the vDSO: no system call */
	store(hint, ahead_ns > UINT64_MAX - now ? UINT64_MAX : now + ahead_ns, for_ns);
}

EXPORT struct gpreempt_hint *gpreempt_hint_close(struct gpreempt_hint *hint)
{
	if (!hint)
		return NULL;
	if (hint->page)
		munmap(hint->page, hint->bytes);
	gpreempt_daemon_close(hint->d);
	free(hint->path);
	free(hint);
	return NULL;
}

/* ---- for somebody else ---- */

static int no_daemon(struct gpreempt_ctx *ctx)
{
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
			"start it with: systemctl start gpreemptd",
			"a hint needs gpreemptd, which is not running");
}

/* Without a daemon the scheduler inside the driver is told, where it is on. */
static int tell_kernel(struct gpreempt_ctx *ctx, pid_t pid)
{
	return gpreempt_kernel_is_on(ctx) > 0 ? gpreempt_kernel_hint(ctx, pid, 0, 0) :
						no_daemon(ctx);
}

EXPORT int gpreempt_hint(struct gpreempt_ctx *ctx, pid_t pid)
{
	int r;

	/* The processes of a model of our own are nobody else's. */
	if (ctx->alone)
		return tell_kernel(ctx, pid);
	if (!ctx->daemon && gpreempt_daemon_open(NULL, &ctx->daemon, &ctx->last) < 0)
		return ctx->last.kind == GPREEMPT_ERROR_ABSENT ? tell_kernel(ctx, pid) :
								 ctx->last.error;
	r = gpreempt_daemon_hint(ctx->daemon, pid, 0, 0);
	if (r >= 0)
		return 0;
	gpreempt_daemon_get_error(ctx->daemon, &ctx->last);
	if (r != -ECONNRESET)
		return r;
	ctx->daemon = gpreempt_daemon_close(ctx->daemon); /* the next call asks the next daemon */
	return tell_kernel(ctx, pid);
}
