/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

#define RESCAN_NS (30 * NSEC_PER_SEC)
#define HEAR_MS 20
#define RESCAN_EMPTY_NS (1 * NSEC_PER_SEC) /* a new context may use new clients */

static void forget_groups(struct nvrm_process *p, uint32_t client)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_groups; i++) {
		if (p->groups[i].client == client)
			free(p->groups[i].channels);
		else
			p->groups[kept++] = p->groups[i];
	}
	p->n_groups = kept;
}

void nvrm_client_drop(struct nvrm_process *p, size_t i)
{
	struct nvrm_client *c = &p->clients[i];

	forget_groups(p, c->handle);
	p->entrusted = false; /* so that it is told as a change */
	if (c->guard_slot >= 0)
		guard_disarm(p->guard, c->guard_slot); /* its copy is not to be the last one */
	p->n->transport->drop_fd(p->n->data, c->fd);
	nvrm_objects_done(&c->objects);
	p->n_clients--;
	memmove(c, c + 1, (p->n_clients - i) * sizeof(*c));
}

void nvrm_process_drop(struct nvrm_process *p)
{
	while (p->n_clients > 0)
		nvrm_client_drop(p, p->n_clients - 1);
	nvrm_groups_free(p->groups, p->n_groups);
	p->groups = NULL;
	p->n_groups = 0;
}

#define HANDLE_BITS 24
#define HANDLE_MASK ((1u << HANDLE_BITS) - 1)

uint32_t nvrm_group_id(const struct nvrm_process *p, const struct nvrm_group *g)
{
	uint32_t client = 0;

	for (size_t i = 0; i < p->n_clients; i++)
		client += p->clients[i].handle < g->client;
	return client << HANDLE_BITS | (g->handle & HANDLE_MASK);
}

struct nvrm_group *nvrm_group_find(struct nvrm_process *p, uint32_t id)
{
	for (size_t i = 0; i < p->n_groups; i++)
		if (nvrm_group_id(p, &p->groups[i]) == id)
			return &p->groups[i];
	return NULL;
}

bool nvrm_process_ended(const struct nvrm_process *p)
{
	struct pollfd end = { .fd = p->pidfd, .events = POLLIN };
	int r;

	do {
		r = poll(&end, 1, 0);
	} while (r < 0 && errno == EINTR);
	return r != 0;
}

/* What may be held is not given up for one answer that may have been another trouble's. */
int nvrm_client_is_there(struct nvrm *n, const struct nvrm_client *c)
{
	int whose = nvrm_whose(n, c->fd, c->handle);

	if (whose != NVRM_THIS)
		whose = nvrm_whose(n, c->fd, c->handle);
	return whose < 0 ? whose : whose == NVRM_THIS;
}

int nvrm_process_check(struct nvrm_process *p)
{
	int result = 0;

	if (p->n_clients > 0 && nvrm_process_ended(p))
		nvrm_process_drop(p);
	for (size_t i = p->n_clients; i-- > 0;) {
		int r = nvrm_client_is_there(p->n, &p->clients[i]);

		if (r < 0)
			result = r;
		if (r != 0)
			continue;
		nvrm_client_drop(p, i);
		p->doubtful = true;
	}
	return result;
}

/* Slices that somebody else has given it are not ours to take, if he lives. */
static bool is_sliced(const struct nvrm_process *p)
{
	for (size_t i = 0; i < p->n_groups; i++) {
		if (p->groups[i].sliced)
			return true;
	}
	return false;
}

/* Nobody comes after us: what the driver refuses is tried once more. */
bool nvrm_undo_all(struct nvrm_process *p)
{
	for (int tries = 0; tries < 2; tries++) {
		if (nvrm_groups_off(p, NVRM_ALL_GPUS) > 0)
			nvrm_let_go(&p, 1, NVRM_ALL_GPUS, NULL);
		if (is_sliced(p))
			nvrm_slice(p, NVRM_ALL_GPUS, 0, NULL);
	}
	return nvrm_groups_off(p, NVRM_ALL_GPUS) == 0 && !is_sliced(p);
}

/* ---- looks ---- */

enum stage { CLOSED, FURTHER, DISCOVER, GROUPS, SHARED };

struct nvrm_look {
	enum stage stage;
	bool changed; /* its groups */
	struct nvrm_question question;
	struct nvrm_search search;
	struct nvrm_sharing sharing;
};

static void end_look(struct nvrm_process *p)
{
	if (!p->look)
		return;
	nvrm_forget(p->n, &p->look->question);
	nvrm_search_done(p, &p->look->search);
	nvrm_sharing_done(&p->look->sharing);
	free(steal_ptr(&p->look));
}

static void begin_discovery(struct nvrm_process *p)
{
	p->look->stage = DISCOVER;
	nvrm_search_init(p, &p->look->search, p->doubtful);
	p->doubtful = false;
}

static int begin_look(struct nvrm_process *p)
{
	p->look = calloc(1, sizeof(*p->look));
	if (!p->look)
		return -ENOMEM;
	p->unanswered = 0;
	p->look->search.fd = -1;
	p->look->question.asker = p->pid;
	if (!p->opened)
		begin_discovery(p);
	return 0;
}

bool nvrm_process_waits(const struct nvrm_process *p)
{
	const struct nvrm_look *l = p->look;

	return l && (l->question.state == NVRM_ASKED ||
		     (l->sharing.other && nvrm_process_waits(l->sharing.other)));
}

static bool is_due(const struct nvrm_process *p)
{
	uint64_t now_ns = nvrm_now_ns(p->n);
	uint64_t wait_ns = p->n_groups > 0 ? RESCAN_NS : RESCAN_EMPTY_NS;

	return now_ns - p->found_ns >= wait_ns;
}

/*
 * The reader that was to look hangs, has died or could not be started; it was not the process that
 * was gone or refused. What is known of one that is open stays then, and the look goes on without
 * the answer, or the owner of a process could end every hold of it: 0. Else @r.
 */
static int bear_silence(struct nvrm_process *p, int r)
{
	int answered = p->look->question.result;

	if (r >= 0 || r == -EINPROGRESS || r != answered || r == -ESRCH || r == -EPERM ||
	    r == -EACCES || r == -ENODEV || r == -ENOENT)
		return r;
	p->unanswered = r;
	if (!p->opened)
		return r;
	p->look->question.result = 0; /* the driver may say the same for another reason */
	return 0;
}

static int check_closed(struct nvrm_process *p, struct nvrm_failure *f)
{
	int r = bear_silence(p, nvrm_has_closed(p, &p->look->question));

	if (r == -EINPROGRESS)
		return r;
	if (r < 0)
		return nvrm_fail(f, r, NVRM_WHY_SYSTEM, "looking at its descriptors");
	p->doubtful |= r > 0;
	p->look->stage = FURTHER;
	if (p->doubtful)
		begin_discovery(p);
	return 0;
}

static int look_further(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *f)
{
	int r = nvrm_look_further(p, left, f);

	if (r == -EINPROGRESS)
		return r;
	p->doubtful |= r == -ESTALE;
	if (p->doubtful || (r >= 0 && is_due(p)))
		begin_discovery(p);
	else if (r < 0)
		return r;
	else
		p->look->stage = GROUPS;
	return 0;
}

static int discover(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *f)
{
	int r = nvrm_discover(p, &p->look->search, &p->look->question, left, f);

	if (r == -EINPROGRESS)
		return r;
	r = bear_silence(p, r);
	if (r < 0 && p->opened && (f->why == NVRM_WHY_NO_CONTEXT || f->why == NVRM_WHY_NOT_FOUND))
		r = 0; /* it has ended all its contexts, and may begin others */
	if (r < 0 || p->unanswered) {
		p->doubtful |= p->look->search.anew;
		nvrm_search_done(p, &p->look->search); /* what it closes meanwhile is not ours */
	}
	if (r >= 0)
		p->look->stage = GROUPS;
	return r;
}

static int update_groups(struct nvrm_process *p, struct nvrm_failure *f)
{
	int r = nvrm_groups_update(p, f);

	if (r >= 0 && !p->opened && p->n_groups == 0)
		return nvrm_fail(f, -ENOENT, NVRM_WHY_NO_CONTEXT, NULL);
	if (r >= 0)
		p->look->stage = SHARED;
	p->look->changed = !p->entrusted;
	return r;
}

/* Nothing stays done to a process that may not, or could not, be freed by the guard. */
static int check(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *f)
{
	int shared = nvrm_check_shared(p, &p->look->sharing, &p->look->question, left, f);
	int r = bear_silence(p, shared);

	if (r == -EINPROGRESS)
		return r;
	if (p->serves)
		r = shared; /* who shares its context may be another by now */
	for (size_t i = 0; shared >= 0 && i < p->n_groups; i++) {
		p->look->changed |= !p->groups[i].checked; /* it can be held from now on */
		p->groups[i].checked = true;
	}
	if (r >= 0)
		r = nvrm_entrust(p, f);
	if (r < 0)
		nvrm_undo_all(p);
	return r;
}

/* Whoever looks like a server may have a client by now, and its groups be the same. */
static bool is_to_check(const struct nvrm_process *p)
{
	bool unchecked = false;

	for (size_t i = 0; i < p->n_groups; i++)
		unchecked |= !p->groups[i].checked;
	return !p->plain && (p->look->changed || p->serves || unchecked);
}

static int go_on(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *f)
{
	int r = 0;

	if (p->look->stage == CLOSED)
		r = check_closed(p, f);
	if (r >= 0 && p->look->stage == FURTHER)
		r = look_further(p, left, f);
	if (r >= 0 && p->look->stage == DISCOVER)
		r = discover(p, left, f);
	if (r >= 0 && p->look->stage == GROUPS)
		r = update_groups(p, f);
	if (r >= 0 && is_to_check(p))
		r = check(p, left, f);
	return r < 0 ? r : p->look->changed;
}

static int fail_ended(struct nvrm_process *p, struct nvrm_failure *f)
{
	end_look(p);
	nvrm_process_drop(p);
	return nvrm_fail(f, -ESRCH, NVRM_WHY_EXITED, NULL);
}

int nvrm_process_look(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *ret_failure)
{
	struct nvrm_failure failure = { .why = NVRM_WHY_SYSTEM };
	int r;

	if (nvrm_process_ended(p))
		return fail_ended(p, ret_failure);
	r = p->look ? 0 : begin_look(p);
	if (r >= 0)
		r = go_on(p, left, &failure);
	if (r == -EINPROGRESS)
		return r;
	if (nvrm_process_ended(p))
		return fail_ended(p, ret_failure);
	end_look(p);
	if (r < 0 && ret_failure)
		*ret_failure = failure;
	if (r < 0)
		return r;
	p->opened = true;
	p->quest = NULL;
	return r;
}

int nvrm_process_refresh(struct nvrm_process *p, struct nvrm_failure *ret_failure)
{
	int r;

	do {
		struct pollfd answer = { .fd = nvrm_answers_fd(p->n), .events = POLLIN };
		unsigned int left = UINT_MAX;

		r = nvrm_process_look(p, &left, ret_failure);
		if (r == -EINPROGRESS && nvrm_process_waits(p)) {
			poll(&answer, 1, HEAR_MS);
			p->n->transport->hear(p->n->data);
		}
	} while (r == -EINPROGRESS);
	return r;
}

/* ---- beginning and ending ---- */

void nvrm_process_close(struct nvrm_process *p)
{
	if (!p)
		return;
	end_look(p);
	nvrm_undo_all(p);
	nvrm_process_drop(p);
	closep(&p->pidfd);
	free(p);
}

static void process_closep(struct nvrm_process **p)
{
	nvrm_process_close(*p);
}

int nvrm_process_begin(struct nvrm *n, pid_t pid, struct nvrm_process **ret,
		       struct nvrm_failure *ret_failure)
{
	_cleanup_(process_closep) struct nvrm_process *p = calloc(1, sizeof(*p));

	if (!p)
		return nvrm_fail(ret_failure, -ENOMEM, NVRM_WHY_SYSTEM, NULL);
	p->n = n;
	p->pid = pid;
	p->pidfd = n->transport->pidfd(n->data, pid);
	if (p->pidfd == -ESRCH)
		return nvrm_fail(ret_failure, -ESRCH, NVRM_WHY_EXITED, NULL);
	if (p->pidfd < 0)
		return nvrm_fail(ret_failure, p->pidfd, NVRM_WHY_SYSTEM, "opening the process");
	*ret = steal_ptr(&p);
	return 0;
}

int nvrm_process_open(struct nvrm *n, pid_t pid, struct nvrm_process **ret,
		      struct nvrm_failure *ret_failure)
{
	_cleanup_(process_closep) struct nvrm_process *p = NULL;
	int r = nvrm_process_begin(n, pid, &p, ret_failure);

	if (r >= 0)
		r = nvrm_process_refresh(p, ret_failure);
	if (r < 0)
		return r;
	*ret = steal_ptr(&p);
	return 0;
}
