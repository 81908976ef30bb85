/* SPDX-License-Identifier: MIT */
/*
 * Reading a real process. A page without access stands in for a GPU buffer's mapping: like it,
 * it is refused by process_vm_readv(2) and readable through /proc/PID/mem.
 */
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/readers/child.h"
#include "tests/readers/rig.h"

#define PAGE 4096u

enum page { PLAIN, NO_ACCESS, GONE, LAST, N_PAGES };

struct memory {
	struct gkfd *k;
	struct child child;
	uint8_t *pages; /* here; in the child the same addresses have other content */
};

static void fill_in_child(void *arg)
{
	uint8_t *pages = arg;

	for (int i = 0; i < N_PAGES; i++)
		memset(pages + (size_t)i * PAGE, 0x10 + i, PAGE);
	if (mprotect(pages + NO_ACCESS * PAGE, PAGE, PROT_NONE) < 0 ||
	    munmap(pages + GONE * PAGE, PAGE) < 0)
		_exit(4);
}

static int start(void **state)
{
	struct memory *m = calloc(1, sizeof(*m));

	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(""), &m->k), 0);
	m->pages = mmap(NULL, N_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	assert_true(m->pages != MAP_FAILED);
	child_start(&m->child, fill_in_child, m->pages);
	*state = m;
	return 0;
}

static int end(void **state)
{
	struct memory *m = *state;

	assert_int_equal(child_end(&m->child), 0);
	munmap(m->pages, N_PAGES * PAGE);
	gkfd_free(m->k);
	free(m);
	return 0;
}

static uint64_t address(const struct memory *m, enum page page, size_t offset)
{
	return (uint64_t)(uintptr_t)m->pages + (size_t)page * PAGE + offset;
}

static int read_mem(struct memory *m, pid_t pid, struct gkfd_span *spans, size_t n)
{
	struct gkfd_mem mem = GKFD_MEM_NONE;
	int r = m->k->transport->read_mem(m->k->data, pid, &mem, spans, n);

	closep(&mem.fd);
	return r;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void the_childs_bytes_are_read_not_ours(void **state)
{
	struct memory *m = *state;
	uint64_t first = 0, second = 0;
	struct gkfd_span spans[] = {
		{ .addr = address(m, PLAIN, 8), .buf = &first, .len = 8 },
		{ .addr = address(m, LAST, PAGE - 8), .buf = &second, .len = 8 },
	};

	assert_int_equal(read_mem(m, m->child.pid, spans, 2), 0);
	assert_true(spans[0].ok && spans[1].ok);
	assert_true(first == 0x1010101010101010);
	assert_true(second == 0x1313131313131313);
}

static void what_the_fast_call_refuses_is_read_through_the_file(void **state)
{
	struct memory *m = *state;
	uint8_t bytes[16];
	struct iovec local = { bytes, sizeof(bytes) };
	struct iovec remote = { m->pages + NO_ACCESS * PAGE, sizeof(bytes) };
	struct gkfd_span span = {
		.addr = address(m, NO_ACCESS, 0),
		.buf = bytes,
		.len = sizeof(bytes),
	};

	assert_int_equal(process_vm_readv(m->child.pid, &local, 1, &remote, 1, 0), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(read_mem(m, m->child.pid, &span, 1), 0);
	assert_true(span.ok);
	assert_int_equal(bytes[0], 0x11);
	assert_int_equal(bytes[15], 0x11);
}

static void a_span_that_cannot_be_read_fails_alone(void **state)
{
	struct memory *m = *state;
	uint8_t bytes[5][32];
	struct gkfd_span spans[] = {
		{ .addr = address(m, PLAIN, 0), .buf = bytes[0], .len = 32 },
		{ .addr = address(m, GONE, 0), .buf = bytes[1], .len = 32 },
		{ .addr = address(m, NO_ACCESS, PAGE - 16), .buf = bytes[2], .len = 32 },
		{ .addr = UINT64_MAX - 7, .buf = bytes[3], .len = 32 },
		{ .addr = address(m, LAST, 0), .buf = bytes[4], .len = 32 },
	};

	assert_int_equal(read_mem(m, m->child.pid, spans, ARRAY_SIZE(spans)), 0);
	assert_true(spans[0].ok);
	assert_false(spans[1].ok);
	assert_false(spans[2].ok); /* reaches into the page that is gone */
	assert_false(spans[3].ok);
	assert_true(spans[4].ok);
	assert_int_equal(bytes[4][31], 0x13);
}

static void more_spans_than_one_call_takes_are_all_read(void **state)
{
	enum { N = 3000 };
	struct memory *m = *state;
	struct gkfd_span *spans = calloc(N, sizeof(*spans));
	uint8_t bytes[N] = { 0 };

	for (size_t i = 0; i < N; i++) {
		enum page page = i % 700 == 699 ? GONE : i % 500 == 499 ? NO_ACCESS : PLAIN;

		spans[i] = (struct gkfd_span){
			.addr = address(m, page, i),
			.buf = &bytes[i],
			.len = 1,
		};
	}
	assert_int_equal(read_mem(m, m->child.pid, spans, N), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(spans[i].ok, i % 700 != 699);
		if (spans[i].ok)
			assert_int_equal(bytes[i], i % 500 == 499 ? 0x11 : 0x10);
	}
	free(spans);
}

static void empty_spans_and_no_spans_are_fine(void **state)
{
	struct memory *m = *state;
	struct gkfd_span span = { .addr = 0, .buf = NULL, .len = 0 };

	assert_int_equal(read_mem(m, m->child.pid, NULL, 0), 0);
	assert_int_equal(read_mem(m, m->child.pid, &span, 1), 0);
	assert_true(span.ok);
}

static void a_process_that_is_gone_is_esrch(void **state)
{
	struct memory *m = *state;
	struct child other;
	uint64_t word;
	struct gkfd_span span = {
		.addr = address(m, PLAIN, 0), .buf = &word, .len = 8, .ok = true
	};

	child_start(&other, NULL, NULL);
	assert_int_equal(child_end(&other), 0);
	assert_int_equal(read_mem(m, other.pid, &span, 1), -ESRCH);
	assert_false(span.ok);
}

static void a_zombie_has_no_memory(void **state)
{
	struct memory *m = *state;
	struct child other;
	siginfo_t info;
	uint64_t word;
	struct gkfd_span span = { .addr = address(m, PLAIN, 0), .buf = &word, .len = 8 };

	child_start(&other, NULL, NULL);
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)other.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(read_mem(m, other.pid, &span, 1), -ESRCH);
	child_end(&other);
}

static void hide(void *arg)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		_exit(4);
}

static void a_process_we_may_not_trace_is_eperm(void **state)
{
	struct memory *m = *state;
	struct child hidden;
	pid_t reader;
	int status;

	child_start(&hidden, hide, NULL);
	reader = fork();
	assert_true(reader >= 0);
	if (reader == 0) {
		uint64_t word;
		struct gkfd_span span = {
			.addr = address(m, PLAIN, 0),
			.buf = &word,
			.len = sizeof(word),
		};

		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(3);
		_exit(read_mem(m, hidden.pid, &span, 1) == -EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	assert_int_equal(child_end(&hidden), 0);
}

static void no_descriptor_stays_open(void **state)
{
	struct memory *m = *state;
	int before = count_fds();

	what_the_fast_call_refuses_is_read_through_the_file(state);
	a_span_that_cannot_be_read_fails_alone(state);
	assert_int_equal(count_fds(), before);
	child_answers(&m->child); /* and the target never stopped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_childs_bytes_are_read_not_ours),
		cmocka_unit_test(what_the_fast_call_refuses_is_read_through_the_file),
		cmocka_unit_test(a_span_that_cannot_be_read_fails_alone),
		cmocka_unit_test(more_spans_than_one_call_takes_are_all_read),
		cmocka_unit_test(empty_spans_and_no_spans_are_fine),
		cmocka_unit_test(a_process_that_is_gone_is_esrch),
		cmocka_unit_test(a_zombie_has_no_memory),
		cmocka_unit_test(a_process_we_may_not_trace_is_eperm),
		cmocka_unit_test(no_descriptor_stays_open),
	};

	return cmocka_run_group_tests(tests, start, end) != 0;
}
