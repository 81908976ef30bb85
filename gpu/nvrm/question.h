/* SPDX-License-Identifier: MIT */
/*
 * What is asked about a process, where its owner decides how long that takes: its files in /proc,
 * copies of its descriptors. To read a link there, or what a process is, is to have a share of its
 * file or of its memory for a moment; if the process lets go of it just then, whoever reads does
 * what there is to do at the last close, and waits for it. So a daemon has it asked by a process
 * that nobody needs (gpu/helpers/readers.h), and goes on with other things until the answer comes.
 */
#ifndef GPREEMPT_GPU_NVRM_QUESTION_H
#define GPREEMPT_GPU_NVRM_QUESTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/helpers/borrow.h"
#include "gpu/helpers/readers.h"

#define NVRM_COPIES READER_FDS /* descriptors with one answer */
#define NVRM_ASKED_PIDS 64u /* with one question */
#define NVRM_LIST_END BORROW_END /* of a position in a list */

enum nvrm_what {
	/* Copies of its descriptors of the control device. */
	NVRM_ASK_COPIES,
	/*
	 * Whether it has a GPU open, and as which descriptor; numbers[0] is tried first, if any.
	 * And, if it is looked at to the end, the lowest number that stands for none, and its place
	 * if that is wanted.
	 */
	NVRM_ASK_GPU,
	/*
	 * Whether it has opened one since: who opens gets the lowest number. How many it has opened
	 * from that one on.
	 */
	NVRM_ASK_SINCE,
	/* Its place: the mount namespace that it is in. */
	NVRM_ASK_PLACE,
	/* The same, and the numbers of nodes there, which are watched from now on. */
	NVRM_ASK_NODES,
	/* The same, and its parent. */
	NVRM_ASK_PARENT,
	/* What some of its descriptors point to. */
	NVRM_ASK_LINKS,
	/* Which processes look like servers of MPS. */
	NVRM_ASK_SERVERS,
};

/* As it goes to a reader and comes back. */
struct nvrm_words {
	uint32_t what;
	int32_t pid;
	uint64_t device; /* with copies and nodes; the transport's */
	uint64_t position; /* among its descriptors, where to go on; NVRM_LIST_END: at the end */
	uint32_t left; /* that may be read; what was not used */
	uint32_t n; /* numbers, or copies */
	uint32_t numbers[NVRM_ASKED_PIDS]; /* of a descriptor, of processes or of nodes */
	uint32_t lowest; /* that stands for no descriptor */
	bool wants_place;

	/* the answer's */
	bool uses_driver; /* some descriptor is the driver's, if not a GPU's */
	uint64_t place; /* 0: not known, or another one by now */
	int32_t unwatched; /* -errno: why some nodes are not watched */
	uint32_t opened; /* from the lowest number on */
	uint32_t missed; /* a descriptor was closed as it was copied */
	int32_t parent; /* 0: not known */
	uint64_t servers; /* a bit for each */
	/* The asker's to drop; with NVRM_ASK_LINKS only numbers, and what these point to. */
	struct borrowed copies[NVRM_COPIES];
};

enum nvrm_question_state { NVRM_UNASKED, NVRM_ASKED, NVRM_ANSWERED };

struct nvrm_question { /* zeroed before the first */
	enum nvrm_question_state state;
	pid_t asker; /* the process for whose sake it is asked: its user's readers are used */
	pid_t blamed; /* the one that is looked into: it is left alone if nothing comes back */
	uid_t user; /* whose readers */
	bool apart; /* a second one of theirs, as another user's process may make it hang */
	struct nvrm_words words;
	int result; /* a GPU: 1, or 0, where position tells whether that is all; or -errno */

	/* the transport's */
	struct readers_task task;
	void *transport;
};

struct nvrm;

/* One about that process, for the sake of the question's asker. */
void nvrm_question_about(struct nvrm *n, struct nvrm_question *q, pid_t pid,
			 const struct nvrm_words *words);
/*
 * Asks, or asks for the answer: -EINPROGRESS as long as there is none. Then a question is left as
 * it is, and nvrm_ask() called again when the transport has heard something.
 */
int nvrm_ask(struct nvrm *n, struct nvrm_question *q);
int nvrm_answers_fd(const struct nvrm *n); /* -1: there is never anything to hear */
/* It is not waited for any more, whatever comes. */
void nvrm_forget(struct nvrm *n, struct nvrm_question *q);

void nvrm_question_end(struct nvrm_question *q, int result); /* it is answered */

/* Finds out here and now; as nvrm_question.result. */
int nvrm_answer(struct nvrm *n, struct nvrm_words *w);

/* ---- by a reader; @user is the data of nvrm_transport_syscall ---- */

int nvrm_question_serve(void *user, pid_t pid, const void *request, size_t len,
			struct reader_room *room);

#endif
