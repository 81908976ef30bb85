/* SPDX-License-Identifier: MIT */
/* Everybody who is connected stays so while the daemon executes its program anew. */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/control_internal.h"

struct saved_client {
	bool subscribed, warned, waits;
	uint32_t waits_seq;
	uint64_t waits_until_ns, missed;
	size_t metrics_len;
};

static void save_client(const struct client *client, struct handover *h)
{
	const struct saved_client saved = {
		.subscribed = client->subscribed,
		.warned = client->warned,
		.waits = client->waits,
		.waits_seq = client->waits_seq,
		.waits_until_ns = client->waits_until_ns,
		.missed = client->missed,
		.metrics_len = client->metrics_len,
	};

	handover_put_fd(h, client->fd);
	handover_put(h, &saved, sizeof(saved));
	handover_put(h, client->metrics, client->metrics_len);
}

void control_save(const struct control *c, struct handover *h)
{
	const bool is_ours = c->path;

	handover_put_fd(h, c->fd);
	handover_put(h, &is_ours, sizeof(is_ours));
	handover_put(h, &c->figures, sizeof(c->figures));
	for (const struct client *client = c->clients; client; client = client->next)
		save_client(client, h);
}

static int restore_client(struct control *c, struct handover *h)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *metrics = NULL;
	struct saved_client saved;
	struct client *client;
	int r;

	r = handover_get_fd(h, &fd);
	if (r >= 0)
		r = handover_get(h, &saved, sizeof(saved));
	if (r < 0)
		return r;
	if (saved.metrics_len) {
		metrics = malloc(saved.metrics_len);
		if (!metrics)
			return -ENOMEM;
		r = handover_get(h, metrics, saved.metrics_len);
		if (r < 0)
			return r;
	}
	r = client_restore(c, fd, &client);
	if (r < 0)
		return r;
	steal_fd(&fd);
	client->subscribed = saved.subscribed;
	client->warned = saved.warned;
	client->waits = saved.waits;
	client->waits_seq = saved.waits_seq;
	client->waits_until_ns = saved.waits_until_ns;
	client->missed = saved.missed;
	client->metrics = steal_ptr(&metrics);
	client->metrics_len = saved.metrics_len;
	client_read_again(client);
	return 0;
}

static int restore(struct control *c, struct handover *h)
{
	struct control_figures figures;
	int r = handover_get(h, &figures, sizeof(figures));

	for (uint32_t i = 0; r >= 0 && i < figures.clients; i++)
		r = restore_client(c, h);
	if (r < 0)
		return r;
	c->figures = figures;
	control_be_patient(c);
	return 0;
}

int control_new_again(const struct control_parts *parts, const struct config *config,
		      const char *path, struct handover *h, struct control **ret)
{
	_cleanup_close_ int fd = -1;
	struct control *c;
	bool is_ours;
	int r;

	r = handover_get_fd(h, &fd);
	if (r >= 0)
		r = handover_get(h, &is_ours, sizeof(is_ours));
	if (r >= 0)
		r = control_new(parts, config, path, steal_fd(&fd), &c);
	if (r < 0)
		return r;
	if (is_ours)
		c->path = strdup(path);
	r = is_ours && !c->path ? -ENOMEM : restore(c, h);
	if (r < 0) {
		control_free(c);
		return r;
	}
	*ret = c;
	return 0;
}
