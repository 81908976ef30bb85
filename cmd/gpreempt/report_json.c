/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "cmd/gpreempt/report.h"

struct json_object *field(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(o, json_type_object))
		return NULL;
	json_object_object_get_ex(o, key, &value);
	return value;
}

static struct json_object *typed(struct json_object *o, const char *key, enum json_type type)
{
	struct json_object *value = field(o, key);

	return value && json_object_is_type(value, type) ? value : NULL;
}

struct json_object *field_object(struct json_object *o, const char *key)
{
	return typed(o, key, json_type_object);
}

struct json_object *field_array(struct json_object *o, const char *key)
{
	return typed(o, key, json_type_array);
}

const char *field_text(struct json_object *o, const char *key)
{
	struct json_object *value = typed(o, key, json_type_string);

	return value ? json_object_get_string(value) : "";
}

bool number_of(struct json_object *value, double *ret)
{
	double number;

	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_double))
		return false;
	number = json_object_get_double(value);
	if (!isfinite(number))
		return false;
	*ret = number;
	return true;
}

bool field_number(struct json_object *o, const char *key, double *ret)
{
	return number_of(field(o, key), ret);
}

bool field_count(struct json_object *o, const char *key, uint64_t *ret)
{
	struct json_object *value = typed(o, key, json_type_int);

	if (!value || (json_object_get_int64(value) < 0 && json_object_get_uint64(value) == 0))
		return false;
	*ret = json_object_get_uint64(value);
	return true;
}

bool field_bool(struct json_object *o, const char *key, bool *ret)
{
	struct json_object *value = typed(o, key, json_type_boolean);

	if (!value)
		return false;
	*ret = json_object_get_boolean(value);
	return true;
}

enum ground field_ground(struct json_object *o)
{
	bool modelled;

	if (!field_bool(o, "modelled", &modelled))
		return GROUND_UNKNOWN;
	return modelled ? GROUND_MODELLED : GROUND_MEASURED;
}
