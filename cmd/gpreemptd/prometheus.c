/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/macros.h"

void prom_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* How many bytes the character at @text has; 0: it is none of UTF-8 (RFC 3629). */
static size_t utf8_bytes(const unsigned char *text)
{
	static const struct {
		unsigned char low, high; /* of the first byte */
		unsigned char second_low, second_high;
		size_t bytes;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	if (*text < 0x80)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (*text < forms[i].low || *text > forms[i].high)
			continue;
		if (text[1] < forms[i].second_low || text[1] > forms[i].second_high)
			return 0;
		for (size_t n = 2; n < forms[i].bytes; n++) {
			if ((text[n] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].bytes;
	}
	return 0;
}

/* What is no text becomes a question mark; three characters have to be escaped. */
static void put_value(FILE *out, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		size_t n = utf8_bytes(at);

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

/* @value with @digits behind the point, and no more than it takes. */
static void put_decimal(FILE *out, uint64_t value, uint64_t one, int digits)
{
	uint64_t rest = value % one;

	while (digits > 0 && rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	fprintf(out, "%" PRIu64, value / one);
	if (digits > 0)
		fprintf(out, ".%0*" PRIu64, digits, rest);
}

void prom_count(FILE *out, const char *name, const struct prom_label *labels, uint64_t value)
{
	put_name(out, name, labels);
	fprintf(out, "%" PRIu64 "\n", value);
}

void prom_seconds(FILE *out, const char *name, const struct prom_label *labels, uint64_t ns)
{
	put_name(out, name, labels);
	put_decimal(out, ns, NSEC_PER_SEC, 9);
	fputc('\n', out);
}

void prom_permille(FILE *out, const char *name, const struct prom_label *labels, uint32_t permille)
{
	put_name(out, name, labels);
	put_decimal(out, permille, 1000, 3);
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
			put_decimal(out, bound_ns, NSEC_PER_SEC, 9);
		fprintf(out, "\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "%s_sum ", name);
	put_decimal(out, h->sum_ns, NSEC_PER_SEC, 9);
	fprintf(out, "\n%s_count %" PRIu64 "\n", name, h->count);
}
