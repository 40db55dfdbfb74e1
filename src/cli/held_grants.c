/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the directory of the settings, because each change replaces the file. */
#include <sys/inotify.h>

#include "base/path.h"
#include "cli/held_grants.h"
#include "flow/flow.h"

static int watch(const struct cordon_held_grants *held, const char *path)
{
	return inotify_add_watch(held->fd, path, IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE);
}

int cordon_held_grants_begin(struct cordon_held_grants *held, const char *config, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	autofd int kept = -1;
	int r = cordon_settings_path(config, path, err);

	*held = (struct cordon_held_grants){ .config = config, .fd = -1, .home = CORDON_HOME_NONE };
	if (r == 0)
		r = cordon_home_open(&held->home, err);
	if (r == 0)
		r = cordon_home_subdir(&held->home, CORDON_FLOW_KEPT, &kept, err);
	if (r < 0) {
		cordon_held_grants_done(held);
		return r;
	}
	*strrchr(path, '/') = '\0';
	held->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (held->fd < 0 || watch(held, *path ? path : "/") < 0 ||
	    cordon_concat(path, sizeof(path), held->home.path, "/state/" CORDON_FLOW_KEPT, (char *)NULL) < 0 ||
	    watch(held, path) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot watch %s", path);
		cordon_held_grants_done(held);
	}
	return r;
}

void cordon_held_grants_done(struct cordon_held_grants *held)
{
	cordon_closep(&held->fd);
	cordon_home_done(&held->home);
}

size_t cordon_held_grants_fds(void *data, struct pollfd *ret_fds)
{
	const struct cordon_held_grants *held = data;

	if (held->fd < 0)
		return 0;
	ret_fds[0] = (struct pollfd){ .fd = held->fd, .events = POLLIN };
	return 1;
}

/* The first area that the settings do not grant any more, or grant less of; NULL when there is none. A text with errors, such as
 * a person makes while editing, decides nothing. */
static const struct cordon_shared_area *lost_area(const struct cordon_held_grants *held)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	const struct cordon_orchestrator *now = NULL, *then = held->orchestrator;
	autosettings struct cordon_settings_file *settings = NULL;

	if (cordon_settings_load(held->config, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0)
		return NULL;
	(void)cordon_settings_orchestrator(settings, then->id, &now, NULL);
	for (size_t i = 0; i < then->n_grants; i++) {
		const struct cordon_area_grant *was = &then->grants[i];
		const struct cordon_area_grant *is = now ? cordon_orchestrator_grant(now, was->area->key) : NULL;

		if ((!is || (is->read_only && !was->read_only) || !cordon_streq(is->area->path, was->area->path)) &&
		    !cordon_flow_keeps_commands(&held->home, then->id, was->area->key))
			return was->area;
	}
	return NULL;
}

bool cordon_held_grants_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct cordon_held_grants *held = data;
	const struct cordon_shared_area *lost;
	char events[4096];

	if (n != 1 || !(fds[0].revents & POLLIN))
		return false;
	while (read(held->fd, events, sizeof(events)) > 0)
		;
	/* A second true would kill the command before its grace time is over. */
	lost = *held->revoked ? NULL : lost_area(held);
	if (lost)
		(void)cordon_copy(held->revoked, sizeof(held->revoked), lost->key, strlen(lost->key));
	return lost != NULL;
}
