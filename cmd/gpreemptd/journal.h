/* SPDX-License-Identifier: MIT */
/*
 * What the daemon holds, written down before it is held: a page under /run that outlives it. With
 * stock KFD the driver lets go when the holder dies; the journal is for what it would not undo,
 * and so that whoever cleans up (the unit's ExecStopPost, the next start) knows whom to look at.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_JOURNAL_H
#define GPREEMPT_CMD_GPREEMPTD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JOURNAL_ENTRIES 1024
#define JOURNAL_MAGIC 0x6a726e6cu

struct journal_entry {
	uint64_t start_ticks;
	int32_t pid; /* 0: free */
	char level[4]; /* "K2" */
};

struct journal_file {
	uint32_t magic, version;
	char boot_id[40]; /* of the boot its entries belong to */
	int32_t daemon; /* pid of the writer */
	uint32_t turned_on; /* the driver's scheduler, by a daemon of that boot: 1 */
	struct journal_entry entries[JOURNAL_ENTRIES];
};

struct journal;

/*
 * Opens or makes it; entries of earlier are kept until journal_begin(). -EBADMSG: not one, or torn:
 * remove it and begin anew. -EBUSY: another process has it. -EPERM: it is not ours alone to write.
 */
int journal_open(const char *path, struct journal **ret);
void journal_close(struct journal *j); /* accepts NULL */
void journal_closep(struct journal **j);

/* What an earlier daemon of this boot left; how many there are. */
size_t journal_left(const struct journal *j, struct journal_entry *ret, size_t max);
/* Empties it of entries and makes it this process's. */
void journal_begin(struct journal *j);
/* The same, but what could not be cleaned up stays, for whoever cleans up next. */
void journal_take_over(struct journal *j);

/* A store to memory each. A slot, or -ENOSPC: then nothing more may be held. */
int journal_add(struct journal *j, pid_t pid, uint64_t start_ticks, const char *level);
void journal_remove(struct journal *j, int slot);

/*
 * Whether the driver's own scheduler is on because a daemon of this boot turned it on. It outlives
 * us, so whoever comes next must know whose it is.
 */
void journal_set_turned_on(struct journal *j, bool turned_on);
bool journal_turned_on(const struct journal *j);

#endif
