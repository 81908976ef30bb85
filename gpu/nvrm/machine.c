/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/machine.h"
#include "util/array.h"
#include "util/macros.h"

#define OLDEST_MAJOR 515
#define NEWEST_MAJOR 595

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A word like 580.159.04; older and newer ones may lack the last part. */
static bool parse_number(const char *word, size_t len, struct nvrm_version *v)
{
	int end = 0;

	v->patch = 0;
	return strspn(word, "0123456789.") == len &&
	       sscanf(word, "%6u.%6u%n.%6u%n", &v->major, &v->minor, &end, &v->patch, &end) >= 2 &&
	       (size_t)end == len;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..." */
static int parse_version(char *text, struct nvrm_version *ret)
{
	static const char head[] = "NVRM version:";
	struct nvrm_version v = { 0 };
	const char *word = text;

	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, head, sizeof(head) - 1) != 0)
		return -EBADMSG;
	v.open = strstr(text, "Open Kernel Module") != NULL;
	for (;;) {
		size_t len;

		word += strspn(word, " \t");
		len = strcspn(word, " \t");
		if (!len)
			return -EBADMSG;
		if (len < sizeof(v.text) && parse_number(word, len, &v)) {
			memcpy(v.text, word, len);
			*ret = v;
			return 0;
		}
		word += len;
	}
}

int nvrm_read_version(struct nvrm *n, struct nvrm_version *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = n->transport->read_proc(n->data, "driver/nvidia/version", &text, &len);

	return r < 0 ? r : parse_version(text, ret);
}

int nvrm_check_version(const struct nvrm_version *v, struct nvrm_failure *ret)
{
	if (v->open && v->major >= OLDEST_MAJOR && v->major <= NEWEST_MAJOR)
		return 0;
	if (secure_getenv("GPREEMPT_NVRM_ANY_DRIVER"))
		return 0;
	return nvrm_fail(ret, -EOPNOTSUPP, NVRM_WHY_DRIVER_UNKNOWN, NULL);
}

/* The rest of the line "@name: \t value". */
static void read_field(const char *text, const char *name, char *ret, size_t size)
{
	size_t name_len = strlen(name);

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		if (len > name_len && !strncmp(line, name, name_len) && line[name_len] == ':') {
			const char *value = line + name_len + 1;

			value += strspn(value, " \t");
			snprintf(ret, size, "%.*s", (int)(line + len - value), value);
			return;
		}
		line += len + (line[len] == '\n');
	}
}

/* Its instances have access files, 580 nv-caps.c. */
static bool has_instances(struct nvrm *n, unsigned long minor)
{
	_cleanup_free_ char *names = NULL;
	char path[64];

	snprintf(path, sizeof(path), "driver/nvidia/capabilities/gpu%lu/mig", minor);
	if (n->transport->list_proc(n->data, path, &names) < 0)
		return false;
	for (const char *name = names; *name; name += strlen(name) + 1) {
		if (!strncmp(name, "gi", 2))
			return true;
	}
	return false;
}

static void read_information(struct nvrm *n, struct nvrm_gpu *g)
{
	_cleanup_free_ char *text = NULL;
	char path[64], minor[16] = "";
	size_t len;

	snprintf(g->name, sizeof(g->name), "NVIDIA GPU");
	snprintf(path, sizeof(path), "driver/nvidia/gpus/%04x:%02x:%02x.0/information", g->domain,
		 g->bus, g->slot);
	if (n->transport->read_proc(n->data, path, &text, &len) < 0)
		return;
	read_field(text, "Model", g->name, sizeof(g->name));
	read_field(text, "GPU UUID", g->uuid, sizeof(g->uuid));
	read_field(text, "Device Minor", minor, sizeof(minor));
	if (is_digit(minor[0]))
		g->mig = has_instances(n, strtoul(minor, NULL, 10));
}

static int read_gpu(struct nvrm *n, int fd, uint32_t client, uint32_t gpu, struct nvrm_gpu *ret)
{
	struct nvrm_pci_info pci = { .gpu = gpu };
	int r = nvrm_control(n, fd, client, client, NVRM_CTRL_GET_PCI_INFO, &pci, sizeof(pci));

	if (r != NVRM_OK)
		return nvrm_status_errno(r);
	*ret = (struct nvrm_gpu){
		.gpu = gpu,
		.domain = pci.domain,
		.bus = pci.bus,
		.slot = pci.slot,
	};
	read_information(n, ret);
	return 0;
}

static int list_with(struct nvrm *n, int fd, struct nvrm_gpu *ret, size_t max)
{
	struct nvrm_probed_ids ids = { 0 };
	uint32_t client;
	size_t count = 0;
	int r = nvrm_new_client(n, fd, &client);

	if (r == NVRM_OK)
		r = nvrm_control(n, fd, client, client, NVRM_CTRL_GET_PROBED_IDS, &ids,
				 sizeof(ids));
	if (r != NVRM_OK)
		return nvrm_status_errno(r);
	while (count < NVRM_MAX_GPUS && ids.gpus[count] != NVRM_NO_GPU)
		count++;
	qsort(ids.gpus, count, sizeof(ids.gpus[0]), compare_u32);
	for (size_t i = 0; i < count && i < max; i++) {
		r = read_gpu(n, fd, client, ids.gpus[i], &ret[i]);
		if (r < 0)
			return r;
	}
	return (int)count;
}

int nvrm_list_gpus(struct nvrm *n, struct nvrm_gpu *ret, size_t max)
{
	int fd = n->transport->open(n->data), r;

	if (fd < 0)
		return fd;
	r = list_with(n, fd, ret, max);
	n->transport->close_fd(n->data, fd);
	return r;
}
