/* SPDX-License-Identifier: MIT */
/* What is asked about whom, and what follows from the answers. */
#include <errno.h>
#include <stdlib.h>

#include "gpu/nvrm/finder_internal.h"

#define CHUNK 64u /* descriptors read before it is another user's turn */
#define CHUNK_OF_OTHERS 2048u /* the same, of a reader: some milliseconds */
/* Questions about processes of one user at a time; as many may be urgent. */
#define ASKED_MOST 256u

/* Who has no GPU open is looked at again ever more seldom. */
#define AGAIN_FIRST_NS (NSEC_PER_SEC / 4)
#define AGAIN_LAST_NS (30 * NSEC_PER_SEC)
#define AGAIN_LAST_TOLD_NS (60 * NSEC_PER_SEC) /* if its openings are told */
/* Where looks come as something happens, and not at the pace of whoever wants to know. */
#define AGAIN_GPU_NS (200 * NSEC_PER_MSEC)
#define PLACE_AGAIN_NS (60 * NSEC_PER_MSEC)

/* Others read for us: what they have read is not of our budget. */
bool finder_by_others(const struct nvrm_finder *f)
{
	return nvrm_answers_fd(f->n) >= 0;
}

void finder_end_question(struct nvrm_finder *f, struct seen *x)
{
	nvrm_forget(f->n, x->question);
	f->n_urgent -= x->urgent;
	x->urgent = false;
	LIST_REMOVE(x, of_asked);
	x->user->n_asked--;
	free(steal_ptr(&x->question));
}

/* ---- answers ---- */

static void plan_next(const struct nvrm_finder *f, struct seen *x, uint64_t now_ns)
{
	uint64_t last_ns = finder_is_told(x) ? AGAIN_LAST_TOLD_NS : AGAIN_LAST_NS;

	x->wait_ns = x->wait_ns ? MIN(x->wait_ns * 2, last_ns) : AGAIN_FIRST_NS;
	if (x->uses_gpu)
		x->wait_ns = 0;
	x->due_ns = now_ns + (x->uses_gpu ? AGAIN_GPU_NS : x->wait_ns);
}

static void take_gpu(struct nvrm_finder *f, struct seen *x, int r, uint64_t now_ns)
{
	const struct nvrm_words *w = &x->question->words;

	f->n_unseen -= x->unseen;
	x->unseen = r < 0; /* what the process itself is the reason of is no error */
	f->n_unseen += x->unseen;
	x->position = r == 0 && w->position != NVRM_LIST_END ? w->position : 0;
	if (r >= 0)
		x->lowest = w->lowest;
	if (x->position)
		return;
	if (r >= 0) { /* else we are short of something: it is not known */
		finder_set_uses_gpu(f, x, r > 0);
		x->uses_driver = w->uses_driver;
		x->likely = x->uses_driver;
		x->looked = true;
		x->opened = 0;
	}
	if (r > 0)
		x->gpu_fd = w->numbers[0];
	if (r >= 0 && w->place)
		finder_put_into(f, x, w->place, now_ns);
	plan_next(f, x, now_ns);
}

/* Of one that uses a GPU it only matters whether it was the one that opened something just now. */
static void take_since(struct nvrm_finder *f, struct seen *x, int r, uint64_t now_ns)
{
	const struct nvrm_words *w = &x->question->words;
	bool other = r >= 0 && w->opened != x->opened;

	if (r >= 0) {
		x->opened = w->opened;
		x->uses_driver |= w->uses_driver;
		x->likely = other || x->uses_driver || x->uses_gpu;
	}
	finder_heard_suspect(f, x, (other && w->uses_driver) || (r > 0 && !x->uses_gpu));
	if (x->uses_gpu && r >= 0) {
		x->lowest += x->opened;
		x->opened = 0;
	}
	if (r <= 0 || x->uses_gpu)
		return;
	x->gpu_fd = w->numbers[0];
	finder_set_uses_gpu(f, x, true);
	plan_next(f, x, now_ns);
}

static void take(struct nvrm_finder *f, struct seen *x, int r, uint64_t now_ns)
{
	switch (x->question->words.what) {
	case NVRM_ASK_SINCE:
		take_since(f, x, r, now_ns);
		break;
	case NVRM_ASK_PLACE:
		if (r >= 0)
			finder_put_into(f, x, x->question->words.place, now_ns);
		break;
	default:
		take_gpu(f, x, r, now_ns);
	}
}

size_t finder_take_answers(struct nvrm_finder *f, uint64_t now_ns)
{
	struct seen *x = LIST_FIRST(&f->asked), *next;
	size_t n = 0;

	for (; x; x = next) {
		int r = nvrm_ask(f->n, x->question);

		next = LIST_NEXT(x, of_asked);
		n += r == -EINPROGRESS;
		if (r == -EINPROGRESS)
			continue;
		take(f, x, r, now_ns);
		finder_end_question(f, x);
	}
	return n;
}

/* ---- questions ---- */

static struct nvrm_words words_of(const struct nvrm_finder *f, const struct seen *x,
				  enum nvrm_what what)
{
	struct nvrm_words w = {
		.what = what,
		.pid = x->pid,
		.lowest = x->lowest,
	};

	if (what != NVRM_ASK_GPU)
		return w;
	w.position = x->position;
	w.left = finder_by_others(f) ? CHUNK_OF_OTHERS : MIN(f->left, CHUNK);
	w.n = x->uses_gpu;
	w.numbers[0] = x->gpu_fd;
	w.wants_place = f->follows;
	return w;
}

static struct nvrm_question *make_question(struct nvrm_finder *f, struct seen *x,
					   enum nvrm_what what)
{
	struct nvrm_question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->asker = q->blamed = x->pid;
	q->user = x->user->uid;
	q->words = words_of(f, x, what);
	x->question = q;
	x->user->n_asked++;
	LIST_INSERT_HEAD(&f->asked, x, of_asked);
	return q;
}

/* The next list forgets it. */
static void end(struct nvrm_finder *f, struct seen *x, uint64_t now_ns)
{
	finder_take_out(f, x);
	finder_set_uses_gpu(f, x, false);
	x->suspect = false;
	x->position = x->met_ns = 0;
	x->due_ns = now_ns + AGAIN_LAST_TOLD_NS;
}

/* Somebody waits for it who might have opened a GPU just now. */
static bool is_urgent(const struct seen *x, enum nvrm_what what)
{
	if (what == NVRM_ASK_SINCE)
		return finder_suspects(x) == LIKELY_SUSPECT;
	return what == NVRM_ASK_PLACE && !x->place;
}

static void look(struct nvrm_finder *f, struct seen *x, enum nvrm_what what, uint64_t now_ns)
{
	int r;

	f->left--;
	x->step = f->step;
	if (what != NVRM_ASK_SINCE && !x->position && !finder_follow_owner(f, x) && f->follows) {
		end(f, x, now_ns);
		return;
	}
	if (!make_question(f, x, what))
		return;
	x->urgent = is_urgent(x, what);
	f->n_urgent += x->urgent;
	if (what == NVRM_ASK_SINCE)
		finder_ask_suspect(f, x);
	if (what == NVRM_ASK_PLACE)
		x->place_ns = now_ns + PLACE_AGAIN_NS;
	r = nvrm_ask(f->n, x->question);
	if (r == -EINPROGRESS)
		return;
	if (what == NVRM_ASK_GPU && !finder_by_others(f))
		f->left -= MIN(f->left, CHUNK) - x->question->words.left;
	take(f, x, r, now_ns);
	finder_end_question(f, x);
}

/* What is to be asked about it now, or NO_QUESTION. */
static int next_question(const struct nvrm_finder *f, const struct seen *x, uint64_t now_ns)
{
	if (x->question)
		return NO_QUESTION;
	if (x->position)
		return NVRM_ASK_GPU;
	if (x->step == f->step)
		return NO_QUESTION;
	if (!f->follows)
		return x->uses_gpu || now_ns >= x->due_ns ? NVRM_ASK_GPU : NO_QUESTION;
	if (finder_suspects(x))
		return NVRM_ASK_SINCE;
	if (x->met_ns && now_ns < x->met_ns + YOUNG_NS)
		return now_ns >= x->place_ns ? NVRM_ASK_PLACE : NO_QUESTION;
	return now_ns >= x->due_ns ? NVRM_ASK_GPU : NO_QUESTION;
}

static bool is_enough(const struct user *u, const struct seen *x, int what)
{
	return u->n_asked >= (is_urgent(x, (enum nvrm_what)what) ? 2 : 1) * ASKED_MOST;
}

/* The next one of the user that is to be looked at. False: there is none in this step. */
static bool visit(struct nvrm_finder *f, struct user *u, bool urgent, uint64_t now_ns)
{
	for (size_t i = 0; i < u->n && u->step != f->step; i++) {
		struct seen *x = TAILQ_FIRST(&u->processes);
		int what = next_question(f, x, now_ns);

		f->busy |= x->question && finder_suspects(x);
		if (urgent && what != NO_QUESTION && !is_urgent(x, (enum nvrm_what)what))
			what = NO_QUESTION;
		if (what != NO_QUESTION && is_enough(u, x, what)) {
			f->held_back = true;
			break;
		}
		TAILQ_REMOVE(&u->processes, x, of_user);
		TAILQ_INSERT_TAIL(&u->processes, x, of_user);
		if (what == NO_QUESTION)
			continue;
		look(f, x, (enum nvrm_what)what, now_ns);
		return true;
	}
	u->step = f->step;
	return false;
}

bool finder_look_around(struct nvrm_finder *f, bool urgent, uint64_t now_ns)
{
	size_t idle = 0;

	if (urgent && !f->follows)
		return false;
	f->step++;
	f->held_back = f->busy = false;
	while (f->left > 1 && idle < f->n_users) { /* with less nothing could be read */
		struct user *u = TAILQ_FIRST(&f->users);

		TAILQ_REMOVE(&f->users, u, link);
		TAILQ_INSERT_TAIL(&f->users, u, link);
		idle = visit(f, u, urgent, now_ns) ? 0 : idle + 1;
	}
	return idle < f->n_users || f->held_back;
}
