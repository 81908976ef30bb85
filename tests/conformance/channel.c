/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/conformance/channel.h"

void channel_reset(struct channel *c)
{
	*c = (struct channel){ .turn = TURN_ACTOR, .order.kind = ORDER_END_THREAD };
}

void channel_pass(struct channel *c, enum turn next)
{
	__atomic_store_n(&c->turn, next, __ATOMIC_RELEASE);
	syscall(SYS_futex, &c->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A signal only makes it look again, and wait for as long once more. */
bool channel_await(struct channel *c, enum turn whose, int timeout_ms)
{
	struct timespec limit = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000l,
	};
	uint32_t other = whose == TURN_ACTOR ? TURN_DIRECTOR : TURN_ACTOR;

	while (__atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) != whose) {
		if (syscall(SYS_futex, &c->turn, FUTEX_WAIT, other, &limit, NULL, 0) < 0 &&
		    errno == ETIMEDOUT)
			return __atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) == whose;
	}
	return true;
}
