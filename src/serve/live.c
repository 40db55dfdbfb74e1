/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies open pages of changes: a stream of events for each, and inotify on the directories below state/
 * that the page shows. A stream gets an event at most four times a second, and always one for the last change.
 */
#include <sys/inotify.h>

#include "base/path.h"
#include "base/time.h"
#include "serve/internal.h"

#define INTERVAL_MS 250
#define TOPICS_MAX 24
#define TOPIC_SIZE 320 /* of a path below state/ */
#define DEPTH_MAX 3    /* directories below the one of a kind */
#define EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ONLYDIR | IN_DONT_FOLLOW)

/* One directory that somebody watches. */
struct cordon_live_topic {
	struct cordon_live_topic *next;
	int wd;
	unsigned int users;
};

/* One stream. */
struct cordon_live {
	struct cordon_live_topic *topics[TOPICS_MAX];
	size_t n;
	bool dirty;
	int64_t told;
};

/* The byte at `*at`, which moves on: a letter, digit or dash, or any other as %XX; -1 when it is none. */
static int read_byte(const char *text, size_t n, size_t *at)
{
	static const char digits[] = "0123456789ABCDEF";
	unsigned char c = (unsigned char)text[(*at)++];
	const char *high, *low;

	if (c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return c;
	if (c != '%' || n - *at < 2 || !text[*at] || !text[*at + 1])
		return -1;
	high = strchr(digits, text[*at]);
	low = strchr(digits, text[*at + 1]);
	*at += 2;
	return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* A topic is a directory of one of these kinds below state/, or one that lies in it, as "sessions/UUID". No part of the
 * path is empty or begins with a dot. Writes the path. */
static bool read_topic(const char *text, size_t n, char ret[static TOPIC_SIZE])
{
	static const char *const kinds[] = { "approvals", "audit", "crew",     "flow", "loops",
					     "projects",  "runs",  "sessions", "views" };
	size_t len = 0, slashes = 0, kind = 0;
	bool known = false;

	for (size_t at = 0; at < n;) {
		bool begins = !len || ret[len - 1] == '/', slash = text[at] == '/';
		int c = slash ? '/' : read_byte(text, n, &at);

		at += slash;
		slashes += slash;
		if (c <= 0 || (c == '/' && (!slash || begins || at == n)) || (c == '.' && begins) ||
		    len + 1 >= TOPIC_SIZE)
			return false;
		ret[len++] = (char)c;
	}
	ret[len] = '\0';
	kind = strcspn(ret, "/");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kinds); i++)
		known |= strlen(kinds[i]) == kind && strncmp(kinds[i], ret, kind) == 0;
	return known && slashes <= DEPTH_MAX;
}

static struct cordon_live_topic *get_topic(struct cordon_server *server, const char *name)
{
	char below[TOPIC_SIZE + 8], path[CORDON_PATH_MAX];
	struct cordon_live_topic *topic = server->topics;
	autofd int made = -1;
	int wd;

	if (cordon_concat(below, sizeof(below), "state/", name, (char *)NULL) < 0 ||
	    cordon_path_join(server->store->home.path, below, path, sizeof(path)) < 0)
		return NULL;
	/* What holds everything of its kind is made now, or the first thing in it would come unseen. */
	if (!strchr(name, '/'))
		cordon_home_subdir(&server->store->home, name, &made, NULL);
	wd = inotify_add_watch(server->live_fd, path, EVENTS);
	if (wd < 0)
		return NULL; /* a removed directory has no events */
	while (topic && topic->wd != wd)
		topic = topic->next;
	if (!topic) {
		topic = calloc(1, sizeof(*topic));
		if (!topic) {
			inotify_rm_watch(server->live_fd, wd);
			return NULL;
		}
		topic->wd = wd;
		topic->next = server->topics;
		server->topics = topic;
	}
	topic->users++;
	return topic;
}

static void drop_topic(struct cordon_server *server, struct cordon_live_topic *topic)
{
	struct cordon_live_topic **link = &server->topics;

	if (--topic->users > 0)
		return;
	while (*link != topic)
		link = &(*link)->next;
	*link = topic->next;
	inotify_rm_watch(server->live_fd, topic->wd);
	free(topic);
}

/* `text` are topics with a blank between them. Unknown ones are skipped: the page then gets fewer events, not more. */
struct cordon_live *cordon_live_new(struct cordon_server *server, const char *text)
{
	struct cordon_live *live = calloc(1, sizeof(*live));

	while (live && *text && live->n < TOPICS_MAX) {
		size_t n = strcspn(text, " ");
		char name[TOPIC_SIZE];
		struct cordon_live_topic *topic = read_topic(text, n, name) ? get_topic(server, name) : NULL;

		if (topic)
			live->topics[live->n++] = topic;
		text += n + strspn(text + n, " ");
	}
	return live;
}

void cordon_live_free(struct cordon_server *server, struct cordon_live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->n; i++)
		drop_topic(server, live->topics[i]);
	free(live);
}

static void mark(struct cordon_server *server, const struct inotify_event *event)
{
	const char *name = event->len ? event->name : "";

	/* Temporary files of writes that have not ended are no change, and locks are none either. */
	if (!(event->mask & IN_Q_OVERFLOW) && (*name == '.' || cordon_streq(name, "lock") || cordon_streq(name, "locks")))
		return;
	for (struct cordon_exchange *exchange = server->exchanges; exchange; exchange = exchange->next) {
		struct cordon_live *live = exchange->page ? exchange->page->live : NULL;

		for (size_t i = 0; live && i < live->n; i++)
			live->dirty |= live->topics[i]->wd == event->wd || (event->mask & IN_Q_OVERFLOW);
	}
}

void cordon_live_read(struct cordon_server *server)
{
	_Alignas(struct inotify_event) char events[16384];
	ssize_t n;

	while ((n = read(server->live_fd, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)at;

			mark(server, event);
			at += sizeof(*event) + event->len;
		}
	}
	cordon_live_tell(server, cordon_time_monotonic());
}

void cordon_live_tell(struct cordon_server *server, int64_t now)
{
	for (struct cordon_exchange *exchange = server->exchanges; exchange; exchange = exchange->next) {
		struct cordon_live *live = exchange->page ? exchange->page->live : NULL;

		if (!live || !live->dirty)
			continue;
		if (live->told + INTERVAL_MS > now) {
			cordon_server_sweep_by(server, live->told + INTERVAL_MS);
			continue;
		}
		live->dirty = false;
		live->told = now;
		cordon_exchange_event(exchange, "event: change\ndata: 1\n\n");
	}
}
