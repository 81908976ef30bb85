/* SPDX-License-Identifier: MIT */
/* usage: backend GROUND: every case on one of the program's grounds. */
#include <stdio.h>

#include "tests/backend/cases.h"

#define CASES_MAX 64

const struct ground_ops *ground_chosen;

static const struct ground_ops *find(const char *name)
{
	for (size_t i = 0; grounds[i]; i++)
		if (name && strcmp(grounds[i]->name, name) == 0)
			return grounds[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct CMUnitTest all[CASES_MAX];
	size_t n = 0;

	ground_chosen = find(argv[1]);
	if (!ground_chosen) {
		fprintf(stderr, "usage: %s GROUND, one of:\n", argv[0]);
		for (size_t i = 0; grounds[i]; i++)
			fprintf(stderr, "  %s\n", grounds[i]->name);
		return 2;
	}
	assert_true(n_cases_act + n_cases_end + n_cases_look <= CASES_MAX);
	for (size_t i = 0; i < n_cases_act; i++)
		all[n++] = cases_act[i];
	for (size_t i = 0; i < n_cases_end; i++)
		all[n++] = cases_end[i];
	for (size_t i = 0; i < n_cases_look; i++)
		all[n++] = cases_look[i];
	return _cmocka_run_group_tests(ground_chosen->name, all, n, NULL, NULL) != 0;
}
