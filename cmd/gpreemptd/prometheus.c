/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/macros.h"
#include "util/text.h"

void prom_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* What is no text becomes a question mark; three characters have to be escaped. */
static void put_value(FILE *out, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		size_t n = text_utf8_bytes(at);

		if (*at == '\\' || *at == '"')
			fprintf(out, "\\%c", *at);
		else if (*at == '\n')
			fputs("\\n", out);
		else if (n == 0 || *at < ' ' || *at == 0x7f)
			fputc('?', out);
		else
			fwrite(at, 1, n, out);
		at += n ? n : 1;
	}
}

static void put_name(FILE *out, const char *name, const struct prom_label *labels)
{
	fputs(name, out);
	for (size_t i = 0; labels && labels[i].name; i++) {
		fprintf(out, "%c%s=\"", i ? ',' : '{', labels[i].name);
		put_value(out, labels[i].value);
		fputc('"', out);
	}
	fputs(labels && labels[0].name ? "} " : " ", out);
}

/* @value in parts of @one, a power of ten, with no more digits than it takes. */
static void put_decimal(FILE *out, uint64_t value, uint64_t one)
{
	uint64_t rest = value % one;
	int digits = 0;

	fprintf(out, "%" PRIu64, value / one);
	if (rest == 0)
		return;
	for (; rest % 10 == 0; one /= 10)
		rest /= 10;
	for (; one > 1; one /= 10)
		digits++;
	fprintf(out, ".%0*" PRIu64, digits, rest);
}

void prom_number(FILE *out, const char *name, const struct prom_label *labels, uint64_t value,
		 uint64_t one)
{
	put_name(out, name, labels);
	put_decimal(out, value, one);
	fputc('\n', out);
}

/* Buckets count all that are no longer than their bound, so the last has everything. */
void prom_histogram(FILE *out, const char *name, const char *help, const struct histogram *h)
{
	uint64_t below = 0;

	prom_family(out, name, "histogram", help);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t bound_ns = histogram_bound_ns(i);

		below += h->counts[i];
		fprintf(out, "%s_bucket{le=\"", name);
		if (bound_ns == UINT64_MAX)
			fputs("+Inf", out);
		else
			put_decimal(out, bound_ns, NSEC_PER_SEC);
		fprintf(out, "\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "%s_sum ", name);
	put_decimal(out, h->sum_ns, NSEC_PER_SEC);
	fprintf(out, "\n%s_count %" PRIu64 "\n", name, h->count);
}
