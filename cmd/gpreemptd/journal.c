/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/run_dir.h"
#include "gpu/files.h"
#include "util/macros.h"

#define JOURNAL_VERSION 1u

_Static_assert(sizeof(struct journal_entry) == 16, "journal_entry");
_Static_assert(sizeof(struct journal_file) == 56 + 16 * JOURNAL_ENTRIES, "journal_file");

struct journal {
	int fd; /* its lock makes this process the only one; children do not inherit it */
	struct journal_file *file;
	char boot_id[sizeof(((struct journal_file *)0)->boot_id)]; /* of now */
};

static int read_boot_id(char *ret, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = files_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", size, &text, &len);

	if (r < 0)
		return r;
	snprintf(ret, size, "%.*s", (int)strcspn(text, "\n"), text);
	return *ret ? 0 : -EBADMSG;
}

/* Of others, or for others to write: nothing that is read from it could be relied on. */
static int check_owner(const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink != 1)
		return -EPERM;
	if (st->st_uid != geteuid() || (st->st_mode & 077))
		return -EPERM;
	return 0;
}

static int open_locked(const char *path, off_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	pid_t owner = 0;
	struct stat st;
	int r;

	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Who sits in a driver when it is killed keeps its locks until that lets it go. */
	r = run_dir_lock(fd, &owner);
	if (r < 0 && !(r == -EBUSY && is_dying(owner)))
		return r == -EAGAIN ? -EBUSY : r;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = check_owner(&st);
	if (r < 0)
		return r;
	*ret_size = st.st_size;
	return steal_fd(&fd);
}

static bool is_whole(const struct journal_file *f)
{
	if (f->magic != JOURNAL_MAGIC || f->version != JOURNAL_VERSION)
		return false;
	if (!memchr(f->boot_id, '\0', sizeof(f->boot_id)) || f->daemon < 0 || f->turned_on > 1)
		return false;
	for (size_t i = 0; i < JOURNAL_ENTRIES; i++) {
		const struct journal_entry *e = &f->entries[i];

		if (e->pid < 0 || !memchr(e->level, '\0', sizeof(e->level)))
			return false;
	}
	return true;
}

/* Its blocks are asked for now: a store to the map must not find /run full. */
static int map_file(struct journal *j, off_t size)
{
	bool is_new = size == 0;
	void *map;
	int r;

	if (is_new) {
		r = posix_fallocate(j->fd, 0, sizeof(struct journal_file));
		if (r != 0)
			return -r;
	} else if (size != sizeof(struct journal_file)) {
		return -EBADMSG;
	}
	map = mmap(NULL, sizeof(struct journal_file), PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	j->file = map;
	if (is_new)
		journal_begin(j);
	return is_whole(j->file) ? 0 : -EBADMSG;
}

void journal_closep(struct journal **j)
{
	journal_close(*j);
}

int journal_open(const char *path, struct journal **ret)
{
	_cleanup_(journal_closep) struct journal *j = calloc(1, sizeof(*j));
	off_t size = 0;
	int r;

	if (!j)
		return -ENOMEM;
	j->fd = -1;
	r = read_boot_id(j->boot_id, sizeof(j->boot_id));
	if (r < 0)
		return r;
	j->fd = open_locked(path, &size);
	if (j->fd < 0)
		return j->fd;
	r = map_file(j, size);
	if (r < 0)
		return r;
	*ret = steal_ptr(&j);
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->file)
		munmap(j->file, sizeof(*j->file));
	if (j->fd >= 0)
		close(j->fd);
	free(j);
}

static bool is_of_this_boot(const struct journal *j)
{
	return !strcmp(j->file->boot_id, j->boot_id);
}

size_t journal_left(const struct journal *j, struct journal_entry *ret, size_t max)
{
	size_t n = 0;

	if (!is_of_this_boot(j))
		return 0;
	for (size_t i = 0; i < JOURNAL_ENTRIES; i++) {
		const struct journal_entry *e = &j->file->entries[i];

		if (__atomic_load_n(&e->pid, __ATOMIC_ACQUIRE) == 0)
			continue;
		if (n < max)
			ret[n] = *e;
		n++;
	}
	return n;
}

/* The magic goes first and comes last: dying in between leaves what is seen to be torn. */
void journal_begin(struct journal *j)
{
	struct journal_file *f = j->file;

	__atomic_store_n(&f->magic, 0, __ATOMIC_SEQ_CST);
	f->turned_on = journal_turned_on(j);
	memset(f->entries, 0, sizeof(f->entries));
	memcpy(f->boot_id, j->boot_id, sizeof(f->boot_id));
	f->version = JOURNAL_VERSION;
	f->daemon = getpid();
	__atomic_store_n(&f->magic, JOURNAL_MAGIC, __ATOMIC_SEQ_CST);
}

void journal_take_over(struct journal *j)
{
	if (journal_left(j, NULL, 0) == 0)
		journal_begin(j);
	else
		j->file->daemon = getpid();
}

/* The pid last: an entry is there when all of it is. */
int journal_add(struct journal *j, pid_t pid, uint64_t start_ticks, const char *level)
{
	for (int slot = 0; slot < JOURNAL_ENTRIES; slot++) {
		struct journal_entry *e = &j->file->entries[slot];

		if (e->pid != 0)
			continue;
		e->start_ticks = start_ticks;
		snprintf(e->level, sizeof(e->level), "%s", level);
		__atomic_store_n(&e->pid, pid, __ATOMIC_SEQ_CST);
		return slot;
	}
	return -ENOSPC;
}

void journal_remove(struct journal *j, int slot)
{
	if (slot < 0 || slot >= JOURNAL_ENTRIES)
		return;
	__atomic_store_n(&j->file->entries[slot].pid, 0, __ATOMIC_SEQ_CST);
}

void journal_set_turned_on(struct journal *j, bool turned_on)
{
	__atomic_store_n(&j->file->turned_on, turned_on, __ATOMIC_SEQ_CST);
}

bool journal_turned_on(const struct journal *j)
{
	return is_of_this_boot(j) && j->file->turned_on == 1;
}
