/* SPDX-License-Identifier: MIT */
#include "tests/lib/nvrm_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/nvrm/driver.h"
#include "tests/kfd/counts.h"

int lib_rig_setup(void **state)
{
	struct lib_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fds = count_fds();
	r->fake = fake_rm_new();
	fake_rm_set_real_time(r->fake, true);
	r->job = fake_rm_job(r->fake, JOB);
	r->ctx = ctx_new();
	assert_non_null(r->ctx);
	assert_int_equal(ctx_take(r->ctx, &nvrm_driver, fake_rm_nvrm(r->fake)), 0);
	*state = r;
	return 0;
}

int lib_rig_teardown(void **state)
{
	_cleanup_free_ struct lib_rig *r = *state;
	struct fake_sins sins;

	gpreempt_unref(r->ctx);
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	sins = fake_rm_sins(r->fake);
	fake_rm_free(r->fake);
	assert_int_equal(sins.kernel_lines, 0);
	assert_int_equal(sins.strangers, 0);
	assert_int_equal(sins.shared, 0);
	assert_int_equal(sins.misuse, 0);
	assert_int_equal(count_fds(), r->fds);
	return 0;
}

struct gpreempt_process *lib_rig_attach(struct lib_rig *r, pid_t pid, unsigned int flags)
{
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(r->ctx, pid, flags, &p), 0);
	return p;
}

enum gpreempt_error_kind lib_rig_kind(const struct lib_rig *r)
{
	return r->ctx->last.kind;
}

void lib_rig_cannot(const struct lib_rig *r, int result)
{
	assert_int_equal(result, -EOPNOTSUPP);
	assert_int_equal(r->ctx->last.kind, GPREEMPT_ERROR_REFUSED);
	assert_int_equal(r->ctx->last.error, -EOPNOTSUPP);
	assert_true(r->ctx->last.message[0] && r->ctx->last.hint[0]);
}
