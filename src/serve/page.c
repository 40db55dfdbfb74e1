/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page over HTTP: its routes, its checks besides those of all requests, and the answers that child processes make.
 *
 *     /open            the control socket only: a link that works once
 *     /login           uses such a link up, and sets the cookie
 *     /logout          ends the login
 *     /events          a stream that says when something has changed
 *     /page/...        style sheet, script, icon
 *     all others       src/page
 */
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>

#include "base/time.h"
#include "page/form.h"
#include "serve/internal.h"

#define URL_SIZE 512
#define OPEN_SIZE 1024 /* a link and a sentence */

int cordon_exchange_page(struct cordon_exchange *exchange)
{
	exchange->page = calloc(1, sizeof(*exchange->page));
	exchange->body.max = CORDON_PAGE_BODY_MAX;
	return exchange->page ? 0 : -ENOMEM;
}

void cordon_exchange_page_done(struct cordon_exchange *exchange)
{
	if (exchange->page->worker)
		cordon_worker_leave(exchange->page->worker);
	cordon_live_free(exchange->server, exchange->page->live);
	free(exchange->page);
	exchange->page = NULL;
}

static void set_type(struct cordon_exchange *exchange, const char *type)
{
	cordon_copy(exchange->page->head.type, sizeof(exchange->page->head.type), type, strlen(type));
}

static void answer(struct cordon_exchange *exchange, int status, const char *type, struct cordon_buf *body)
{
	exchange->state = CORDON_EXCHANGE_ANSWER;
	exchange->status = status;
	exchange->finished = true;
	set_type(exchange, type);
	cordon_buf_done(&exchange->out);
	exchange->out = *body;
	*body = (struct cordon_buf){ 0 };
}

void cordon_exchange_page_refuse(struct cordon_exchange *exchange, int status, const char *why)
{
	struct cordon_page_answer made;

	cordon_page_refuse(status, why, &made);
	answer(exchange, status, made.type, &made.body);
}

void cordon_exchange_page_headers(const struct cordon_exchange *exchange, struct MHD_Response *response)
{
	static const struct {
		const char *name, *value;
	} always[] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
		  "base-uri 'none'; frame-ancestors 'none'" },
		{ "X-Frame-Options", "DENY" },
		/* With "no-referrer", browsers would send "Origin: null" with our own forms. */
		{ "Referrer-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};
	const struct cordon_exchange_page *page = exchange->page;
	char value[sizeof(page->head.file) + 32];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(always); i++)
		MHD_add_response_header(response, always[i].name, always[i].value);
	if (*page->head.type)
		MHD_add_response_header(response, "Content-Type", page->head.type);
	if (*page->head.location)
		MHD_add_response_header(response, "Location", page->head.location);
	if (*page->cookie)
		MHD_add_response_header(response, "Set-Cookie", page->cookie);
	if (page->asset) /* its address changes with it */
		MHD_add_response_header(response, "Cache-Control", "private, max-age=604800, immutable");
	if (*page->head.file) {
		snprintf(value, sizeof(value), "attachment; filename=\"%s\"", page->head.file);
		MHD_add_response_header(response, "Content-Disposition", value);
	}
}

bool cordon_exchange_page_expired(const struct cordon_exchange *exchange)
{
	return exchange->page->login.expiry <= cordon_time_now() ||
	       cordon_ended_has(exchange->server, CORDON_ENDED_LOGINS, exchange->page->login.nonce);
}

/* ---- what the child reports ---- */

void cordon_exchange_page_begin(struct cordon_exchange *exchange, const struct cordon_worker_head *head)
{
	struct cordon_worker_head *kept = &exchange->page->head;

	*kept = *head;
	kept->type[sizeof(kept->type) - 1] = kept->location[sizeof(kept->location) - 1] =
		kept->file[sizeof(kept->file) - 1] = '\0';
	exchange->status = kept->status;
	exchange->server->browser = kept->browser;
	cordon_exchange_stream(exchange);
	cordon_exchange_resume(exchange);
}

void cordon_exchange_page_add(struct cordon_exchange *exchange, const char *bytes, size_t n)
{
	if (cordon_buf_add(&exchange->out, bytes, n) < 0)
		exchange->page->broken = exchange->finished = true;
	cordon_exchange_resume(exchange);
}

void cordon_exchange_page_end(struct cordon_exchange *exchange, bool headed, bool whole)
{
	exchange->page->broken |= !whole;
	if (!headed)
		cordon_exchange_page_refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR,
					    "The page could not be made; this is a fault of cordon, and nothing was lost");
	cordon_exchange_finish(exchange);
}

/* ---- the routes ---- */

static const char *header(const struct cordon_exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, name);
}

static const char *query_of(const struct cordon_exchange *exchange)
{
	return exchange->connection->query ? exchange->connection->query : "";
}

static void make(struct cordon_exchange *exchange, const char *method, const char *path)
{
	int r = cordon_worker_start(exchange, method, path, query_of(exchange));

	cordon_buf_done(&exchange->body);
	if (r < 0)
		cordon_exchange_page_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
					    "Too many pages are being made at this moment; load the page again");
	else
		exchange->state = CORDON_EXCHANGE_WAITING;
}

/* Returns the name of a front, which ends TLS before us, if it is one. */
static const char *find_front(const struct cordon_server *server, const char *host)
{
	for (size_t i = 0; host && i < server->options->n_hosts; i++)
		if (strcasecmp(server->options->hosts[i], host) == 0)
			return server->options->hosts[i];
	return NULL;
}

/* The front through which a request came, or NULL. */
static const char *front_of(const struct cordon_exchange *exchange)
{
	return find_front(exchange->server, header(exchange, MHD_HTTP_HEADER_HOST));
}

/* The port of the page, which is opened if there is none. */
static const struct cordon_listener *reachable(struct cordon_server *server, struct cordon_error *err)
{
	struct cordon_listener listener;

	for (size_t i = 0; i < server->n_listeners; i++)
		if (server->listeners[i].page)
			return &server->listeners[i];
	if (cordon_listener_page(server->serve_fd, false, &listener, &server->moved, err) < 0 ||
	    cordon_server_listen(server, &listener, err) < 0)
		return NULL;
	return &server->listeners[server->n_listeners - 1];
}

/* INVARIANT: the page is on the port of its own alone, and behind a front that has a name of its own. A browser sends
 * what lets a person in to every server of the host, and on 127.0.0.1 those of agents are among them. */
static bool has_page(const struct cordon_exchange *exchange)
{
	const struct cordon_listener *listener = exchange->connection->listener;

	return listener->page ? !front_of(exchange) : !listener->local && front_of(exchange);
}

/* INVARIANT: on its own port only the user who runs the server sees the page, and root, who can do everything anyway. A
 * front runs as somebody else, and lets people in from elsewhere by its nature. */
static bool is_own(const struct cordon_exchange *exchange)
{
	uint32_t inode;
	uid_t uid;

	if (front_of(exchange))
		return true;
	if (cordon_peer_uid(exchange->connection->fd, &uid, &inode) < 0 || (uid != geteuid() && uid != 0))
		return false;
	/* We can't look into root's processes, and an agent is none of them. */
	exchange->page->inode = uid == geteuid() ? inode : 0;
	return true;
}

static void open_page(struct cordon_exchange *exchange)
{
	const char *front = MHD_lookup_connection_value(exchange->http, MHD_GET_ARGUMENT_KIND, "front");
	struct cordon_error err = { 0 };
	const struct cordon_listener *listener = front ? NULL : reachable(exchange->server, &err);
	struct cordon_buf body = CORDON_BUF(OPEN_SIZE);
	char url[URL_SIZE], place[URL_SIZE] = "";
	int n = 0;

	if (front && !find_front(exchange->server, front)) {
		cordon_buf_adds(&body, "the server was not started with --allow-host for this name\n");
		answer(exchange, MHD_HTTP_FORBIDDEN, "text/plain; charset=utf-8", &body);
		return;
	}
	if (front || listener)
		n = snprintf(place, sizeof(place), front ? "https://%s" : "http://%s",
			     front ? front : listener->hosts[0]);
	if (n <= 0 || (size_t)n >= sizeof(place) || cordon_login_link(exchange->server, place, url, sizeof(url)) < 0) {
		cordon_buf_addf(&body, "%s\n", *err.message ? err.message : "no link can be made");
		answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", &body);
		return;
	}
	cordon_buf_addf(&body, "%s\n", url);
	if (!front && exchange->server->moved)
		cordon_buf_adds(&body,
				"somebody else uses the address that the page had, so it has another one, and earlier logins "
				"have ended\n");
	answer(exchange, MHD_HTTP_OK, "text/plain; charset=utf-8", &body);
}

/*
 * The next page is not the answer of a redirect: after a link from another site, a browser would not send the cookie
 * along with one. It is a page of ours that goes on by itself.
 */
static void log_in(struct cordon_exchange *exchange)
{
	const char *code = MHD_lookup_connection_value(exchange->http, MHD_GET_ARGUMENT_KIND, "code");
	struct cordon_exchange_page *page = exchange->page;
	struct cordon_buf body = CORDON_BUF(1024);

	if (cordon_login_use(exchange->server, exchange->connection->listener, front_of(exchange), code, page->inode,
			     page->cookie, sizeof(page->cookie)) < 0) {
		*page->cookie = '\0';
		cordon_exchange_page_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
					    "This link was used already, or is older than a minute");
		return;
	}
	cordon_buf_adds(&body, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>cordon</title>"
			       "<link rel=\"icon\" href=\"/page/icon.svg\" type=\"image/svg+xml\">"
			       "<meta http-equiv=\"refresh\" content=\"0; url=/\"></head>"
			       "<body><p><a href=\"/\">Go on</a></p></body></html>\n");
	answer(exchange, MHD_HTTP_OK, "text/html; charset=utf-8", &body);
}

static void log_out(struct cordon_exchange *exchange)
{
	struct cordon_exchange_page *page = exchange->page;
	autoform struct cordon_form fields = { 0 };
	struct cordon_error err = { 0 };
	const char *token;

	if (exchange->body.len)
		cordon_form_parse(exchange->body.data, exchange->body.len, &fields);
	token = cordon_form_get(&fields, "token");
	if (!token || !cordon_streq(token, page->login.token)) {
		cordon_exchange_page_refuse(exchange, MHD_HTTP_FORBIDDEN, "The form does not belong to this login");
		return;
	}
	if (cordon_ended_add(exchange->server, CORDON_ENDED_LOGINS, page->login.nonce, page->login.expiry, &err) < 0) {
		cordon_exchange_page_refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, err.message);
		return;
	}
	snprintf(page->cookie, sizeof(page->cookie), "cordon-%u=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
		 exchange->connection->listener->port);
	cordon_server_sweep_by(exchange->server, 0); /* ends the streams of this login */
	cordon_exchange_page_refuse(exchange, MHD_HTTP_OK, "You are logged out");
}

static void listen_to(struct cordon_exchange *exchange)
{
	const char *topics = MHD_lookup_connection_value(exchange->http, MHD_GET_ARGUMENT_KIND, "on");

	if (exchange->client->streams >= CORDON_SERVE_STREAMS_MAX) {
		cordon_exchange_page_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "Too many pages are open");
		return;
	}
	exchange->page->live = cordon_live_new(exchange->server, topics ? topics : "");
	if (!exchange->page->live) {
		cordon_exchange_page_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
		return;
	}
	exchange->is_stream = true;
	exchange->takes_events = true;
	exchange->counted_stream = true;
	exchange->client->streams++;
	cordon_exchange_stream(exchange);
	cordon_exchange_event(exchange, ": listening\n\n");
}

/* Whether a form comes from the very name to which it goes. Another name of this server may lead a browser to somebody
 * else's: on port 8080 of [::1] another user may listen while we have that of 127.0.0.1. */
static bool is_origin(const char *origin, const char *host)
{
	const char *name = origin ? strstr(origin, "://") : NULL;

	return name && host && strcasecmp(name + 3, host) == 0;
}

/* What a browser sends about the origin of a request. Pages of other ports are "same-site", so that is not enough; a
 * person who follows a link or types an address may come from anywhere, because GET changes nothing. */
static bool comes_from_us(const struct cordon_exchange *exchange, const char *method)
{
	const char *site = header(exchange, "Sec-Fetch-Site"), *mode = header(exchange, "Sec-Fetch-Mode");
	const char *dest = header(exchange, "Sec-Fetch-Dest");

	if (cordon_streq(method, "POST"))
		return is_origin(header(exchange, "Origin"), header(exchange, MHD_HTTP_HEADER_HOST)) &&
		       (!site || cordon_streq(site, "same-origin"));
	if (!site || cordon_streq(site, "same-origin") || cordon_streq(site, "none"))
		return true;
	return mode && cordon_streq(mode, "navigate") && dest && cordon_streq(dest, "document");
}

static bool is_form(const struct cordon_exchange *exchange)
{
	static const char form[] = "application/x-www-form-urlencoded";
	const char *type = header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);

	return type && strncmp(type, form, sizeof(form) - 1) == 0 && strchr("; ", type[sizeof(form) - 1]);
}

/* Checks what a route needs. Returns 0, or a status with *ret_why. */
static int check(struct cordon_exchange *exchange, const char *path, const char *method, const char **ret_why)
{
	const struct cordon_listener *listener = exchange->connection->listener;
	const char *length = header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
	bool posts = cordon_streq(method, "POST"), opens = cordon_streq(path, "/open");
	uint64_t n;

	*ret_why = "There is nothing here";
	if (opens != listener->control || (!opens && !has_page(exchange)))
		return MHD_HTTP_NOT_FOUND;
	if (opens)
		return posts ? 0 : MHD_HTTP_METHOD_NOT_ALLOWED;
	*ret_why = "This page is for another user of this machine";
	if (!is_own(exchange))
		return MHD_HTTP_FORBIDDEN;
	*ret_why = "Requests of other sites are refused";
	if (!comes_from_us(exchange, method))
		return MHD_HTTP_FORBIDDEN;
	if (cordon_streq(path, "/login") || exchange->page->asset)
		return 0;
	*ret_why = "You are not logged in, or your login has ended";
	if (cordon_login_check(exchange->server, listener, front_of(exchange), header(exchange, MHD_HTTP_HEADER_COOKIE),
			       &exchange->page->login) < 0)
		return MHD_HTTP_UNAUTHORIZED;
	*ret_why = "This is no form of a page";
	if (posts && !is_form(exchange))
		return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	*ret_why = "The form is too long";
	if (posts && length && (cordon_parse_u64(length, 0, UINT64_MAX, &n) < 0 || n > CORDON_PAGE_BODY_MAX))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	return 0;
}

int cordon_page_status(const char *path, const char *method)
{
	static const struct {
		const char *path, *method;
	} routes[] = { { "/open", "POST" }, { "/login", "GET" }, { "/logout", "POST" }, { "/events", "GET" } };
	const char *bytes, *type;
	size_t n;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(routes); i++)
		if (cordon_streq(routes[i].path, path))
			return cordon_streq(routes[i].method, method) ? MHD_HTTP_OK : MHD_HTTP_METHOD_NOT_ALLOWED;
	if (cordon_page_asset(path, &bytes, &n, &type) == 0)
		return cordon_streq(method, "GET") ? MHD_HTTP_OK : MHD_HTTP_METHOD_NOT_ALLOWED;
	return cordon_page_find(path, method);
}

void cordon_exchange_page_route(struct cordon_exchange *exchange, const char *path, const char *method, bool *ret_reads)
{
	const char *why, *type;
	int status;

	*ret_reads = false;
	if (cordon_page_asset(path, &exchange->page->asset, &exchange->page->asset_size, &type) == 0)
		set_type(exchange, type);
	status = check(exchange, path, method, &why);
	if (status) {
		exchange->page->asset = NULL;
		cordon_exchange_page_refuse(exchange, status, why);
	} else if (exchange->page->asset) {
		exchange->state = CORDON_EXCHANGE_ANSWER;
		exchange->finished = true;
	} else if (cordon_streq(path, "/open")) {
		open_page(exchange);
	} else if (cordon_streq(path, "/login")) {
		log_in(exchange);
	} else if (cordon_streq(path, "/events")) {
		listen_to(exchange);
	} else if (cordon_streq(method, "GET")) {
		make(exchange, method, path);
	} else {
		*ret_reads = true;
	}
}

void cordon_exchange_page_form(struct cordon_exchange *exchange, const char *path)
{
	exchange->connection->complete = true;
	if (exchange->too_long)
		cordon_exchange_page_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "The form is too long");
	else if (exchange->crowded)
		cordon_exchange_page_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS,
					    "Too much is under way at this moment; send the form again");
	else if (cordon_streq(path, "/logout"))
		log_out(exchange);
	else
		make(exchange, "POST", path);
}
