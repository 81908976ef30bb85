/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/clean_up.h"

#include <errno.h>
#include <string.h>

#include "gpu/driver.h"
#include "util/apart.h"

#define AT_ONCE 16u

static void fail(struct clean_up_result *ret, int error)
{
	if (!ret->failed++)
		ret->error = error;
}

/* Of a driver that is not there nothing can be held. */
static int undo(const struct gpu_driver *driver, const struct gpu_leftover *left)
{
	struct gpu_why why;
	void *data;
	int r = driver->open(NULL, &data, &why);

	if (r < 0)
		return r == -ENODEV ? -ESRCH : r;
	r = driver->undo(data, left);
	driver->close(data);
	return r;
}

void clean_up_here(const struct journal_entry *e, struct clean_up_result *ret)
{
	const struct gpu_leftover left = { e->pid, e->start_ticks, e->level };
	int r = -ESRCH;

	for (const struct gpu_driver *const *d = gpu_drivers; *d && r == -ESRCH; d++) {
		if ((*d)->module && gpu_driver_has_level(*d, e->level))
			r = undo(*d, &left);
	}
	if (r == -ESRCH)
		return;
	ret->left++;
	ret->released += r > 0;
	if (r < 0)
		fail(ret, r);
}

static void clean_up_one(void *user, size_t i, void *ret)
{
	const struct journal_entry *entries = user;

	clean_up_here(&entries[i], ret);
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

static int clean_up_apart(struct journal_entry *entries, size_t n, struct clean_up_result *ret)
{
	const struct apart a = {
		.n = n,
		.at_once = AT_ONCE,
		.limit_ns = CLEAN_UP_ONE_NS,
		.all_ns = CLEAN_UP_NS - CLEAN_UP_ONE_NS,
		.run = clean_up_one,
		.user = entries,
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

int clean_up(const char *journal_path, struct clean_up_result *ret)
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
	r = clean_up_apart(entries, journal_left(j, entries, JOURNAL_ENTRIES), &result);
	if (r >= 0 && !result.failed)
		journal_begin(j);
	*ret = result;
	return r;
}
