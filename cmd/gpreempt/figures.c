/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "cmd/gpreempt/figures.h"
#include "util/array.h"
#include "util/curve.h"

int figures_init(struct figures *f, size_t room)
{
	*f = (struct figures){ .ns = calloc(room ? room : 1, sizeof(*f->ns)), .room = room };
	return f->ns ? 0 : -ENOMEM;
}

void figures_add(struct figures *f, uint64_t ns)
{
	if (f->n < f->room)
		f->ns[f->n++] = ns;
}

/* Nearest rank: a value that really occurred. */
static uint64_t percentile(const struct figures *f, size_t percent)
{
	size_t rank = (f->n * percent + 99) / 100;

	return f->ns[rank ? rank - 1 : 0];
}

struct summary figures_sum_up(struct figures *f)
{
	uint64_t sum = 0;

	if (f->n == 0)
		return (struct summary){ 0 };
	qsort(f->ns, f->n, sizeof(*f->ns), compare_u64);
	for (size_t i = 0; i < f->n; i++)
		sum += f->ns[i];
	return (struct summary){
		.min = f->ns[0],
		.avg = sum / f->n,
		.p50 = percentile(f, 50),
		.p99 = percentile(f, 99),
		.max = f->ns[f->n - 1],
	};
}

void figures_done(struct figures *f)
{
	free(f->ns);
	*f = (struct figures){ 0 };
}

struct json_object *figures_curve(struct figures *f)
{
	uint64_t ns[CURVE_POINTS];

	if (f->n == 0)
		return NULL;
	qsort(f->ns, f->n, sizeof(*f->ns), compare_u64);
	for (size_t i = 0; i < CURVE_POINTS; i++)
		ns[i] = f->ns[curve_rank(f->n, curve_permille(i))];
	return json_curve(ns);
}

struct json_object *figures_to_json(struct figures *f)
{
	struct summary s = figures_sum_up(f);
	struct json_object *o;

	if (f->n == 0)
		return NULL;
	o = json_object_new_object();
	json_object_object_add(o, "min", json_us(s.min));
	json_object_object_add(o, "avg", json_us(s.avg));
	json_object_object_add(o, "p50", json_us(s.p50));
	json_object_object_add(o, "p99", json_us(s.p99));
	json_object_object_add(o, "max", json_us(s.max));
	return o;
}
