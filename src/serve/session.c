/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the legacy era. An id is "<payload>.<mac>": the payload has version, capabilities, client and expiry, and
 * the code covers it and the principal. So no restart makes an id invalid, and none is of use to another client. What
 * was ended is remembered until it would have expired.
 */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>

#include "base/home.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/time.h"
#include "serve/internal.h"

/* ---- identifiers that have ended ---- */

/*
 * What was ended before it would have expired: sessions of the legacy era, and logins of the page. Each is remembered
 * by its nonce, across restarts, in a file of lines "<nonce> <expiry>".
 */

#define BYTES_MAX ((size_t)4 << 20)
#define LINE_MAX_BYTES 96

/* A client can end as many sessions as it likes. When there are too many, the oldest are forgotten: their ids are good
 * again, for their client alone. INVARIANT: a login that was ended stays so, whatever clients do. */
static const struct kind {
	const char *file;
	size_t max;
	bool forgets;
} kinds[CORDON_ENDED__MAX] = {
	[CORDON_ENDED_SESSIONS] = { "ended", 20000, true },
	[CORDON_ENDED_LOGINS] = { "ended-logins", 20000, false },
};

bool cordon_ended_has(const struct cordon_server *server, cordon_ended which, const char *nonce)
{
	return json_object_get(server->ended[which], nonce) != NULL;
}

/* Half a line, of a server that was killed, names nothing. */
static void read_lines(json_t *ended, char *text, int64_t now)
{
	char *at = text, *line;

	while ((line = strsep(&at, "\n")) && at) {
		char *expiry = strchr(line, ' ');
		uint64_t ms;

		if (!expiry)
			continue;
		*expiry++ = '\0';
		if (strlen(line) == CORDON_SESSION_NONCE_SIZE - 1 && cordon_parse_u64(expiry, 0, INT64_MAX, &ms) == 0 &&
		    (int64_t)ms > now)
			json_object_set_new(ended, line, json_integer((json_int_t)ms));
	}
}

/* Writes the list anew, without those that expire before this time. */
static int write_anew(struct cordon_server *server, cordon_ended which, int64_t before, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(BYTES_MAX);
	const char *nonce;
	json_t *expiry;
	void *next;

	json_object_foreach_safe(server->ended[which], next, nonce, expiry)
	{
		if (json_integer_value(expiry) <= before)
			json_object_del(server->ended[which], nonce);
		else if (cordon_buf_addf(&text, "%s %lld\n", nonce, (long long)json_integer_value(expiry)) < 0)
			return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	}
	return cordon_write_file(server->serve_fd, kinds[which].file, 0600, text.data ? text.data : "", text.len, err);
}

static int ended_load(struct cordon_server *server, struct cordon_error *err)
{
	for (cordon_ended which = 0; which < CORDON_ENDED__MAX; which++) {
		autobuf struct cordon_buf text = CORDON_BUF(BYTES_MAX);
		int64_t now = cordon_time_now();
		int r;

		server->ended[which] = json_object();
		if (!server->ended[which])
			return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
		r = cordon_read_file(server->serve_fd, kinds[which].file, O_NOFOLLOW, &text, err);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == -ENOENT || !text.data)
			continue;
		read_lines(server->ended[which], text.data, now);
		r = write_anew(server, which, now, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void ended_free(struct cordon_server *server)
{
	for (cordon_ended which = 0; which < CORDON_ENDED__MAX; which++) {
		json_decref(server->ended[which]);
		server->ended[which] = NULL;
	}
}

/* A time before which about half of the list expires. All have the same life, so the oldest expire first. */
static int64_t middle(const json_t *ended)
{
	int64_t least = INT64_MAX, most = 0;
	const char *nonce;
	json_t *expiry;

	json_object_foreach((json_t *)(uintptr_t)ended, nonce, expiry) {
		least = json_integer_value(expiry) < least ? json_integer_value(expiry) : least;
		most = json_integer_value(expiry) > most ? json_integer_value(expiry) : most;
	}
	return least + (most - least) / 2;
}

static int make_room(struct cordon_server *server, cordon_ended which, struct cordon_error *err)
{
	int r = 0;

	if (json_object_size(server->ended[which]) >= kinds[which].max)
		r = write_anew(server, which, cordon_time_now(), err);
	if (r == 0 && kinds[which].forgets && json_object_size(server->ended[which]) >= kinds[which].max)
		r = write_anew(server, which, middle(server->ended[which]), err);
	if (r == 0 && json_object_size(server->ended[which]) >= kinds[which].max)
		r = cordon_fail(err, -ENOSPC, CORDON_KIND_LIMIT, "too many were ended lately");
	return r;
}

int cordon_ended_add(struct cordon_server *server, cordon_ended which, const char *nonce, int64_t expiry,
		     struct cordon_error *err)
{
	char line[LINE_MAX_BYTES];
	autofd int fd = -1;
	int n, r = make_room(server, which, err);

	if (r < 0)
		return r;
	n = snprintf(line, sizeof(line), "%s %lld\n", nonce, (long long)expiry);
	fd = openat(server->serve_fd, kinds[which].file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || (r = cordon_write_all(fd, line, (size_t)n)) < 0 || fdatasync(fd) < 0)
		return cordon_fail_errno(err, r < 0 ? r : -errno, "state/serve/%s", kinds[which].file);
	json_object_set_new(server->ended[which], nonce, json_integer((json_int_t)expiry));
	return 0;
}

/* ---- sessions ---- */

#define KEY "key"
#define KEPT_MS 600000 /* subscriptions of a client that has no stream */
#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

int cordon_serve_key(const struct cordon_store *store, unsigned char ret_key[static CORDON_SERVE_KEY_SIZE],
		     struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_SERVE_KEY_SIZE);
	autofd int dir = -1;
	int r = cordon_home_subdir(&store->home, "serve", &dir, err);

	if (r < 0)
		return r;
	/* Two servers that start at once have the same key: the second waits here until the first has written it. */
	r = cordon_lock(dir, LOCK_EX);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock state/serve");
	r = cordon_read_file(dir, KEY, O_NOFOLLOW, &text, err);
	if (r == -ENOENT) {
		unsigned char key[CORDON_SERVE_KEY_SIZE];

		randombytes_buf(key, sizeof(key));
		r = cordon_write_file(dir, KEY, 0600, key, sizeof(key), err);
		sodium_memzero(key, sizeof(key));
		if (r == 0)
			r = cordon_read_file(dir, KEY, O_NOFOLLOW, &text, err);
	}
	if (r < 0)
		return r;
	if (text.len != CORDON_SERVE_KEY_SIZE) {
		cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "state/serve/" KEY " is damaged");
		cordon_error_hint(err, "remove it; clients of the older protocol then have to connect again");
		return -EBADMSG;
	}
	memcpy(ret_key, text.data, CORDON_SERVE_KEY_SIZE);
	sodium_memzero(text.data, text.len);
	return 0;
}

static void make_mac(const struct cordon_server *server, const char *payload, const char *principal,
		     unsigned char ret_mac[static crypto_auth_BYTES])
{
	autobuf struct cordon_buf about = CORDON_BUF(2 * CORDON_SESSION_TEXT_MAX);

	/* The payload is of base64url, so the line feed can't be a part of it. */
	cordon_buf_addf(&about, "session\n%s\n%s", payload, principal);
	crypto_auth(ret_mac, (const unsigned char *)about.data, about.len, server->key);
}

/* Only what a server can ask for later, and without details: a client may send any number of them. */
static json_t *kept_capabilities(const json_t *all)
{
	const json_t *elicitation = json_object_get(all, "elicitation");
	json_t *kept = json_object();

	if (json_object_get(all, "sampling"))
		json_object_set_new(kept, "sampling", json_object());
	if (json_is_object(elicitation)) {
		json_t *forms = json_object();

		if (json_object_get(elicitation, "form"))
			json_object_set_new(forms, "form", json_object());
		if (json_object_get(elicitation, "url"))
			json_object_set_new(forms, "url", json_object());
		json_object_set_new(kept, "elicitation", forms);
	}
	return kept;
}

int cordon_session_id_make(struct cordon_server *server, const struct cordon_mcp_channel *channel,
			   struct cordon_buf *ret_text)
{
	const char *name = cordon_json_string(channel->client, "name");
	char shown[65] = "", nonce[CORDON_SESSION_NONCE_SIZE], encoded[2 * crypto_auth_BYTES];
	unsigned char bytes[16], mac[crypto_auth_BYTES];
	autofree char *json = NULL;
	autofree char *payload = NULL;
	json_auto_t *value = NULL;
	size_t size;

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(nonce, sizeof(nonce), bytes, sizeof(bytes));
	if (name)
		cordon_text_escape_fixed(shown, sizeof(shown), name, strnlen(name, 256));
	value = json_pack("{s:s, s:o, s:I, s:s, s:s}", "v", channel->version, "c",
			  kept_capabilities(channel->capabilities), "e",
			  (json_int_t)cordon_time_now() + CORDON_SESSION_LIFE_MS, "n", nonce, "i", shown);
	json = value ? json_dumps(value, JSON_COMPACT) : NULL;
	if (!json)
		return -ENOMEM;
	size = sodium_base64_encoded_len(strlen(json), VARIANT);
	payload = malloc(size);
	if (!payload)
		return -ENOMEM;
	sodium_bin2base64(payload, size, (const unsigned char *)json, strlen(json), VARIANT);
	make_mac(server, payload, channel->principal, mac);
	sodium_bin2base64(encoded, sizeof(encoded), mac, sizeof(mac), VARIANT);
	return cordon_buf_addf(ret_text, "%s.%s", payload, encoded);
}

/* Returns the payload of an id that we made for this principal, a new reference, or NULL. */
static json_t *open_id(const struct cordon_server *server, const char *text, const char *principal)
{
	const char *dot = strchr(text, '.');
	unsigned char mac[crypto_auth_BYTES], given[crypto_auth_BYTES], json[CORDON_SESSION_TEXT_MAX];
	autofree char *payload = NULL;
	size_t n;

	if (!dot || strlen(text) > CORDON_SESSION_TEXT_MAX)
		return NULL;
	payload = strndup(text, (size_t)(dot - text));
	if (!payload || sodium_base642bin(given, sizeof(given), dot + 1, strlen(dot + 1), NULL, &n, NULL, VARIANT) < 0 ||
	    n != sizeof(given))
		return NULL;
	make_mac(server, payload, principal, mac);
	if (sodium_memcmp(mac, given, sizeof(mac)) != 0 ||
	    sodium_base642bin(json, sizeof(json), payload, strlen(payload), NULL, &n, NULL, VARIANT) < 0)
		return NULL;
	return json_loadb((const char *)json, n, 0, NULL);
}

/* What goes to a session rather than to one of its requests is sent on its stream, if it has one. */
static void send_to_stream(struct cordon_mcp_channel *channel, const json_t *message)
{
	struct cordon_http_session *session = channel->data;

	if (session->stream)
		session->stream->channel.send(&session->stream->channel, message);
}

static struct cordon_http_session *get(struct cordon_server *server, struct cordon_client *client, const char *nonce,
				       int64_t expiry)
{
	struct cordon_http_session *session = server->sessions;

	while (session && !cordon_streq(session->nonce, nonce))
		session = session->next;
	if (!session) {
		session = calloc(1, sizeof(*session));
		if (!session)
			return NULL;
		cordon_copy(session->nonce, sizeof(session->nonce), nonce, strlen(nonce));
		session->server = server;
		session->client = client;
		client->users++;
		session->expiry = expiry;
		session->channel = (struct cordon_mcp_channel){
			.send = send_to_stream,
			.data = session,
			.principal = client->name,
			.initialized = true,
			.grant = *client->token_id ? &client->grant : NULL,
		};
		session->next = server->sessions;
		server->sessions = session;
	}
	session->users++;
	return session;
}

int cordon_http_session_find(struct cordon_server *server, struct cordon_client *client, const char *text,
			     struct cordon_mcp_channel *channel, struct cordon_http_session **ret_session)
{
	json_auto_t *value = open_id(server, text, client->name);
	const char *nonce = cordon_json_string(value, "n");
	const char *version = cordon_json_string(value, "v");
	int64_t expiry = cordon_json_integer(value, "e");
	struct cordon_http_session *session;

	if (!nonce || !version || expiry <= cordon_time_now() || cordon_ended_has(server, CORDON_ENDED_SESSIONS, nonce))
		return -ENOENT;
	session = get(server, client, nonce, expiry);
	if (!session)
		return -ENOMEM;
	channel->initialized = true;
	channel->session = &session->channel;
	cordon_copy(channel->version, sizeof(channel->version), version, strlen(version));
	channel->capabilities = json_incref(json_object_get(value, "c"));
	channel->client = json_pack("{s:O}", "name", json_object_get(value, "i"));
	*ret_session = session;
	return 0;
}

static void free_session(struct cordon_http_session *session)
{
	struct cordon_http_session **link = &session->server->sessions;

	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
	if (session->kept)
		session->client->kept--;
	cordon_mcp_close_channel(session->server->mcp, &session->channel, false);
	cordon_client_drop(session->server, session->client);
	free(session);
}

bool cordon_http_session_may_subscribe(const struct cordon_http_session *session)
{
	return session->kept || session->client->kept < CORDON_SERVE_STREAMS_MAX;
}

void cordon_http_session_subscribed(struct cordon_http_session *session)
{
	bool kept = cordon_mcp_listens(session->server->mcp, &session->channel);

	if (kept == session->kept)
		return;
	session->kept = kept;
	if (kept)
		session->client->kept++;
	else
		session->client->kept--;
}

static bool is_kept(const struct cordon_http_session *session, int64_t now)
{
	if (session->users || session->stream)
		return true;
	return cordon_mcp_listens(session->server->mcp, &session->channel) && !session->client->revoked &&
	       now - session->left < KEPT_MS &&
	       !cordon_ended_has(session->server, CORDON_ENDED_SESSIONS, session->nonce);
}

void cordon_http_session_drop(struct cordon_http_session *session)
{
	int64_t now = cordon_time_monotonic();

	if (!session)
		return;
	session->users--;
	session->left = now;
	if (!is_kept(session, now))
		free_session(session);
}

void cordon_http_sessions_sweep(struct cordon_server *server, int64_t now)
{
	struct cordon_http_session *next;

	for (struct cordon_http_session *session = server->sessions; session; session = next) {
		next = session->next;
		if (!is_kept(session, now))
			free_session(session);
	}
}

void cordon_http_sessions_free(struct cordon_server *server)
{
	while (server->sessions)
		free_session(server->sessions);
	ended_free(server);
	server->key = cordon_secret_free(server->key, CORDON_SERVE_KEY_SIZE);
}

int cordon_http_sessions_load(struct cordon_server *server, struct cordon_error *err)
{
	int r = cordon_home_subdir(&server->store->home, "serve", &server->serve_fd, err);

	if (r == 0)
		server->key = cordon_secret_new(CORDON_SERVE_KEY_SIZE);
	if (r == 0)
		r = server->key ? cordon_serve_key(server->store, server->key, err)
				: cordon_fail_errno(err, -errno, "no memory for a key");
	return r < 0 ? r : ended_load(server, err);
}

int cordon_http_session_end(struct cordon_http_session *session, struct cordon_error *err)
{
	return cordon_ended_add(session->server, CORDON_ENDED_SESSIONS, session->nonce, session->expiry, err);
}
