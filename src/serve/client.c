/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: who a token or a peer is, what it may do, and how much it has used. */
#include <stdio.h>

#include "base/time.h"
#include "serve/internal.h"

static struct cordon_client *find(const struct cordon_server *server, const char *name)
{
	for (struct cordon_client *client = server->clients; client; client = client->next)
		if (!client->revoked && cordon_streq(client->name, name))
			return client;
	return NULL;
}

/* A client whose token was made anew or changed is another one. */
static struct cordon_client *get(struct cordon_server *server, const char *name)
{
	struct cordon_client *client = find(server, name);

	if (!client) {
		client = calloc(1, sizeof(*client));
		if (!client)
			return NULL;
		cordon_copy(client->name, sizeof(client->name), name, strlen(name));
		client->left = CORDON_SERVE_CALLS_MAX;
		client->filled = cordon_time_monotonic();
		client->next = server->clients;
		server->clients = client;
	}
	client->users++;
	return client;
}

struct cordon_client *cordon_client_by_token(struct cordon_server *server, const char *token)
{
	const struct cordon_token_record *record = cordon_tokens_find(&server->tokens, token, cordon_time_now());
	char name[CORDON_ID_SIZE + 8];
	struct cordon_client *client;

	if (!record)
		return NULL;
	snprintf(name, sizeof(name), CORDON_TOKEN_PRINCIPAL "%s", record->id);
	client = get(server, name);
	if (client && !client->projects) {
		cordon_copy(client->token_id, sizeof(client->token_id), record->id, strlen(record->id));
		memcpy(client->expires_at, record->expires_at, sizeof(client->expires_at));
		client->projects = json_deep_copy(record->projects);
		client->grant = (struct cordon_mcp_grant){ .scope = record->scope, .projects = client->projects };
		/* INVARIANT: no list of projects would mean all of them. */
		if (!client->projects) {
			cordon_client_drop(server, client);
			return NULL;
		}
	}
	return client;
}

struct cordon_client *cordon_client_by_uid(struct cordon_server *server, uid_t uid)
{
	char name[CORDON_ID_SIZE + 8];

	snprintf(name, sizeof(name), "uid:%u", uid);
	return get(server, name);
}

/* One without users is kept until the next sweep, so that its bucket is not filled anew by each request. */
void cordon_client_drop(struct cordon_server *server, struct cordon_client *client)
{
	(void)server;
	if (client)
		client->users--;
}

bool cordon_client_may_call(struct cordon_client *client, int64_t now)
{
	client->left += (double)(now - client->filled) * CORDON_SERVE_CALLS_MAX / 1000;
	client->filled = now;
	if (client->left > CORDON_SERVE_CALLS_MAX)
		client->left = CORDON_SERVE_CALLS_MAX;
	if (client->left < 1)
		return false;
	client->left -= 1;
	return true;
}

static bool is_valid(const struct cordon_server *server, const struct cordon_client *client, int64_t now)
{
	if (!*client->token_id)
		return true;
	for (size_t i = 0; i < server->tokens.n; i++)
		if (cordon_streq(server->tokens.items[i].id, client->token_id))
			return !cordon_token_expired(&server->tokens.items[i], now);
	return false;
}

void cordon_clients_expire(struct cordon_server *server)
{
	int64_t now = cordon_time_now(), idle = cordon_time_monotonic() - 2000;

	for (struct cordon_client **link = &server->clients; *link;) {
		struct cordon_client *client = *link;

		if (!client->revoked && !is_valid(server, client, now))
			client->revoked = true;
		if (client->users || (!client->revoked && client->filled > idle)) {
			link = &client->next;
			continue;
		}
		*link = client->next;
		json_decref(client->projects);
		free(client);
	}
}

int cordon_clients_load(struct cordon_server *server, struct cordon_error *err)
{
	struct cordon_tokens tokens = { 0 };
	int r = cordon_tokens_load(server->store, &tokens, err);

	/* INVARIANT: tokens that can't be read let nobody in. */
	cordon_tokens_done(&server->tokens);
	if (r == 0)
		server->tokens = tokens;
	cordon_clients_expire(server);
	return r;
}
