/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/control_internal.h"

#define FULL_NS NSEC_PER_SEC /* a user may save up the requests of a second */

static void fill(struct user *user)
{
	uint64_t now_ns = monotonic_ns();

	user->tokens_ns = MIN(user->tokens_ns + (now_ns - user->filled_ns), FULL_NS);
	user->filled_ns = now_ns;
}

/* Whoever has no connection and all tokens is as good as unknown. */
static void forget_idle(struct control *c)
{
	for (struct user **p = &c->users; *p;) {
		struct user *user = *p;

		fill(user);
		if (user->clients || user->tokens_ns < FULL_NS) {
			p = &user->next;
			continue;
		}
		*p = user->next;
		free(user);
	}
}

struct user *user_get(struct control *c, uid_t uid)
{
	struct user *user;
	uint32_t n = 0;

	for (user = c->users; user; user = user->next)
		if (user->uid == uid)
			return user;
	forget_idle(c);
	for (user = c->users; user; user = user->next)
		n++;
	/* Strangers, however many, must not keep the machine's owner out. */
	user = n < USERS_MAX || uid == 0 || uid == geteuid() ? calloc(1, sizeof(*user)) : NULL;
	if (!user)
		return NULL;
	*user = (struct user){
		.next = c->users,
		.uid = uid,
		.tokens_ns = FULL_NS,
		.filled_ns = monotonic_ns(),
	};
	c->users = user;
	return user;
}

bool user_pays(struct control *c, struct user *user)
{
	fill(user);
	if (user->tokens_ns < c->token_ns)
		return false;
	user->tokens_ns -= c->token_ns;
	return true;
}

/* Enough to be worth looking: so many come back between two looks. */
bool user_can_pay(struct control *c, struct user *user)
{
	fill(user);
	return user->tokens_ns >= MAX(c->token_ns, REFILL_NS / 2);
}

void users_free(struct control *c)
{
	while (c->users) {
		struct user *user = c->users;

		c->users = user->next;
		free(user);
	}
}
