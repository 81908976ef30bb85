/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cmd/gpreemptd/journal.h"
#include "util/macros.h"

struct place {
	char dir[64];
	char path[96];
};

static int new_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "/tmp/gpreempt-journal-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/journal", p->dir);
	*state = p;
	return 0;
}

static int end_place(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	rmdir(p->dir);
	free(p);
	return 0;
}

static struct journal *open_journal(const struct place *p)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(p->path, &j), 0);
	return j;
}

static void write_at(const struct place *p, off_t offset, const void *bytes, size_t n)
{
	_cleanup_close_ int fd = open(p->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, offset), n);
}

static void opening_is_refused(const struct place *p, int error)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(p->path, &j), error);
	assert_null(j);
}

static void a_new_one_is_empty_and_for_its_owner_only(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct journal_entry left;
	struct stat st;

	assert_int_equal(journal_left(j, &left, 1), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, sizeof(struct journal_file));
	journal_close(j);
}

static void what_was_added_outlives_the_writer(void **state)
{
	struct place *p = *state;
	struct journal_entry left[4];
	struct journal *j;
	pid_t child = fork();
	int status, slot;

	assert_true(child >= 0);
	if (child == 0) {
		if (journal_open(p->path, &j) < 0 || journal_add(j, 100, 7, "K2") < 0)
			_exit(1);
		slot = journal_add(j, 200, 8, "K2");
		if (slot < 0 || journal_add(j, 300, 9, "K1") < 0)
			_exit(1);
		journal_remove(j, slot);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));

	j = open_journal(p);
	assert_int_equal(journal_left(j, left, 4), 2);
	assert_int_equal(left[0].pid, 100);
	assert_int_equal(left[0].start_ticks, 7);
	assert_string_equal(left[0].level, "K2");
	assert_int_equal(left[1].pid, 300);
	assert_string_equal(left[1].level, "K1");
	assert_int_equal(journal_left(j, left, 1), 2);
	journal_begin(j);
	assert_int_equal(journal_left(j, left, 4), 0);
	journal_close(j);
}

static void what_could_not_be_cleaned_up_stays_when_another_takes_over(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct journal_entry left;

	assert_true(journal_add(j, 1234, 5678, "K1") >= 0);
	journal_close(j);
	j = open_journal(p);
	journal_take_over(j);
	assert_true(journal_add(j, 99, 1, "K1") >= 0);
	assert_int_equal(journal_left(j, &left, 1), 2);
	assert_int_equal(left.pid, 1234);
	assert_int_equal(left.start_ticks, 5678);
	journal_close(j);
}

static void entries_of_another_boot_are_nobodys(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct journal_entry left;

	assert_true(journal_add(j, 100, 7, "K2") >= 0);
	journal_close(j);
	write_at(p, offsetof(struct journal_file, boot_id), "00000000", 8);
	j = open_journal(p);
	assert_int_equal(journal_left(j, &left, 1), 0);
	journal_begin(j);
	assert_true(journal_add(j, 100, 7, "K2") >= 0);
	assert_int_equal(journal_left(j, &left, 1), 1);
	journal_close(j);
}

static void who_turned_on_the_drivers_scheduler_is_known_until_the_next_boot(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);

	assert_false(journal_turned_on(j));
	journal_set_turned_on(j, true);
	journal_close(j);
	j = open_journal(p);
	journal_take_over(j);
	journal_begin(j);
	assert_true(journal_turned_on(j));
	journal_close(j);
	write_at(p, offsetof(struct journal_file, boot_id), "00000000", 8);
	j = open_journal(p);
	assert_false(journal_turned_on(j));
	journal_begin(j);
	assert_false(journal_turned_on(j));
	journal_close(j);
}

static void a_full_one_says_so_and_a_removed_entry_makes_room(void **state)
{
	struct journal *j = open_journal(*state);

	for (int i = 0; i < JOURNAL_ENTRIES; i++)
		assert_true(journal_add(j, 1000 + i, 1, "K2") >= 0);
	assert_int_equal(journal_add(j, 1, 1, "K2"), -ENOSPC);
	journal_remove(j, 17);
	assert_int_equal(journal_add(j, 1, 1, "K2"), 17);
	assert_int_equal(journal_add(j, 1, 1, "K2"), -ENOSPC);
	journal_remove(j, -ENOSPC); /* of an add that failed: nothing */
	journal_remove(j, JOURNAL_ENTRIES);
	assert_int_equal(journal_left(j, NULL, 0), JOURNAL_ENTRIES);
	journal_close(j);
}

/* What opening it comes to for another process. */
static int opened_by_another(const struct place *p)
{
	struct journal *j;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(-journal_open(p->path, &j));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void only_one_process_has_it(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);

	assert_int_equal(opened_by_another(p), -EBUSY);
	journal_close(j);
	assert_int_equal(opened_by_another(p), 0);
}

static void something_else_is_not_taken_for_one(void **state)
{
	struct place *p = *state;

	write_at(p, 0, "hello", 5);
	opening_is_refused(p, -EBADMSG);
}

static void a_torn_one_is_not_read(void **state)
{
	static const int32_t negative = -1;
	static const uint32_t zero;
	struct place *p = *state;

	journal_close(open_journal(p));
	write_at(p, offsetof(struct journal_file, entries[3].pid), &negative, 4);
	opening_is_refused(p, -EBADMSG);
	write_at(p, offsetof(struct journal_file, entries[3].pid), &zero, 4);
	journal_close(open_journal(p));
	write_at(p, offsetof(struct journal_file, entries[3].level), "long", 4);
	opening_is_refused(p, -EBADMSG);
	write_at(p, offsetof(struct journal_file, entries[3].level), &zero, 4);
	write_at(p, offsetof(struct journal_file, turned_on), &negative, 4);
	opening_is_refused(p, -EBADMSG);
	write_at(p, offsetof(struct journal_file, turned_on), &zero, 4);
	write_at(p, offsetof(struct journal_file, magic), &zero, 4);
	opening_is_refused(p, -EBADMSG);
}

static void one_of_another_length_is_not_read(void **state)
{
	struct place *p = *state;

	journal_close(open_journal(p));
	assert_int_equal(truncate(p->path, sizeof(struct journal_file) - 1), 0);
	opening_is_refused(p, -EBADMSG);
}

static void one_that_others_can_write_is_refused(void **state)
{
	struct place *p = *state;

	journal_close(open_journal(p));
	assert_int_equal(chmod(p->path, 0620), 0);
	opening_is_refused(p, -EPERM);
}

static void a_link_is_not_followed(void **state)
{
	struct place *p = *state;
	char elsewhere[128];

	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", p->dir);
	assert_int_equal(symlink(elsewhere, p->path), 0);
	opening_is_refused(p, -ELOOP);
	assert_int_equal(unlink(p->path), 0);
	journal_close(open_journal(p));
	assert_int_equal(link(p->path, elsewhere), 0);
	opening_is_refused(p, -EPERM);
	assert_int_equal(unlink(elsewhere), 0);
}

#define EACH(f) cmocka_unit_test_setup_teardown(f, new_place, end_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(a_new_one_is_empty_and_for_its_owner_only),
		EACH(what_was_added_outlives_the_writer),
		EACH(what_could_not_be_cleaned_up_stays_when_another_takes_over),
		EACH(entries_of_another_boot_are_nobodys),
		EACH(who_turned_on_the_drivers_scheduler_is_known_until_the_next_boot),
		EACH(a_full_one_says_so_and_a_removed_entry_makes_room),
		EACH(only_one_process_has_it),
		EACH(something_else_is_not_taken_for_one),
		EACH(a_torn_one_is_not_read),
		EACH(one_of_another_length_is_not_read),
		EACH(one_that_others_can_write_is_refused),
		EACH(a_link_is_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
