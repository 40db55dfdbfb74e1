/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports what changed on disk, with inotify on the directories of the store. Changes of one place are reported at most
 * four times a second, and the last change always.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "base/path.h"
#include "mcp/internal.h"

#define INTERVAL_MS 250
#define EVENTS                                                                                                         \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

struct watch {
	struct watch *next;
	struct cordon_mcp_uri uri;
	char name[CORDON_ID_SIZE + 8]; /* the one file that matters, or "" for all */
	int wd;
	unsigned int users;
	bool dirty;
	int64_t reported;
};

struct cordon_mcp_watcher {
	int fd;
	struct watch *watches;
	int approvals; /* the watch of their directory, or -1 */
	unsigned int approvals_users;
};

int cordon_mcp_watcher_new(struct cordon_mcp *mcp)
{
	struct cordon_mcp_watcher *watcher = calloc(1, sizeof(*watcher));
	struct epoll_event event = { .events = EPOLLIN, .data.fd = -2 }; /* it belongs to no call */

	if (!watcher)
		return -ENOMEM;
	mcp->watcher = watcher;
	watcher->approvals = -1;
	watcher->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watcher->fd < 0 || epoll_ctl(mcp->epoll_fd, EPOLL_CTL_ADD, watcher->fd, &event) < 0)
		return -errno;
	return 0;
}

void cordon_mcp_watcher_free(struct cordon_mcp *mcp)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;

	if (!watcher)
		return;
	while (watcher->watches) {
		struct watch *watch = watcher->watches;

		watcher->watches = watch->next;
		free(watch);
	}
	cordon_closep(&watcher->fd);
	free(watcher);
	mcp->watcher = NULL;
}

static struct watch *find(const struct cordon_mcp_watcher *watcher, const struct cordon_mcp_uri *uri)
{
	for (struct watch *watch = watcher->watches; watch; watch = watch->next)
		if (cordon_mcp_uri_same(&watch->uri, uri))
			return watch;
	return NULL;
}

/* Finds the directory of a place, and the file in it. */
static int locate(const struct cordon_mcp_uri *uri, char *ret_dir, size_t size, char *ret_name, size_t name_size)
{
	ret_name[0] = '\0';
	switch (uri->place) {
	case CORDON_MCP_PROJECT:
		snprintf(ret_name, name_size, "project.json");
		return snprintf(ret_dir, size, "state/projects/%s", uri->id);
	case CORDON_MCP_WORKSPACES:
		return snprintf(ret_dir, size, "state/projects/%s/workspaces", uri->id);
	case CORDON_MCP_WORKSPACE:
		snprintf(ret_name, name_size, "%s.json", uri->workspace);
		return snprintf(ret_dir, size, "state/projects/%s/workspaces", uri->id);
	case CORDON_MCP_SESSIONS:
		return snprintf(ret_dir, size, "state/sessions");
	case CORDON_MCP_SESSION:
		snprintf(ret_name, name_size, "record.json");
		return snprintf(ret_dir, size, "state/sessions/%s", uri->id);
	case CORDON_MCP_SESSION_LOG:
		snprintf(ret_name, name_size, "events");
		return snprintf(ret_dir, size, "state/sessions/%s", uri->id);
	case CORDON_MCP_AUDIT:
		return snprintf(ret_dir, size, "state/audit");
	case CORDON_MCP_PROJECTS:
	case CORDON_MCP_PLACE__MAX:
	default:
		return snprintf(ret_dir, size, "state/projects");
	}
}

int cordon_mcp_watch(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;
	struct watch *watch = find(watcher, uri);
	char below[256], path[CORDON_PATH_MAX];
	int r;

	if (watch) {
		watch->users++;
		return 0;
	}
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->uri = *uri;
	watch->users = 1;
	locate(uri, below, sizeof(below), watch->name, sizeof(watch->name));
	r = cordon_path_join(mcp->store->home.path, below, path, sizeof(path));
	if (r == 0) {
		/* The same directory has the same number and the same events. */
		watch->wd = inotify_add_watch(watcher->fd, path, EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW);
		r = watch->wd < 0 ? -errno : 0;
	}
	if (r < 0) {
		free(watch);
		return r;
	}
	watch->next = watcher->watches;
	watcher->watches = watch;
	return 0;
}

void cordon_mcp_unwatch(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;
	struct watch *watch = find(watcher, uri);
	struct watch **link = &watcher->watches;
	bool shared = false;

	if (!watch || --watch->users > 0)
		return;
	while (*link != watch)
		link = &(*link)->next;
	*link = watch->next;
	for (const struct watch *other = watcher->watches; other; other = other->next)
		shared |= other->wd == watch->wd;
	if (!shared)
		inotify_rm_watch(watcher->fd, watch->wd);
	free(watch);
}

int cordon_mcp_approvals_watch(struct cordon_mcp *mcp)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;
	char path[CORDON_PATH_MAX];

	if (watcher->approvals < 0) {
		int r = cordon_path_join(mcp->store->home.path, "state/" CORDON_APPROVALS_DIR, path, sizeof(path));

		if (r < 0)
			return r;
		watcher->approvals = inotify_add_watch(watcher->fd, path,
						       IN_MOVED_TO | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW);
		if (watcher->approvals < 0)
			return -errno;
	}
	watcher->approvals_users++;
	return 0;
}

void cordon_mcp_approvals_unwatch(struct cordon_mcp *mcp)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;

	if (--watcher->approvals_users > 0)
		return;
	inotify_rm_watch(watcher->fd, watcher->approvals);
	watcher->approvals = -1;
}

static void mark(struct cordon_mcp *mcp, const struct inotify_event *event)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;
	bool all = event->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF);
	const char *name = event->len ? event->name : "";

	if (event->mask & IN_Q_OVERFLOW) {
		cordon_mcp_approval_changed(mcp, NULL);
	} else if (event->wd == watcher->approvals) {
		size_t n = strcspn(name, ".");
		char id[CORDON_ID_SIZE];

		if (cordon_copy(id, sizeof(id), name, n) == 0)
			cordon_mcp_approval_changed(mcp, id);
		return;
	}
	/* Temporary files of writes that have not ended are no change, and locks are none either. */
	if (!all && (*name == '.' || cordon_streq(name, "lock") || cordon_streq(name, "locks")))
		return;
	for (struct watch *watch = watcher->watches; watch; watch = watch->next)
		if ((event->mask & IN_Q_OVERFLOW) ||
		    (watch->wd == event->wd && (all || !*watch->name || cordon_streq(watch->name, name))))
			watch->dirty = true;
}

int64_t cordon_mcp_watcher_due(const struct cordon_mcp *mcp)
{
	int64_t due = INT64_MAX;

	for (const struct watch *watch = mcp->watcher->watches; watch; watch = watch->next)
		if (watch->dirty && watch->reported + INTERVAL_MS < due)
			due = watch->reported + INTERVAL_MS;
	return due;
}

void cordon_mcp_watcher_work(struct cordon_mcp *mcp, int64_t now)
{
	struct cordon_mcp_watcher *watcher = mcp->watcher;
	_Alignas(struct inotify_event) char events[16384];
	ssize_t n;

	while ((n = read(watcher->fd, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)at;

			mark(mcp, event);
			at += sizeof(*event) + event->len;
		}
	}
	for (struct watch *watch = watcher->watches; watch; watch = watch->next) {
		if (!watch->dirty || watch->reported + INTERVAL_MS > now)
			continue;
		watch->dirty = false;
		watch->reported = now;
		cordon_mcp_listens_changed(mcp, &watch->uri);
	}
}
