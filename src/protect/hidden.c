/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the known secrets that a root hides. */
#include <fcntl.h>

#include "base/listing.h"
#include "base/path.h"
#include "protect/git.h"
#include "protect/homes.h"
#include "protect/secrets.h"

#define LEVELS_MAX 3 /* of the roots in which we look for the homes of other people */

struct hiding {
	struct cordon_protect_collector c;
	const char *dir; /* the directory whose secrets are being listed, relative to the root */
	bool home;	 /* it is a home */
	bool present;	 /* list only what exists: it is the home of somebody else */
	bool own;	 /* the caller's home was found */
	size_t homes;
};

/* Whether a listed path covers this one. */
static bool covered(const struct hiding *h, const char *path)
{
	for (size_t i = 0; i < h->c.list.n; i++)
		if (cordon_path_within(path, h->c.list.paths[i]))
			return true;
	return false;
}

static int hide(void *data, const char *name)
{
	struct hiding *h = data;
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	int r = cordon_path_join(h->dir, name, path, sizeof(path));

	if (r < 0 || covered(h, path))
		return r;
	if (h->present && cordon_protect_type_of(&h->c, path) == CORDON_PROTECT_MISSING)
		return 0;
	return cordon_protect_collect(&h->c, "", path);
}

/* A place further down, where its directory exists: to hide it anyway would take the directory from the run. */
static int hide_place(struct hiding *h, const char *place)
{
	CORDON_UNCLEARED char parent[CORDON_PATH_MAX];
	int r = cordon_path_join(h->dir, place, parent, sizeof(parent));

	if (r < 0)
		return r;
	if (!strchr(place, '/'))
		return hide(h, place);
	*strrchr(parent, '/') = '\0';
	return cordon_protect_type_of(&h->c, parent) == CORDON_PROTECT_DIR ? hide(h, place) : 0;
}

/* Patterns hide what exists now. */
static int hide_matching(struct hiding *h)
{
	autofd int fd = cordon_open_beneath(h->c.root->fd, h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;
	int r = 0;

	cordon_listing_init(&listing, fd);
	for (size_t n = 0;
	     r == 0 && fd >= 0 && n < CORDON_SECRETS_ENTRIES_MAX && (entry = cordon_listing_next(&listing)); n++)
		if (cordon_secret_is_hidden(entry->d_name, h->home))
			r = hide(h, entry->d_name);
	return r;
}

static int hide_in(struct hiding *h, const char *dir, bool home, bool present)
{
	int r;

	h->dir = dir;
	h->home = home;
	h->present = present;
	r = cordon_secret_names(home, hide, h);
	if (r == 0)
		r = hide_matching(h);
	for (const char *const *place = cordon_secret_places(); r == 0 && *place; place++)
		r = hide_place(h, *place);
	return r;
}

static int hide_home(void *data, const char *home, uid_t uid)
{
	struct hiding *h = data;
	const char *root = h->c.root->path, *dir = home + strlen(root);

	if (!cordon_path_within(home, root))
		return 0;
	if (++h->homes > CORDON_SECRETS_HOMES_MAX)
		return -EUSERS;
	h->own |= uid == geteuid();
	return hide_in(h, dir + strspn(dir, "/"), true, uid != geteuid());
}

/* The homes that lie in the root: the caller's by $HOME, and those of /etc/passwd. */
static int hide_homes(struct hiding *h)
{
	const char *home = getenv("HOME"), *root = h->c.root->path;
	char path[CORDON_PATH_MAX];
	size_t levels = 0;
	int r = 0;

	if (home && *home == '/' && cordon_homes_canonical(home, path) && !cordon_streq(path, "/"))
		r = hide_home(h, path, geteuid());
	for (const char *p = root; *p && p[1]; p++)
		levels += *p == '/';
	return r == 0 && levels <= LEVELS_MAX ? cordon_homes_each(hide_home, h) : r;
}

static int hide_system(struct hiding *h)
{
	int r = 0;

	h->dir = "";
	h->present = true;
	for (const char *const *place = cordon_secret_system_places(); r == 0 && *place; place++)
		r = hide(h, *place + 1);
	return r;
}

int cordon_secrets_in(const struct cordon_root *root, bool asked, struct cordon_protect_list *ret_list, bool *ret_home,
		      struct cordon_error *err)
{
	struct hiding h = { .c = { .root = root } };
	const char *home = getenv("HOME");
	int r = 0;

	/* Nearly every root lies in the home and is not it: there is nothing to look for. */
	if (!home || *home != '/' || !home[1] || cordon_streq(root->path, home) || !cordon_path_within(root->path, home))
		r = hide_homes(&h);
	if (r == 0 && asked)
		r = hide_in(&h, "", false, false);
	if (r == 0 && cordon_streq(root->path, "/"))
		r = hide_system(&h);
	if (r < 0) {
		cordon_protect_list_done(&h.c.list);
		if (r != -E2BIG && r != -EUSERS)
			return cordon_fail_errno(err, r, "cannot list the known secrets in %s", root->path);
		return cordon_fail(err, r, CORDON_KIND_LIMIT,
				   "%s contains more home directories or secrets than can be hidden", root->path);
	}
	*ret_list = h.c.list;
	*ret_home = h.own;
	return 0;
}
