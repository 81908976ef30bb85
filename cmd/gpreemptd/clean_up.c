/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/clean_up.h"

#include <errno.h>
#include <string.h>

#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "gpu/nvrm/process.h"
#include "util/apart.h"

#define AT_ONCE 16u

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

/* Whoever traces it is not the daemon, which is dead: a holder that is letting go, or others. */
static int release(struct gkfd *k, const struct gkfd_proc_ident *ident)
{
	struct gkfd_failure failure = { 0 };
	int r = gkfd_open_device(k);

	if (r < 0)
		return is_absence(r) ? 0 : r;
	if (ident->tracer_pid)
		return 0;
	r = gkfd_release_pid(k, ident->pid, &failure);
	if (r == -ESRCH ||
	    (r < 0 && (failure.why == GKFD_WHY_TRACED || failure.why == GKFD_WHY_NO_KFD_PROCESS)))
		return 0;
	return r;
}

/* ---- NVIDIA's ---- */

/* The same as is_alive(). */
static bool lives(struct nvrm *n, const struct journal_entry *e)
{
	_cleanup_free_ char *text = NULL;
	struct proc_stat stat;
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%d/stat", e->pid);
	return n->transport->read_proc(n->data, path, &text, &len) >= 0 &&
	       proc_stat_parse(text, len, &stat) >= 0 && stat.start_ticks == e->start_ticks;
}

static int release_contexts(struct nvrm *n, const struct journal_entry *e)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_release_pid(n, e->pid, &failure);

	if (r == -ESRCH ||
	    (r < 0 && (failure.why == NVRM_WHY_NO_DRIVER || failure.why == NVRM_WHY_EXITED ||
		       failure.why == NVRM_WHY_NO_CONTEXT)))
		return 0;
	return r;
}

/* ---- all ---- */

void clean_up_here(const struct clean_up_drivers *d, const struct journal_entry *e,
		   struct clean_up_result *ret)
{
	bool of_nvrm = e->level[0] == 'N';
	struct gkfd_proc_ident ident;
	int r;

	if (!strcmp(e->level, "K3")) /* what was held by an open device ended with it */
		return;
	if (of_nvrm ? !lives(d->n, e) : !is_alive(d->k, e, &ident))
		return;
	ret->left++;
	r = of_nvrm ? release_contexts(d->n, e) : release(d->k, &ident);
	ret->released += r > 0;
	if (r < 0)
		fail(ret, r);
}

struct work {
	const struct clean_up_drivers *d;
	const struct journal_entry *entries;
};

static void clean_up_one(void *user, size_t i, void *ret)
{
	const struct work *w = user;

	clean_up_here(w->d, &w->entries[i], ret);
}

static void add_result(struct clean_up_result *sum, const struct clean_up_result *one, int error)
{
	sum->left += one->left;
	sum->released += one->released;
	if (one->failed)
		fail(sum, one->error);
	if (error < 0) {
		sum->left += !one->left;
		fail(sum, error);
	}
}

static int clean_up_apart(const struct clean_up_drivers *d, const struct journal_entry *entries,
			  size_t n, struct clean_up_result *ret)
{
	struct work work = { d, entries };
	const struct apart a = {
		.n = n,
		.at_once = AT_ONCE,
		.limit_ns = CLEAN_UP_ONE_NS,
		.all_ns = CLEAN_UP_NS - CLEAN_UP_ONE_NS,
		.run = clean_up_one,
		.user = &work,
		.result_size = sizeof(*ret),
	};
	_cleanup_free_ struct clean_up_result *results = calloc(n + 1, sizeof(*results));
	_cleanup_free_ int *errors = calloc(n + 1, sizeof(*errors));
	int r = results && errors ? apart_run(&a, results, errors) : -ENOMEM;

	for (size_t i = 0; i < n && r >= 0; i++)
		add_result(ret, &results[i], errors[i]);
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
	int r = open_journal(journal_path, &j, &result.torn);

	if (r < 0)
		return r;
	entries = calloc(JOURNAL_ENTRIES, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	r = clean_up_apart(d, entries, journal_left(j, entries, JOURNAL_ENTRIES), &result);
	if (r >= 0 && !result.failed)
		journal_begin(j);
	*ret = result;
	return r;
}
