/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was ended before it would have expired: sessions of the legacy era, and logins of the page. Each is remembered by its
 * nonce, across restarts, in a file of lines "<nonce> <expiry>".
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/text.h"
#include "base/time.h"
#include "serve/internal.h"

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

int cordon_ended_load(struct cordon_server *server, struct cordon_error *err)
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

void cordon_ended_free(struct cordon_server *server)
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
