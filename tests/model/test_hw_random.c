/* SPDX-License-Identifier: MIT */
/* A thousand unmaps at random moments of random work: what came out, packet by packet. */
#include "tests/model/hw_rig.h"

#define UNMAPS 1000
#define QUEUES 6
#define SLOTS 64
#define KERNELS 8
#define MAX_PACKETS 20000

struct kernel {
	uint64_t va, wg_ns;
};

struct sent {
	uint32_t workgroups;
	uint64_t wg_ns;
	bool barrier;
	const struct rig_queue *after; /* a packet of another queue it has to wait for */
	uint64_t after_index;
};

struct player {
	struct rig_queue q;
	uint64_t signal; /* of most packets */
	uint64_t signalled;
	uint64_t mark, mark_index; /* a signal, and the one packet that has it */
	struct sent sent[MAX_PACKETS];
};

struct game {
	struct rig rig;
	uint64_t seed;
	struct kernel kernels[KERNELS];
	struct player players[QUEUES];
	uint64_t saved_bytes;
};

static uint64_t rnd(struct game *g, uint64_t below)
{
	uint64_t z = g->seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % below;
}

static void game_open(struct game *g, const struct model_chip *chip, uint64_t seed)
{
	static const enum hw_ring rings[QUEUES] = {
		HW_RING_AQL, HW_RING_AQL, HW_RING_AQL, HW_RING_AQL, HW_RING_PM4, HW_RING_SDMA,
	};

	g->seed = seed;
	rig_open_chip(&g->rig, chip);
	for (int i = 0; i < KERNELS; i++) {
		g->kernels[i].wg_ns = rnd(g, i % 2 ? 100000 : 2000);
		g->kernels[i].va =
			rig_kernel(&g->rig, g->kernels[i].wg_ns, 1 + rnd(g, HW_CU_UNITS));
	}
	for (int i = 0; i < QUEUES; i++) {
		rig_queue_open(&g->rig, &g->players[i].q, rings[i], SLOTS);
		g->players[i].signal = rig_signal(&g->rig, 0);
	}
}

static void game_close(struct game *g)
{
	for (int i = 0; i < QUEUES; i++)
		rig_queue_close(&g->players[i].q);
	rig_close(&g->rig);
}

static uint64_t units_per_packet(const struct rig_queue *q)
{
	return q->config.ring == HW_RING_AQL ? 1 : q->config.ring == HW_RING_PM4 ? 16 : 64;
}

static void submit_dispatch(struct game *g, struct player *p, struct sent *s)
{
	const struct kernel *k = &g->kernels[rnd(g, KERNELS)];
	uint64_t signal = p->signal;

	*s = (struct sent){ rnd(g, 4) ? rnd(g, 200) : rnd(g, 2000), k->wg_ns, !rnd(g, 4) };
	if (rnd(g, 4) == 0) {
		signal = p->mark = rig_signal(&g->rig, 1);
		p->mark_index = p->q.written;
	}
	p->signalled += signal == p->signal;
	rig_dispatch(&p->q, k->va, s->workgroups, s->barrier ? AQL_BARRIER_BIT : 0, signal);
}

/* Waits only for what was submitted before it, so the whole can always come to an end. */
static void submit_barrier(struct game *g, struct player *p, struct sent *s)
{
	struct player *dep = &g->players[rnd(g, QUEUES)];

	*s = (struct sent){ .after = dep->mark ? &dep->q : NULL, .after_index = dep->mark_index };
	p->signalled++;
	rig_barrier(&p->q, rnd(g, 2) ? AQL_BARRIER_AND : AQL_BARRIER_OR, dep->mark, 0, p->signal);
}

static void submit(struct game *g, struct player *p)
{
	uint64_t read = hw_see(p->q.hw)->read / units_per_packet(&p->q);
	struct sent *s = &p->sent[p->q.written];

	if (p->q.written - read >= SLOTS || p->q.written == MAX_PACKETS)
		return;
	if (p->q.config.ring != HW_RING_AQL) {
		*s = (struct sent){ .workgroups = 1, .wg_ns = rnd(g, 50000), .barrier = true };
		p->signalled++;
		rig_timed(&p->q, s->wg_ns, p->signal);
	} else if (rnd(g, 8) == 0) {
		submit_barrier(g, p, s);
	} else {
		submit_dispatch(g, p, s);
	}
}

static void map_some(struct game *g, bool all)
{
	struct hw_queue *qs[QUEUES];
	size_t n = 0;

	for (int i = 0; i < QUEUES; i++) {
		if (all || rnd(g, 3))
			qs[n++] = g->players[i].q.hw;
	}
	assert_int_equal(hw_map(g->rig.gpu, qs, n), 0);
}

static uint64_t executed(const struct player *p)
{
	static struct model_packet log[MAX_PACKETS];
	size_t n = hw_queue_packets(p->q.hw, 0, log, MAX_PACKETS);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += log[i].executed_ns;
	return sum;
}

static void waves_fit(const struct game *g)
{
	for (uint32_t x = 0; x < g->rig.chip->n_xcc; x++) {
		uint64_t waves = 0;

		for (int i = 0; i < QUEUES; i++)
			waves += hw_see(g->players[i].q.hw)->waves[x];
		assert_true(waves <= HW_CU_WAVES * g->rig.chip->cu_per_xcc);
	}
}

static void round_trip(struct game *g)
{
	uint64_t before, which = rnd(g, QUEUES);

	map_some(g, false);
	for (uint64_t n = rnd(g, 10); n; n--) {
		submit(g, &g->players[rnd(g, QUEUES)]);
		rig_run(&g->rig, rnd(g, 20000));
		waves_fit(g);
	}
	g->saved_bytes += rig_unmap(&g->rig, 1 + rnd(g, 20)).saved_bytes;
	before = executed(&g->players[which]);
	submit(g, &g->players[rnd(g, QUEUES)]);
	rig_run(&g->rig, rnd(g, 50000));
	assert_int_equal(executed(&g->players[which]), before);
	assert_int_equal(rig_stats(&g->players[which].q).resident, 0);
}

static void check_packets(const struct player *p)
{
	uint64_t last_start = 0, last_done = 0;

	for (uint64_t i = 0; i < p->q.written; i++) {
		const struct sent *s = &p->sent[i];
		struct model_packet r = rig_packet(&p->q, i);

		assert_int_equal(r.workgroups, s->workgroups);
		assert_int_equal(r.finished, s->workgroups);
		assert_int_equal(r.executed_ns, s->workgroups * s->wg_ns);
		assert_true(r.submitted_ns <= r.started_ns);
		assert_true(r.done_ns >= r.started_ns + (s->workgroups ? s->wg_ns : 1));
		assert_true(r.started_ns >= last_start);
		assert_true(!s->barrier || r.started_ns >= last_done);
		if (s->after)
			assert_true(r.started_ns >= rig_packet(s->after, s->after_index).done_ns);
		last_start = r.started_ns;
		last_done = MAX(last_done, r.done_ns);
	}
	assert_int_equal(rig_signal_value(p->q.rig, p->signal), -(int64_t)p->signalled);
	assert_int_equal(rig_stats(&p->q).completed, p->q.written);
	assert_int_equal(rig_stats(&p->q).resident + rig_stats(&p->q).saved, 0);
	assert_int_equal(mem_read64(p->q.rig->vm, p->q.config.read_ptr_va),
			 p->q.written * units_per_packet(&p->q));
}

static void play(struct game *g)
{
	uint64_t packets = 0;

	for (int i = 0; i < UNMAPS; i++)
		round_trip(g);
	map_some(g, true);
	rig_run(&g->rig, 10 * NSEC_PER_SEC);
	for (int i = 0; i < QUEUES; i++) {
		check_packets(&g->players[i]);
		packets += g->players[i].q.written;
	}
	assert_true(packets > 1000);
	assert_true(g->saved_bytes > 1000000000);
	rig_unmap(&g->rig, 1);
}

static void play_with(const char *chip, uint64_t seed, struct game *g)
{
	game_open(g, model_chip_find(chip), seed);
	play(g);
	game_close(g);
}

/* Six queues of all priorities on two slots, the turns as short as what runs. */
static void nothing_is_lost_run_twice_or_reordered_when_queues_take_turns(void **state)
{
	_cleanup_free_ struct game *g = calloc(1, sizeof(*g));
	struct model_chip chip = *model_chip_find("mi308x");
	struct hw_turns turns;

	chip.n_cp_queues = 2;
	chip.costs.quantum_ns = 20 * NSEC_PER_USEC;
	game_open(g, &chip, 5);
	for (int i = 0; i < QUEUES; i++)
		hw_queue_set_priority(g->players[i].q.hw, (uint32_t)rnd(g, 16));
	play(g);
	turns = *hw_gpu_turns(g->rig.gpu);
	assert_true(turns.rotations > 1000);
	assert_true(turns.saved.bytes > 1000000000);
	game_close(g);
}

static void nothing_is_lost_run_twice_or_reordered_over_1000_random_unmaps(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		_cleanup_free_ struct game *g = calloc(1, sizeof(*g));

		play_with(seed % 2 ? "mi308x" : "mi300x", seed, g);
	}
}

static void the_same_seed_gives_the_same_history(void **state)
{
	_cleanup_free_ struct game *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	game_open(a, model_chip_find("mi308x"), 99);
	game_open(b, model_chip_find("mi308x"), 99);
	play(a);
	play(b);
	assert_int_equal(a->saved_bytes, b->saved_bytes);
	for (int i = 0; i < QUEUES; i++) {
		for (uint64_t k = 0; k < a->players[i].q.written; k++) {
			struct model_packet p = rig_packet(&a->players[i].q, k);
			struct model_packet r = rig_packet(&b->players[i].q, k);

			assert_int_equal(p.started_ns, r.started_ns);
			assert_int_equal(p.done_ns, r.done_ns);
			assert_int_equal(p.saves, r.saves);
		}
	}
	game_close(a);
	game_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_run_twice_or_reordered_over_1000_random_unmaps),
		cmocka_unit_test(nothing_is_lost_run_twice_or_reordered_when_queues_take_turns),
		cmocka_unit_test(the_same_seed_gives_the_same_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
