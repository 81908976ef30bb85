/* SPDX-License-Identifier: MIT */
#include "wire/record.h"

#include <errno.h>
#include <string.h>

#include "util/macros.h"

_Static_assert(sizeof(enum gpreempt_class) == 4 && sizeof(enum gpreempt_event_kind) == 4 &&
		       sizeof(pid_t) == 4 && sizeof(uid_t) == 4 && sizeof(bool) == 1 &&
		       sizeof(struct gpreempt_latency) == 32,
	       "fields are as wide on all machines");

static const struct wire_field *find(const struct wire_record *r, const char *name, size_t len)
{
	for (size_t i = 0; i < r->n; i++)
		if (strncmp(r->fields[i].name, name, len) == 0 && !r->fields[i].name[len])
			return &r->fields[i];
	return NULL;
}

const struct wire_field *wire_field(const struct wire_record *r, const char *name)
{
	return find(r, name, strlen(name));
}

const struct wire_field *wire_pick(const struct wire_record *r, const char **list)
{
	const char *name = *list + strspn(*list, " ");
	size_t len = strcspn(name, " ");

	*list = name + len;
	return len ? find(r, name, len) : NULL;
}

/* ---- values ---- */

uint64_t wire_value(const struct wire_field *f, const void *entry)
{
	const unsigned char *at = (const unsigned char *)entry + f->offset;
	uint64_t wide;
	uint32_t narrow;

	switch (f->size) {
	case 1:
		return *at;
	case 4:
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	default:
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
}

bool wire_is_text(const char *field, size_t size)
{
	size_t len = strnlen(field, size);

	for (size_t i = len; i < size; i++)
		if (field[i])
			return false;
	return len < size;
}

bool wire_is_zero(const struct wire_field *f, const void *entry)
{
	const char *at = (const char *)entry + f->offset;

	if (f->form == WIRE_FORM_TEXT)
		return !at[0];
	return f->form != WIRE_FORM_BYTES && !wire_value(f, entry);
}

bool wire_is_unseen(const struct wire_record *r, const struct wire_field *f, const void *entry)
{
	const struct wire_field *unseen = wire_field(r, "unseen");

	if (!unseen || !wire_value(unseen, entry))
		return false;
	return f->flags & WIRE_SEEN || (f->flags & WIRE_OPTIONAL_UNSEEN && wire_is_zero(f, entry));
}

void wire_hide(const struct wire_record *r, void *entry)
{
	for (size_t i = 0; i < r->n; i++)
		if (!(r->fields[i].flags & WIRE_PUBLIC))
			memset((char *)entry + r->fields[i].offset, 0, r->fields[i].size);
}

/* ---- entries ---- */

size_t wire_entry_bytes(const struct wire_record *r)
{
	return sizeof(uint32_t) + r->width;
}

void wire_put(const struct wire_record *r, const void *entry, void *to)
{
	const uint32_t width = (uint32_t)r->width;
	char *at = (char *)to + sizeof(width);

	memcpy(to, &width, sizeof(width));
	for (size_t i = 0; i < r->n; i++) {
		memcpy(at, (const char *)entry + r->fields[i].offset, r->fields[i].size);
		at += r->fields[i].size;
	}
}

static bool is_sane(const struct wire_field *f, const void *entry)
{
	switch (f->form) {
	case WIRE_FORM_FLAG:
		return wire_value(f, entry) <= 1;
	case WIRE_FORM_PERMILLE:
		return wire_value(f, entry) <= 1000;
	case WIRE_FORM_TEXT:
		return wire_is_text((const char *)entry + f->offset, f->size);
	default:
		return true;
	}
}

int wire_get(const struct wire_record *r, const void *from, size_t room, void *ret)
{
	const char *at = (const char *)from + sizeof(uint32_t);
	uint32_t width, left;

	if (room < sizeof(width))
		return -EBADMSG;
	memcpy(&width, from, sizeof(width));
	if (width > room - sizeof(width))
		return -EBADMSG;
	memset(ret, 0, r->size);
	memcpy(ret, &r->size, sizeof(r->size));
	left = width;
	for (size_t i = 0; i < r->n && left > 0; i++) {
		const struct wire_field *f = &r->fields[i];

		if (f->size > left)
			return -EBADMSG;
		memcpy((char *)ret + f->offset, at, f->size);
		if (!is_sane(f, ret))
			return -EBADMSG;
		at += f->size;
		left -= f->size;
	}
	return (int)(sizeof(width) + width);
}
