/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/clean_up.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cmd/gpreemptd/rules_internal.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "gpu/nvrm/process.h"

static void journal_closep(struct journal **j)
{
	journal_close(*j);
}

int clean_up_init(struct clean_up_drivers *d)
{
	void *data = gkfd_syscall_new(NULL);
	int r = data ? gkfd_new(&gkfd_transport_syscall, data, &d->k) : -ENOMEM;

	if (r < 0)
		return r;
	data = nvrm_syscall_new(NULL);
	return data ? nvrm_new(&nvrm_transport_syscall, data, &d->n) : -ENOMEM;
}

void clean_up_done(struct clean_up_drivers *d)
{
	gkfd_free(d->k);
	nvrm_free(d->n);
}

static void fail(struct clean_up_result *ret, int error)
{
	if (!ret->failed++)
		ret->error = error;
}

static bool is_absence(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -ENXIO;
}

/* ---- AMD's ---- */

/* The process of that entry, and not another one that has its pid now. */
static bool is_alive(struct gkfd *k, const struct journal_entry *e, struct gkfd_proc_ident *ret)
{
	return gkfd_proc_identify(k, e->pid, ret) >= 0 && ret->start_ticks == e->start_ticks &&
	       ret->state != 'Z' && ret->state != 'X';
}

/* Somebody who traces it now is not the daemon, which is dead: it is for them to let go. */
static void release(struct gkfd *k, const struct journal_entry *e, struct clean_up_result *ret)
{
	struct gkfd_failure failure = { 0 };
	struct gkfd_proc_ident ident;
	int r;

	if (!is_alive(k, e, &ident) || ident.tracer_pid)
		return;
	r = gkfd_release_pid(k, e->pid, &failure);
	if (r > 0)
		ret->released++;
	if (r >= 0 || r == -ESRCH || failure.why == GKFD_WHY_TRACED ||
	    failure.why == GKFD_WHY_NO_KFD_PROCESS)
		return;
	fail(ret, r);
}

/* What was held by an open device ended with it. */
static bool is_over(const struct journal_entry *e)
{
	return !strcmp(e->level, "K3");
}

/* ---- NVIDIA's ---- */

static bool is_of_nvrm(const struct journal_entry *e)
{
	return e->level[0] == 'N';
}

/* The same as is_alive(). */
static bool lives(struct nvrm *n, const struct journal_entry *e)
{
	_cleanup_free_ char *text = NULL;
	struct identity id = { 0 };
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%d/stat", e->pid);
	return n->transport->read_proc(n->data, path, &text, &len) >= 0 &&
	       identity_parse_stat(text, len, &id) >= 0 && id.start_ticks == e->start_ticks;
}

static void release_contexts(struct nvrm *n, const struct journal_entry *e,
			     struct clean_up_result *ret)
{
	struct nvrm_failure failure = { 0 };
	int r;

	if (!lives(n, e))
		return;
	r = nvrm_release_pid(n, e->pid, &failure);
	if (r > 0)
		ret->released++;
	if (r < 0 && r != -ESRCH && failure.why != NVRM_WHY_NO_DRIVER &&
	    failure.why != NVRM_WHY_EXITED && failure.why != NVRM_WHY_NO_CONTEXT)
		fail(ret, r);
}

/* ---- all ---- */

void clean_up_here(const struct clean_up_drivers *d, const struct journal_entry *entries, size_t n,
		   struct clean_up_result *ret)
{
	bool opened = false;
	int r = 0;

	for (size_t i = 0; i < n; i++, ret->done++) {
		if (is_over(&entries[i]))
			continue;
		if (is_of_nvrm(&entries[i])) {
			release_contexts(d->n, &entries[i], ret);
			continue;
		}
		if (!opened)
			r = gkfd_open_device(d->k);
		opened = true;
		if (r >= 0)
			release(d->k, &entries[i], ret);
		else if (!is_absence(r))
			fail(ret, r);
	}
}

/* A child of ours: its pid stays its own until we have waited for it. */
static int wait_for(pid_t child)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int r, status;

	if (pidfd >= 0) {
		do {
			r = poll(&end, 1, (int)(CLEAN_UP_ONE_NS / NSEC_PER_MSEC));
		} while (r < 0 && errno == EINTR);
		if (r <= 0) {
			kill(child, SIGKILL);
			return -ETIMEDOUT; /* it may sit in the driver: not to be waited for */
		}
	}
	do {
		r = waitpid(child, &status, 0);
	} while (r < 0 && errno == EINTR);
	return r == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* From the first on that nobody has seen to. */
static int clean_up_in_child(const struct clean_up_drivers *d, const struct journal_entry *entries,
			     size_t n, struct clean_up_result *shared)
{
	unsigned int done = shared->done;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0) {
		clean_up_here(d, entries + done, n - done, shared);
		_exit(0);
	}
	return wait_for(child);
}

/* Many take longer than one child has. Where one got no further at all, the next goes past that. */
static int clean_up_apart(const struct clean_up_drivers *d, const struct journal_entry *entries,
			  size_t n, struct clean_up_result *ret)
{
	struct clean_up_result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = -ETIMEDOUT;

	if (shared == MAP_FAILED)
		return -errno;
	*shared = *ret;
	for (uint64_t ns = 0; r == -ETIMEDOUT && ns < CLEAN_UP_NS; ns += CLEAN_UP_ONE_NS) {
		unsigned int done = shared->done;

		r = clean_up_in_child(d, entries, n, shared);
		if (r != -ETIMEDOUT || shared->done > done)
			continue;
		fail(shared, r);
		if (++shared->done == n)
			r = 0;
	}
	*ret = *shared;
	munmap(shared, sizeof(*shared));
	return r;
}

static int open_journal(const char *path, struct journal **ret, bool *ret_torn)
{
	int r = journal_open(path, ret);

	if (r != -EBADMSG)
		return r;
	*ret_torn = true;
	if (unlink(path) < 0)
		return -errno;
	return journal_open(path, ret);
}

int clean_up(const struct clean_up_drivers *d, const char *journal_path,
	     struct clean_up_result *ret)
{
	_cleanup_(journal_closep) struct journal *j = NULL;
	_cleanup_free_ struct journal_entry *entries = NULL;
	struct clean_up_result result = { 0 };
	struct gkfd_proc_ident ident;
	size_t n;
	int r;

	r = open_journal(journal_path, &j, &result.torn);
	if (r < 0)
		return r;
	entries = calloc(JOURNAL_ENTRIES, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	n = journal_left(j, entries, JOURNAL_ENTRIES);
	for (size_t i = 0; i < n; i++) {
		const struct journal_entry *e = &entries[i];

		if (!is_over(e) && (is_of_nvrm(e) ? lives(d->n, e) : is_alive(d->k, e, &ident)))
			entries[result.left++] = entries[i];
	}
	if (result.left)
		r = clean_up_apart(d, entries, result.left, &result);
	if (r == 0 && !result.failed)
		journal_begin(j);
	*ret = result;
	return r;
}
