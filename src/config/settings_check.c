/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges where the paths of config.yaml lead. An area that lay in a private workspace would be there without a grant, and
 * one that held $CORDON_HOME would show every record.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/confirmed.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/profile.h"
#include "config/settings_reader.h"

/* A directory of the settings: an area or a private workspace. */
struct place {
	const char *path;
	const char *given; /* as it is written, or NULL */
	const char *id;
	bool area;
	const struct cordon_node *node; /* where to report */
	bool bad;			/* it was reported, and is not compared with others */
};

struct checking {
	const struct cordon_settings_file *settings;
	struct cordon_errors *errors;
	struct place *places;
	size_t n;
	char checked[CORDON_PATH_MAX]; /* a directory above which all is well, so that most places need one look only */
};

#define FAIL(c, node, hint, ...) cordon_node_fail((c)->settings->doc, node, (c)->errors, hint, __VA_ARGS__)

static const char *what(const struct place *place)
{
	return place->area ? "the shared area" : "the private workspace of";
}

static bool overlap(const char *a, const char *b)
{
	return cordon_path_within(a, b) || cordon_path_within(b, a);
}

/* ---- one place ---- */

/* The path itself or, for a workspace that is still to be made, the nearest directory above it. */
static void check_owner(const struct checking *c, const struct place *place)
{
	char path[CORDON_PATH_MAX];
	struct stat st;
	int r = -1;

	if (cordon_copy(path, sizeof(path), place->path, strlen(place->path)) < 0)
		return;
	r = lstat(path, &st) < 0 ? -errno : 0;
	if (r == -ENOENT && place->area) {
		FAIL(c, place->node, "make it, or 'cordon shared remove' takes it out of the settings",
		     "the shared area %s does not exist: %s", place->id, path);
		return;
	}
	while (r == -ENOENT && strrchr(path, '/') != path) {
		*strrchr(path, '/') = '\0';
		r = lstat(path, &st) < 0 ? -errno : 0;
	}
	if (r < 0)
		FAIL(c, place->node, NULL, "%s %s can't be reached: %s: %s", what(place), place->id, path, strerror(-r));
	else if (!S_ISDIR(st.st_mode))
		FAIL(c, place->node, NULL, "%s %s is not a directory: %s", what(place), place->id, path);
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		FAIL(c, place->node, "use a directory that belongs to you or to root",
		     "%s %s belongs to another user: %s", what(place), place->id, path);
	else if (!place->area && (st.st_mode & (S_IWGRP | S_IWOTH)) && cordon_streq(path, place->path))
		FAIL(c, place->node, "take that right away with chmod go-w", "other users can write to %s %s: %s",
		     what(place), place->id, path);
}

/* Whoever can write to a directory above a place can put another one there. */
static void check_above(struct checking *c, const struct place *place)
{
	char path[CORDON_PATH_MAX], parent[CORDON_PATH_MAX] = "";
	struct stat st;

	if (cordon_copy(path, sizeof(path), place->path, strlen(place->path)) < 0)
		return;
	for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
		*slash = '\0';
		if (!*parent)
			memcpy(parent, path, sizeof(path));
		if (cordon_streq(path, c->checked))
			break;
		if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode) || /* of a path that leads nowhere, which was reported */
		    ((st.st_uid == geteuid() || st.st_uid == 0) && !((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))))
			continue;
		FAIL(c, place->node, "use a directory in which only you and root can rename",
		     "%s %s lies in a directory of others, who could replace it: %s", what(place), place->id, path);
		return;
	}
	memcpy(c->checked, parent, sizeof(parent));
}

/* Whether a directory belongs to the system: every run sees it or has one of its own, and the host executes or obeys what
 * lies there. */
static bool is_system(const char *path)
{
	static const char *const more[] = { "/proc", "/sys", "/dev", "/run", "/boot", "/etc" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(more); i++)
		if (cordon_path_within(path, more[i]))
			return true;
	return cordon_is_system_path(path) || cordon_streq(path, "/var") || cordon_streq(path, "/tmp") ||
	       cordon_streq(path, "/home");
}

static void check_place(struct checking *c, struct place *place)
{
	const struct cordon_settings_file *s = c->settings;
	bool below = cordon_path_within(place->path, s->workspaces_path) &&
		     !cordon_streq(place->path, s->workspaces_path);

	place->bad = true;
	if (cordon_streq(place->path, "/"))
		FAIL(c, place->node, NULL, "%s %s can't be the whole file system", what(place), place->id);
	else if (cordon_path_within(s->home, place->path) ||
		 (cordon_path_within(place->path, s->home) && (place->area || !below)))
		FAIL(c, place->node, "choose a directory that lies apart from it", "%s %s %s cordon's own records (%s)",
		     what(place), place->id, cordon_path_within(s->home, place->path) ? "holds" : "lies in", s->home);
	else if (is_system(place->path))
		FAIL(c, place->node, "choose a directory with nothing else in it", "%s %s is a part of the system: %s",
		     what(place), place->id, place->path);
	else if (*s->user && cordon_path_within(s->user, place->path))
		FAIL(c, place->node, "choose a directory in it", "%s %s holds your home directory: %s", what(place),
		     place->id, place->path);
	else if (place->area ? overlap(place->path, s->workspaces_path)
			     : cordon_path_within(s->workspaces_path, place->path))
		FAIL(c, place->node, "choose a directory that lies apart from it", "%s %s %s workspaces_path (%s)",
		     what(place), place->id,
		     cordon_streq(place->path, s->workspaces_path)	   ? "is"
		     : cordon_path_within(s->workspaces_path, place->path) ? "holds"
									   : "lies in",
		     s->workspaces_path);
	else
		place->bad = false;
	if (place->bad)
		return;
	check_owner(c, place);
	check_above(c, place);
}

static void check_workspaces_path(const struct checking *c)
{
	const struct cordon_settings_file *s = c->settings;
	const struct cordon_node *node = cordon_node_get(s->doc->root, "workspaces_path");
	char state[CORDON_PATH_MAX];

	if (!s->workspaces_path_given || !node)
		return;
	if (cordon_streq(s->workspaces_path, "/"))
		FAIL(c, node, NULL, "workspaces_path can't be the whole file system");
	else if (cordon_path_within(s->home, s->workspaces_path))
		FAIL(c, node, NULL, "workspaces_path holds cordon's own records (%s)", s->home);
	else if ((cordon_path_join(s->home, "state", state, sizeof(state)) == 0 && overlap(s->workspaces_path, state)) ||
		 (cordon_path_join(s->home, "projects", state, sizeof(state)) == 0 && overlap(s->workspaces_path, state)))
		FAIL(c, node, NULL, "workspaces_path lies in cordon's own records (%s)", state);
}

/* INVARIANT: no agent can write the settings. Those in $CORDON_HOME lie apart from all places; a file that was named need
 * not. */
static void check_file(const struct checking *c)
{
	char path[CORDON_PATH_MAX];

	if (cordon_settings_resolve(c->settings->path, path) < 0)
		return;
	for (size_t i = 0; i < c->n; i++)
		if (!c->places[i].bad && cordon_path_within(path, c->places[i].path))
			FAIL(c, c->places[i].node, "move the settings to another directory",
			     "the settings lie in %s %s, where agents could change them", what(&c->places[i]),
			     c->places[i].id);
}

/* ---- links ---- */

struct link_check {
	const struct checking *c;
	const struct place *place;
	bool refused;
};

/* Called for each link on the way to a place. */
static int check_link(void *data, const char *link, const char *rest)
{
	struct link_check *check = data;
	const struct checking *c = check->c;
	const struct place *owner = NULL;
	char path[CORDON_PATH_MAX];
	struct stat st;

	(void)rest;
	if (cordon_path_join("/", link, path, sizeof(path)) < 0 || check->refused)
		return 0;
	for (size_t i = 0; i < c->n; i++)
		if (cordon_path_within(path, c->places[i].path))
			owner = &c->places[i];
	check->refused = true;
	if (owner)
		FAIL(c, check->place->node, "write the path that it leads to",
		     "%s %s leads through the link %s, which agents that use %s %s could change", what(check->place),
		     check->place->id, path, what(owner), owner->id);
	else if (lstat(path, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0))
		FAIL(c, check->place->node, "write the path that it leads to",
		     "%s %s leads through the link %s, which belongs to another user", what(check->place),
		     check->place->id, path);
	else
		check->refused = false;
	return 0;
}

/* INVARIANT: nobody but the caller and root decides where a path of the settings leads. An agent that can write one area
 * must not be able to turn the path of another one to any directory of the host. */
static void check_links(const struct checking *c, const struct place *place)
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	struct link_check check = { .c = c, .place = place };
	CORDON_UNCLEARED struct cordon_resolved found;

	if (place->given && !cordon_streq(place->given, place->path))
		(void)cordon_resolve_links(&slash, place->given, check_link, &check, &found);
}

/* ---- pairs ---- */

static int by_path(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const unsigned char *p = (const unsigned char *)x->path, *q = (const unsigned char *)y->path;

	/* A slash comes before every other character, so that what lies in a directory follows it at once. */
	while (*p && *p == *q) {
		p++;
		q++;
	}
	if (*p == *q)
		return x->node->line < y->node->line ? -1 : x->node->line > y->node->line;
	return !*p ? -1 : !*q ? 1 : *p == '/' ? -1 : *q == '/' ? 1 : *p < *q ? -1 : 1;
}

/* Reports each place that lies in another one, at whichever of the two comes later in the file. */
static void check_overlaps(struct checking *c)
{
	const struct place *a = NULL;

	qsort(c->places, c->n, sizeof(*c->places), by_path);
	for (size_t i = 0; i < c->n; i++) {
		const struct place *b = &c->places[i];
		bool same = a && cordon_streq(a->path, b->path);

		if (b->bad)
			continue;
		if (!a || !cordon_path_within(b->path, a->path)) {
			a = b;
			continue;
		}
		FAIL(c, a->node->line > b->node->line ? a->node : b->node,
		     "give each a directory that lies apart from all others", "%s %s (%s) %s %s %s (%s)", what(b),
		     b->id, b->path, same ? "is the same directory as" : "lies in", what(a), a->id, a->path);
	}
}

/* ---- domains ---- */

/* A profile of the orchestrator that belongs to another domain than the area; NULL when there is none. */
static const struct cordon_channel_profile *foreign_profile(const struct cordon_settings_file *settings,
							    const struct cordon_orchestrator *orchestrator,
							    const struct cordon_shared_area *area)
{
	for (size_t i = 0; area->domain && i < settings->n_profiles; i++) {
		const struct cordon_channel_profile *profile = &settings->profiles[i];

		if (profile->orchestrator == orchestrator && profile->domain &&
		    !cordon_streq(profile->domain, area->domain))
			return profile;
	}
	return NULL;
}

bool cordon_settings_crosses(const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	return foreign_profile(settings, orchestrator, area) != NULL;
}

static void check_domains(const struct checking *c, const struct cordon_orchestrator *orchestrator)
{
	for (size_t i = 0; i < orchestrator->n_grants; i++) {
		const struct cordon_area_grant *grant = &orchestrator->grants[i];
		const struct cordon_channel_profile *profile = grant->cross_domain
								       ? NULL
								       : foreign_profile(c->settings, orchestrator,
											 grant->area);

		if (profile)
			FAIL(c, grant->node, "if that is meant, say cross_domain: true in the grant",
			     "the channel profile %s of %s is of the domain %s, and the shared area %s of %s",
			     profile->id, orchestrator->id, profile->domain, grant->area->key, grant->area->domain);
	}
}

/* ---- the whole ---- */

int cordon_settings_check(const struct cordon_settings_file *settings, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped, max = settings->n_areas + settings->n_orchestrators;
	autofree struct place *places = calloc(max + 1, sizeof(*places));
	struct checking c = { .settings = settings, .errors = errors, .places = places };
	struct cordon_error err = { 0 };

	if (!places) {
		cordon_fail_errno(&err, -ENOMEM, "%s", settings->path);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	for (size_t i = 0; i < settings->n_areas; i++) {
		const struct cordon_shared_area *area = &settings->areas[i];
		const struct cordon_node *path = cordon_node_get(area->node, "path");

		places[c.n++] = (struct place){ .path = area->path,
						.given = area->given,
						.id = area->key,
						.area = true,
						.node = path ? path : area->node };
	}
	for (size_t i = 0; i < settings->n_orchestrators; i++) {
		const struct cordon_orchestrator *orchestrator = &settings->orchestrators[i];
		const struct cordon_node *node = cordon_node_get(orchestrator->node, "private_workspace");

		places[c.n++] = (struct place){ .path = orchestrator->private_workspace,
						.given = orchestrator->given,
						.id = orchestrator->id,
						.node = orchestrator->given && node ? node : orchestrator->node->key };
		check_domains(&c, orchestrator);
	}
	check_workspaces_path(&c);
	for (size_t i = 0; i < c.n; i++)
		check_place(&c, &places[i]);
	for (size_t i = 0; i < c.n; i++)
		check_links(&c, &places[i]);
	check_file(&c);
	check_overlaps(&c);
	return errors->n + errors->dropped > before ? -EINVAL : 0;
}

int cordon_settings_check_confirmed(const struct cordon_settings_file *settings, struct cordon_errors *errors)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };

	if (cordon_home_open(&home, &err) < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	for (size_t i = 0; i < settings->n_areas; i++) {
		const struct cordon_shared_area *area = &settings->areas[i];
		const struct cordon_node *node = cordon_node_get(area->node, "path");
		char path[CORDON_PATH_MAX];
		autofd int fd = cordon_resolve_open(area->path, path);
		struct cordon_named named = { .given = area->given, .path = path, .fd = fd };

		node = node ? node : area->node;
		if (fd < 0 || cordon_confirmed_check(&home, &named, NULL, &err) == 0)
			continue; /* cordon_settings_check() has said what is missing */
		cordon_error_prefix(&err, err.code, "the shared area %s", area->key);
		cordon_errors_add(errors, &err, settings->doc->name, node->line, node->column);
	}
	return errors->n + errors->dropped > before ? -EINVAL : 0;
}
