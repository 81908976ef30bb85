/* SPDX-License-Identifier: MIT */
/* The text format of Prometheus, version 0.0.4: how figures are written, not which. */
#ifndef GPREEMPT_CMD_GPREEMPTD_PROMETHEUS_H
#define GPREEMPT_CMD_GPREEMPTD_PROMETHEUS_H

#include <stdint.h>
#include <stdio.h>

#include "cmd/gpreemptd/histogram.h"

/* Up to so many labels of one line, ended by a NULL name. Values may be any bytes. */
#define PROM_LABELS 6
struct prom_label {
	const char *name, *value;
};

/* Once for each name, before its lines. */
void prom_family(FILE *out, const char *name, const char *type, const char *help);
/* @value counts parts of @one, a power of ten: of nanoseconds, say. @labels may be NULL. */
void prom_number(FILE *out, const char *name, const struct prom_label *labels, uint64_t value,
		 uint64_t one);
/* With its head. */
void prom_histogram(FILE *out, const char *name, const char *help, const struct histogram *h);

#endif
