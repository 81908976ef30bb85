/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kfd/counts.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define LOOKS_STEP 331 /* every so many of the calls that look at objects are hit */

static void start(struct rig *r)
{
	*r = (struct rig){ .fds = count_fds() };
	r->fake = fake_rm_new();
	r->n = fake_rm_nvrm(r->fake);
}

static void finish(struct rig *r)
{
	struct fake_sins sins;

	rig_nothing_left(r);
	sins = fake_rm_sins(r->fake);
	nvrm_free(r->n);
	fake_rm_free(r->fake);
	assert_int_equal(sins.kernel_lines, 0);
	assert_int_equal(sins.strangers, 0);
	assert_int_equal(sins.shared, 0);
	assert_int_equal(sins.misuse, 0);
	assert_int_equal(count_fds(), r->fds);
}

int rig_setup(void **state)
{
	struct rig *r = malloc(sizeof(*r));

	assert_non_null(r);
	start(r);
	*state = r;
	return 0;
}

int rig_teardown(void **state)
{
	_cleanup_free_ struct rig *r = *state;

	finish(r);
	return 0;
}

struct nvrm_process *rig_open(struct rig *r, pid_t pid)
{
	struct nvrm_process *p = NULL;

	assert_int_equal(nvrm_process_open(r->n, pid, &p, &r->failure), 0);
	assert_non_null(p);
	return p;
}

void rig_nothing_left(struct rig *r)
{
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
}

/* The fault is put before the @nth call; how many calls there were. */
static size_t try(const struct rig_scene *scene, const struct fake_fault *fault, size_t nth)
{
	struct rig r;
	size_t n;

	start(&r);
	scene->prepare(&r);
	if (fault) {
		struct fake_fault at = *fault;

		at.after = (unsigned int)nth;
		fake_rm_fault(r.fake, &at);
	}
	scene->play(&r);
	n = fake_rm_count(r.fake, fault ? fault->op : FAKE_ANY, 0);
	fake_rm_mend(r.fake);
	if (scene->check)
		scene->check(&r);
	finish(&r);
	return n;
}

/* Of the calls in an undisturbed run that the fault is about, which are worth being hit. */
static size_t list_points(const struct rig_scene *scene, const struct fake_fault *fault,
			  size_t **ret)
{
	const struct fake_call *calls;
	size_t n_calls, n = 0, at = 0, looks = 0;
	struct rig r;

	start(&r);
	scene->prepare(&r);
	scene->play(&r);
	calls = fake_rm_calls(r.fake, &n_calls);
	*ret = malloc((n_calls + 1) * sizeof(**ret));
	assert_non_null(*ret);
	for (size_t i = 0; i < n_calls; i++) {
		bool look = calls[i].cmd == NVRM_CTRL_GET_HANDLE_INFO;

		if (fault->op != FAKE_ANY && calls[i].op != fault->op)
			continue;
		if (fault->cmd && calls[i].cmd != fault->cmd)
			continue;
		if (!look || looks++ % LOOKS_STEP == 0)
			(*ret)[n++] = at;
		at++;
	}
	finish(&r);
	return n;
}

void rig_try_all(const struct rig_scene *scene, const struct fake_fault *fault)
{
	_cleanup_free_ size_t *points = NULL;
	size_t n = list_points(scene, fault, &points);

	assert_in_range(n, 5, 100000);
	for (size_t i = 0; i < n; i++)
		try(scene, fault, points[i]);
}
