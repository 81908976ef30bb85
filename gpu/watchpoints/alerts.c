/* SPDX-License-Identifier: MIT */
#include "gpu/watchpoints/alerts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/macros.h"

#define FIRST_SIGNAL 1 /* behind SIGRTMIN */
#define SIGNALS 24u /* a reader has one of its own: by that its points are known */
#define PATIENCE_NS (300 * NSEC_PER_MSEC)
#define AGAIN_FIRST_NS NSEC_PER_SEC
#define AGAIN_LAST_NS (60 * NSEC_PER_SEC)

struct place { /* of a point */
	struct alert *alert; /* NULL: of none, or not known yet */
	uint32_t address;
	uint64_t told; /* the last time, as alerts.requests counts; 0: never */
};

struct sender { /* a reader, by its signal */
	uint32_t reader; /* 0: none */
	struct place *places; /* by the number of the point */
	size_t n, room;
	uint64_t ended; /* the last one that had it, as alerts.ends counts */
};

/* A reader may be at something else when an alert ends: it is told later to remove the points. */
struct farewell {
	LIST_ENTRY(farewell) link;
	struct alerts *all;
	struct readers_task task;
	uint32_t id;
};

struct alerts {
	struct readers *readers;
	int signals;
	pid_t tid;
	LIST_HEAD(, alert) list;
	LIST_HEAD(, farewell) farewells;
	TAILQ_HEAD(, alert) hit;
	struct sender senders[SIGNALS];
	bool ids[POINTS_IDS];
	uint64_t ends, traps;
	uint64_t requests; /* sent to readers so far: what was told before which */
};

/* ---- senders ---- */

static struct sender *sender_of(struct alerts *all, uint32_t reader)
{
	for (size_t i = 0; i < SIGNALS; i++) {
		if (all->senders[i].reader == reader)
			return &all->senders[i];
	}
	return NULL;
}

/*
 * The one that has been nobody's for the longest: a reader that was killed has its watchpoints
 * until it has come to its end, and what they tell meanwhile is not a successor's. NULL: there is
 * none.
 */
static struct sender *free_sender(struct alerts *all)
{
	struct sender *best = NULL;

	for (size_t i = 0; i < SIGNALS; i++) {
		struct sender *s = &all->senders[i];

		if (!s->reader && (!best || s->ended < best->ended))
			best = s;
	}
	return best;
}

static int signal_of(const struct alerts *all, const struct sender *s)
{
	return SIGRTMIN + FIRST_SIGNAL + (int)(s - all->senders);
}

/* Whichever reader had them. */
static void forget_places(struct alert *a)
{
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sender *s = &a->all->senders[i];

		for (size_t k = 0; k < s->n; k++) {
			if (s->places[k].alert == a)
				s->places[k].alert = NULL;
		}
	}
}

static struct place *place_of(struct sender *s, size_t number)
{
	size_t n = s->n;

	if (array_reserve(&s->places, number + 1, &s->room, sizeof(*s->places)) < 0)
		return NULL;
	s->n = MAX(s->n, number + 1);
	for (; n < s->n; n++)
		s->places[n] = (struct place){ .alert = NULL };
	return &s->places[number];
}

/* ---- hits ---- */

static void hit(struct alert *a, uint32_t written)
{
	a->written |= written;
	if (!a->is_hit)
		TAILQ_INSERT_TAIL(&a->all->hit, a, hit);
	a->is_hit = true;
}

/* Without room to remember which point told, all are opened anew. */
static void note_told(struct alert *a, int32_t number)
{
	if (array_reserve(&a->told, a->n_told + 1, &a->told_room, sizeof(*a->told)) < 0)
		a->reader = 0;
	else
		a->told[a->n_told++] = number;
	a->state = a->state == ALERT_ARMED ? ALERT_OFF : a->state;
}

/* There were more signals than may wait: who it was is not known. */
static void lose_count(struct alerts *all)
{
	struct alert *a;

	LIST_FOREACH(a, &all->list, link) {
		a->reader = 0;
		a->state = ALERT_OFF;
	}
}

static void take_signal(struct alerts *all, const struct signalfd_siginfo *info)
{
	unsigned int i = info->ssi_signo - (unsigned int)(SIGRTMIN + FIRST_SIGNAL);
	struct sender *s = &all->senders[MIN(i, SIGNALS - 1)];
	struct place *p;

	all->traps++;
	if (i >= SIGNALS || !s->reader || info->ssi_fd < 0)
		return;
	p = place_of(s, (size_t)info->ssi_fd);
	if (!p) {
		lose_count(all);
		return;
	}
	p->told = all->requests;
	if (!p->alert)
		return; /* whose it is the answer of the reader says: add_place() */
	note_told(p->alert, info->ssi_fd);
	hit(p->alert, 1u << p->address);
}

/* It may have told before it is known whose it is, and does so once. */
static int add_place(struct sender *s, const struct point *p, struct alert *a)
{
	struct place *place;

	if (p->number < 0 || p->address >= POINTS_ADDRESSES)
		return -EPROTO;
	place = place_of(s, (size_t)p->number);
	if (!place)
		return -ENOMEM;
	place->alert = a;
	place->address = p->address;
	if (place->told < a->request)
		return 0;
	note_told(a, p->number);
	hit(a, 1u << p->address);
	return 0;
}

static void take_signals(struct alerts *all)
{
	struct signalfd_siginfo info[16];
	ssize_t n;

	do {
		n = read(all->signals, info, sizeof(info));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*info); i++) {
			if (info[i].ssi_signo == SIGIO)
				lose_count(all);
			else
				take_signal(all, &info[i]);
		}
	} while (n == sizeof(info));
}

/* What a reader had is gone with it, but for what it has told. */
static void on_reader_ended(void *user, uint32_t reader)
{
	struct alerts *all = user;
	struct sender *s = sender_of(all, reader);
	struct alert *a;

	if (!s)
		return;
	take_signals(all);
	s->reader = 0;
	s->n = 0;
	s->ended = ++all->ends;
	LIST_FOREACH(a, &all->list, link) {
		if (a->reader != reader)
			continue;
		a->reader = 0;
		a->state = ALERT_OFF;
	}
}

struct alert *alerts_next(struct alerts *all, uint32_t *ret_written)
{
	struct alert *a;

	if (TAILQ_EMPTY(&all->hit))
		take_signals(all);
	a = TAILQ_FIRST(&all->hit);
	if (!a)
		return NULL;
	TAILQ_REMOVE(&all->hit, a, hit);
	a->is_hit = false;
	*ret_written = a->written;
	a->written = 0;
	return a;
}

bool alert_is_silent(struct alert *a)
{
	take_signals(a->all);
	return a->state == ALERT_ARMED && !a->is_hit;
}

/* ---- arming ---- */

static struct alert *alert_of(struct readers_task *t)
{
	return container_of(t, struct alert, task);
}

static size_t write_request(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	struct alert *a = alert_of(t);
	size_t bytes = a->n_told * sizeof(*a->told);
	struct sender *s = sender_of(a->all, reader);
	struct points_request q = { .id = a->id, .is_new = a->reader != reader, .n = a->n };

	if (!s)
		s = free_sender(a->all); /* no more readers than there are signals */
	if (!s || max < sizeof(q) + bytes)
		return SIZE_MAX;
	if (q.is_new)
		forget_places(a);
	s->reader = reader;
	a->reader = reader;
	a->request = ++a->all->requests;
	q.owner = (struct points_owner){ a->all->tid, signal_of(a->all, s) };
	q.n_told = q.is_new ? 0 : (uint32_t)a->n_told;
	memcpy(q.addresses, a->addresses, sizeof(q.addresses));
	memcpy(to, &q, sizeof(q));
	for (uint32_t i = 0; i < q.n_told; i++) /* whoever is watched next may get that number */
		s->places[a->told[i]].alert = NULL;
	if (q.n_told)
		memcpy((char *)to + sizeof(q), a->told, bytes);
	a->n_told = 0;
	return sizeof(q) + q.n_told * sizeof(*a->told);
}

static void refuse(struct alert *a, int error)
{
	uint64_t after_ns = a->again_after_ns ? a->again_after_ns : AGAIN_FIRST_NS;

	a->state = ALERT_OFF;
	a->error = error;
	a->again_ns = monotonic_ns() + after_ns;
	a->again_after_ns = MIN(2 * after_ns, AGAIN_LAST_NS);
}

static int take_points(struct alert *a, const struct points_answer *p, size_t len)
{
	const struct point *points = (const void *)(p + 1);
	struct sender *s = sender_of(a->all, a->reader);
	int r = 0;

	if (!s || len < sizeof(*p) || (len - sizeof(*p)) / sizeof(*points) < p->n)
		return -EPROTO;
	for (uint32_t i = 0; i < p->n && r >= 0; i++)
		r = add_place(s, &points[i], a);
	return r;
}

/* What was written before all was armed. */
static void compare(struct alert *a, const struct points_answer *p)
{
	for (uint32_t i = 0; i < a->n && a->compares; i++) {
		if (p->values_known >> i & 1 && p->values[i] != a->expected[i])
			hit(a, 1u << i);
	}
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct alert *a = alert_of(t);
	const struct points_answer *p = answer->bytes;
	int r = answer->result;

	if (!a->n) { /* it was disarmed */
		a->reader = 0;
		return;
	}
	if (r >= 0 && !a->reader) { /* what it told was lost */
		a->state = ALERT_OFF;
		return;
	}
	if (r >= 0)
		r = take_points(a, p, answer->len);
	if (r < 0) {
		a->reader = 0;
		refuse(a, r);
		return;
	}
	/* What told meanwhile is not armed. */
	a->state = a->n_told ? ALERT_OFF : ALERT_ARMED;
	a->error = 0;
	if (p->unarmed)
		refuse(a, p->error);
	else
		a->again_after_ns = 0;
	compare(a, p);
}

static void post(struct alert *a)
{
	if (!a->task.crew)
		readers_post(a->all->readers, &a->task);
}

bool alert_arm(struct alert *a, const uint64_t *addresses, const uint64_t *expected, size_t n)
{
	size_t bytes = sizeof(*addresses) * MIN(n, POINTS_ADDRESSES);
	bool same = a->n == n && !memcmp(a->addresses, addresses, bytes);

	if (a->task.crew || (a->error && monotonic_ns() < a->again_ns))
		return false;
	if (a->state == ALERT_ARMED && same)
		return false;
	a->n = (uint32_t)MIN(n, POINTS_ADDRESSES);
	memset(a->addresses, 0, sizeof(a->addresses));
	memcpy(a->addresses, addresses, bytes);
	a->compares = expected;
	if (expected)
		memcpy(a->expected, expected, bytes);
	a->state = ALERT_ARMING;
	post(a);
	return true;
}

void alert_disarm(struct alert *a)
{
	if (!a->n)
		return;
	readers_cancel(a->all->readers, &a->task);
	forget_places(a);
	a->n = 0;
	a->state = ALERT_OFF;
	a->error = 0;
	a->again_after_ns = 0;
	if (a->reader)
		post(a);
}

/* ---- beginning and end ---- */

static bool user_has_any(const struct alerts *all, uid_t user)
{
	const struct alert *a;

	LIST_FOREACH(a, &all->list, link) {
		if (a->task.user == user)
			return true;
	}
	return false;
}

static size_t write_farewell(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	const struct farewell *f = container_of(t, struct farewell, task);
	const struct points_request q = { .id = f->id };

	if (max < sizeof(q))
		return SIZE_MAX;
	memcpy(to, &q, sizeof(q));
	return sizeof(q);
}

static void farewell_done(struct readers_task *t, struct readers_answer *answer)
{
	struct farewell *f = container_of(t, struct farewell, task);

	f->all->ids[f->id] = false;
	LIST_REMOVE(f, link);
	free(f);
}

/* Until it has been told, the id is not another's. Without memory it is, and takes its points. */
static void say_farewell(const struct alert *a)
{
	struct alerts *all = a->all;
	struct farewell *f = a->reader ? calloc(1, sizeof(*f)) : NULL;

	if (!f) {
		all->ids[a->id] = false;
		return;
	}
	*f = (struct farewell){
		.all = all,
		.task = { .service = READER_POINTS, .pid = a->pid, .user = a->task.user,
			  .write = write_farewell, .done = farewell_done },
		.id = a->id,
	};
	LIST_INSERT_HEAD(&all->farewells, f, link);
	readers_post(all->readers, &f->task);
}

int alert_begin(struct alerts *all, struct alert *a, pid_t pid)
{
	uint32_t id = 0;
	int r;

	*a = (struct alert){
		.pid = pid,
		.all = all,
		.task = { .service = READER_POINTS, .pid = pid, .write = write_request,
			  .done = done },
	};
	r = readers_user_of(pid, &a->task.user);
	if (r < 0)
		return r;
	while (id < POINTS_IDS && all->ids[id])
		id++;
	if (id == POINTS_IDS)
		return -ENOSPC;
	all->ids[id] = true;
	a->id = id;
	LIST_INSERT_HEAD(&all->list, a, link);
	return 0;
}

void alert_end(struct alert *a)
{
	struct alerts *all = a->all;

	readers_cancel(all->readers, &a->task);
	LIST_REMOVE(a, link);
	say_farewell(a);
	readers_see(all->readers);
	if (!user_has_any(all, a->task.user))
		readers_let_end(all->readers, a->task.user);
	forget_places(a);
	if (a->is_hit)
		TAILQ_REMOVE(&all->hit, a, hit);
	free(a->told);
}

static int open_signals(struct alerts *all)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	for (unsigned int i = 0; i < SIGNALS; i++)
		sigaddset(&set, SIGRTMIN + FIRST_SIGNAL + (int)i);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	all->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return all->signals < 0 ? -errno : 0;
}

static int open_all(struct alerts *all)
{
	const struct readers_options options = {
		.patience_ns = PATIENCE_NS, .most = SIGNALS, .ended = on_reader_ended, .user = all
	};
	int r = readers_new(&options, &all->readers);

	return r < 0 ? r : open_signals(all);
}

int alerts_new(struct alerts **ret)
{
	struct alerts *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->signals = -1;
	all->tid = (pid_t)syscall(SYS_gettid);
	TAILQ_INIT(&all->hit);
	r = open_all(all);
	if (r < 0) {
		alerts_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

void alerts_free(struct alerts *all)
{
	struct farewell *f;

	if (!all)
		return;
	readers_free(all->readers);
	while ((f = LIST_FIRST(&all->farewells))) {
		LIST_REMOVE(f, link);
		free(f);
	}
	closep(&all->signals);
	for (size_t i = 0; i < SIGNALS; i++)
		free(all->senders[i].places);
	free(all);
}

int alerts_fd(const struct alerts *all)
{
	return all->signals;
}

int alerts_readers_fd(const struct alerts *all)
{
	return readers_fd(all->readers);
}

void alerts_run(struct alerts *all)
{
	readers_run(all->readers);
}

void alerts_see(struct alerts *all)
{
	readers_see(all->readers);
}

uint64_t alerts_spent_ns(const struct alerts *all)
{
	return readers_spent_ns(all->readers);
}

uint64_t alerts_traps(const struct alerts *all)
{
	return all->traps;
}

const char *alert_why(int error)
{
	switch (error) {
	case -EACCES:
		return "there is no right to watch it: kernel.perf_event_paranoid is above 2 "
		       "(set it to 2), or a security module refuses";
	case -EPERM:
		return "a seccomp filter refuses perf_event_open (docker run --cap-add=PERFMON "
		       "allows it)";
	case -ENOSPC:
		return "its debug registers are taken, by a debugger or by more than there are";
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENOSYS:
	case -ENODEV:
		return "this kernel or processor has no hardware watchpoints";
	case -E2BIG:
		return "it has more threads than can be watched";
	case -ENOBUFS:
		return "processes of more users are watched than can be";
	default:
		return readers_why(error);
	}
}
