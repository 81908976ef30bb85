/* SPDX-License-Identifier: MIT */
/* The extension's device: files, rights, versions. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

static void without_the_option_there_is_no_device_and_no_number(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file;

	assert_int_equal(model_ext_open(r->m, r->daemon, &file), -ENODEV);
	for (unsigned int nr = KFD_GPREEMPT_COMMAND_START; nr < KFD_GPREEMPT_COMMAND_END; nr++)
		assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_IOWR(nr, v), &v), -ENOTTY);
}

static void the_version_tells_what_can_be_done(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = ext_open(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_int_equal(v.version, KFD_GPREEMPT_VERSION);
	assert_int_equal(v.abilities, KFD_GPREEMPT_CAN_BATCH | KFD_GPREEMPT_IS_ADMIN);
	assert_int_equal(v.max_entries, KFD_GPREEMPT_MAX_ENTRIES);
	assert_int_equal(v.max_hold_ms, KFD_GPREEMPT_MAX_HOLD_MS);
}

static void victims_only_is_told_where_it_is_allowed(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = ext_open(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_true(v.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY);
}

static void a_user_is_no_administrator(void **state)
{
	struct rig *r = *state;
	struct model_task user = { OTHER, OTHER };
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = ext_open(r, user);

	assert_int_equal(model_ext_ioctl(r->m, user, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_false(v.abilities & KFD_GPREEMPT_IS_ADMIN);
}

static void a_process_can_ask_on_its_own_descriptor(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };

	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_int_equal(v.version, KFD_GPREEMPT_VERSION);
	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_IOWR(0xCF, v), &v), -ENOTTY);
}

static void a_bad_pointer_is_refused(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_open(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION,
					 (void *)(uintptr_t)BAD_POINTER),
			 -EFAULT);
}

static void a_closed_file_takes_no_calls(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = ext_open(r, r->daemon);

	model_ext_close(r->m, file);
	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v),
			 -EBADF);
}

/* ---- rights ---- */

#define TRAIN 1001
#define USER 500

struct device { /* of a user who may not do everything */
	void *data;
	struct model *m;
	struct model_task user;
	uint64_t file;
};

static struct device device_new(void)
{
	struct device d = { .user = { USER, USER } };
	struct model_proc_spec user = { .pid = USER, .uid = 1000, .comm = "user" };
	char *why = NULL;

	assert_int_equal(model_new_preset("mi308x,gpus=1,ext=1", &d.m, &why), 0);
	d.data = model_transport_new(d.m);
	assert_non_null(d.data);
	assert_int_equal(model_proc_start(d.m, &user), 0);
	assert_int_equal(model_ext_open(d.m, d.user, &d.file), 0);
	return d;
}

static void device_done(struct device *d)
{
	gkfd_transport_model.close(d->data);
}

static int preempt(struct device *d, pid_t pid)
{
	struct kfd_gpreempt_one one = {
		.pid = (uint32_t)pid,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
	};

	return model_ext_ioctl(d->m, d->user, d->file, KFD_GPREEMPT_PREEMPT_QUEUE, &one);
}

static int bind_fd(struct device *d, int fd, uint32_t *ret_pid)
{
	struct kfd_gpreempt_bind a = { .fd = fd };
	int r = model_ext_ioctl(d->m, d->user, d->file, KFD_GPREEMPT_BIND, &a);

	*ret_pid = a.pid;
	return r;
}

static void whom_a_descriptor_belongs_to_can_be_named(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	uint32_t pid = 0;
	int fd;

	(void)state;
	assert_int_equal(preempt(&d, TRAIN), -EPERM);
	fd = gkfd_transport_model.borrow(d.data, TRAIN, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind_fd(&d, fd, &pid), 0);
	assert_int_equal(bind_fd(&d, fd, &pid), 0);
	assert_int_equal(pid, TRAIN);
	close(fd);
	assert_int_equal(preempt(&d, TRAIN), 0);
	assert_int_equal(preempt(&d, 1002), -EPERM);
}

static void only_a_descriptor_of_the_driver_proves_anything(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t pid;
	int fd;

	(void)state;
	assert_int_equal(bind_fd(&d, -1, &pid), -EBADF);
	assert_int_equal(bind_fd(&d, null, &pid), -EINVAL);
	fd = gkfd_transport_model.borrow(d.data, TRAIN, 0);
	model_proc_exit(d.m, TRAIN);
	assert_int_equal(bind_fd(&d, fd, &pid), -ESRCH);
	close(fd);
}

static void a_process_that_became_another_program_must_be_bound_anew(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	uint32_t pid, id;
	int fd = gkfd_transport_model.borrow(d.data, TRAIN, 0);

	(void)state;
	assert_int_equal(bind_fd(&d, fd, &pid), 0);
	close(fd);
	assert_int_equal(model_proc_exec(d.m, TRAIN), 0);
	assert_int_equal(preempt(&d, TRAIN), -ESRCH);
	assert_int_equal(model_queue_create(d.m, TRAIN, &spec, &id), 0);
	assert_int_equal(preempt(&d, TRAIN), -EPERM);
}

static void a_user_borrows_from_his_own_processes_only(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	struct model_proc_spec self = { .pid = MODEL_SELF_PID, .uid = 2000, .comm = "other" };

	(void)state;
	model_proc_exit(d.m, MODEL_SELF_PID);
	assert_int_equal(model_proc_start(d.m, &self), 0);
	assert_int_equal(gkfd_transport_model.borrow(d.data, TRAIN, 0), -EPERM);
}

static void a_process_may_always_be_named_by_itself(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	uint32_t id;

	(void)state;
	assert_int_equal(model_queue_create(d.m, USER, &spec, &id), 0);
	assert_int_equal(preempt(&d, USER), 0);
	assert_int_equal(preempt(&d, 0), -ESRCH);
}

static void the_transport_opens_the_device_at_the_first_call(void **state)
{
	_cleanup_(device_done) struct device d = device_new();
	struct kfd_gpreempt_version v = { 0 };
	struct kfd_gpreempt_one one = {
		.pid = TRAIN,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
	};

	(void)state;
	assert_int_equal(gkfd_transport_model.ext(d.data, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_true(v.abilities & KFD_GPREEMPT_IS_ADMIN);
	assert_int_equal(gkfd_transport_model.ext(d.data, KFD_GPREEMPT_PREEMPT_QUEUE, &one), 0);
	assert_int_equal(gkfd_transport_model.ext(d.data, KFD_GPREEMPT_RESUME_QUEUE, &one), 0);
}

static void a_preset_has_the_extension_only_when_asked_for(void **state)
{
	struct model *m = NULL;
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	char *why = NULL, *text = NULL;
	uint64_t file;
	size_t len;

	(void)state;
	assert_int_equal(model_new_preset("mi308x,gpus=1", &m, &why), 0);
	assert_int_equal(model_ext_open(m, self, &file), -ENODEV);
	assert_int_equal(
		model_read(m, GKFD_TREE_PARAMS, "gpreempt_victims_only", false, &text, &len),
		-ENOENT);
	model_free(m);
	assert_int_equal(model_new_preset("mi308x,gpus=1,ext=victims", &m, &why), 0);
	assert_int_equal(model_ext_open(m, self, &file), 0);
	assert_int_equal(
		model_read(m, GKFD_TREE_PARAMS, "gpreempt_victims_only", false, &text, &len), 0);
	assert_string_equal(text, "Y\n");
	free(text);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_the_option_there_is_no_device_and_no_number,
						rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(the_version_tells_what_can_be_done, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(victims_only_is_told_where_it_is_allowed,
						rig_setup_victims, rig_teardown),
		cmocka_unit_test_setup_teardown(a_user_is_no_administrator, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_process_can_ask_on_its_own_descriptor,
						rig_setup_ext, rig_teardown),
		cmocka_unit_test_setup_teardown(a_bad_pointer_is_refused, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_closed_file_takes_no_calls, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test(whom_a_descriptor_belongs_to_can_be_named),
		cmocka_unit_test(only_a_descriptor_of_the_driver_proves_anything),
		cmocka_unit_test(a_process_that_became_another_program_must_be_bound_anew),
		cmocka_unit_test(a_user_borrows_from_his_own_processes_only),
		cmocka_unit_test(a_process_may_always_be_named_by_itself),
		cmocka_unit_test(the_transport_opens_the_device_at_the_first_call),
		cmocka_unit_test(a_preset_has_the_extension_only_when_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
