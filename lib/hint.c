/* SPDX-License-Identifier: MIT */
/* Hints: the word shared with the daemon, and the call for processes that have none. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gpreempt/kernel.h"
#include "lib/daemon_internal.h"
#include "util/clock.h"

struct gpreempt_hint {
	struct wire_hint_page *page;
	size_t bytes;
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

static int map_page(struct gpreempt_daemon *d, int fd, struct gpreempt_hint *ret)
{
	struct wire_hint_page *page;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (!stays_long_enough(fd))
		return daemon_fail_nonsense(d);
	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return daemon_fail(d, -errno, GPREEMPT_ERROR_FAILED, NULL,
				   "cannot map the page of hints: %s", strerror(errno));
	if (page->magic != WIRE_MAGIC || page->version < 1 || page->since > WIRE_HINT_VERSION) {
		munmap(page, bytes);
		return daemon_fail_nonsense(d);
	}
	*ret = (struct gpreempt_hint){ page, bytes };
	return 0;
}

static int ask_page(struct gpreempt_daemon *d, struct gpreempt_hint *ret)
{
	struct wire_hint request = { 0 };
	_cleanup_close_ int fd = -1;
	union wire_packet answer;
	int r = daemon_ask(d, WIRE_HINT_PAGE, &request, sizeof(request), &answer, &fd);

	return r < 0 ? r : map_page(d, fd, ret);
}

struct gpreempt_hint *hint_from(struct gpreempt_daemon *d, struct gpreempt_error *ret_error)
{
	_cleanup_free_ struct gpreempt_hint *hint = calloc(1, sizeof(*hint));
	int r = hint ? ask_page(d, hint) :
		       daemon_fail(d, -ENOMEM, GPREEMPT_ERROR_FAILED, "free some memory",
				   "out of memory");

	if (r < 0)
		gpreempt_daemon_get_error(d, ret_error);
	gpreempt_daemon_close(d);
	return r < 0 ? NULL : steal_ptr(&hint);
}

EXPORT struct gpreempt_hint *gpreempt_hint_open(const char *path, struct gpreempt_error *ret_error)
{
	struct gpreempt_daemon *d = NULL;

	return gpreempt_daemon_open(path, &d, ret_error) < 0 ? NULL : hint_from(d, ret_error);
}

/* The daemon reads the count first: when it has changed, the times belong to it or are newer. */
static void store(struct gpreempt_hint *hint, uint64_t at_ns, uint64_t for_ns)
{
	__atomic_store_n(&hint->page->at_ns, at_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&hint->page->for_ns, for_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&hint->page->calls, 1, __ATOMIC_RELEASE);
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
	munmap(hint->page, hint->bytes);
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
