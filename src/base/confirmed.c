/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the identities of paths that settings name, and the directories in which agents write. */
#include <fcntl.h>
#include <sodium.h>

#include "base/confirmed.h"
#include "base/identity.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/time.h"

#define CONFIRMED "confirmed"
#define WRITTEN "written"
#define RECORD_MAGIC "cordon-path 1"
#define RECORD_MAX ((size_t)4 * CORDON_PATH_MAX)
#define KEY_SIZE (2 * crypto_hash_sha256_BYTES + 1)

static const struct cordon_root slash = { .fd = -1, .path = "/" };

/* Everything about one path. A record on disk is a list of strings, each with a NUL at its end: the magic, the path as it is
 * written, where it leads, the identity, and when it was confirmed. */
struct record {
	struct cordon_buf text; /* owns the strings */
	const char *path, *at;
	struct cordon_identity identity;
};

static void record_done(struct record *record)
{
	cordon_buf_done(&record->text);
}

static void key_of(const char *path, char ret[static KEY_SIZE])
{
	unsigned char sum[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(sum, (const unsigned char *)path, strlen(path));
	sodium_bin2hex(ret, KEY_SIZE, sum, sizeof(sum));
}

/* A path in one spelling. A path with ".." keeps its own. */
static const char *spell(const char *given, char ret[static CORDON_PATH_MAX])
{
	return cordon_path_clean(given, ret, CORDON_PATH_MAX) == 0 ? ret : given;
}

/* ---- directories in which agents write ---- */

/* Finds the directory above a path in which agents write. */
static bool find_written(int dir_fd, const char *path, char ret[static CORDON_PATH_MAX])
{
	size_t n = strlen(path);

	while (n > 1) {
		char key[KEY_SIZE];

		while (n && path[n - 1] != '/')
			n--;
		n -= n > 1; /* the slash, unless it is the root */
		if (!n || cordon_copy(ret, CORDON_PATH_MAX, path, n) < 0)
			return false;
		key_of(ret, key);
		if (faccessat(dir_fd, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

int cordon_written_add(const struct cordon_home *home, const char *path, struct cordon_error *err)
{
	char key[KEY_SIZE];
	autofd int dir = -1;
	int r;

	if (cordon_path_within(path, home->path))
		return 0;
	r = cordon_home_subdir(home, WRITTEN, &dir, err);
	if (r < 0)
		return r;
	key_of(path, key);
	if (faccessat(dir, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return cordon_write_file(dir, key, 0600, path, strlen(path), err);
}

/* ---- links ---- */

struct link_search {
	int dir_fd;
	const char *root; /* or NULL */
	char link[CORDON_PATH_MAX], in[CORDON_PATH_MAX];
};

static int judge_link(void *data, const char *link, const char *rest)
{
	struct link_search *search = data;

	(void)rest;
	if (cordon_path_join("/", link, search->link, sizeof(search->link)) < 0)
		return -ENAMETOOLONG;
	if (search->root && cordon_path_within(search->link, search->root) && !cordon_streq(search->link, search->root))
		return cordon_copy(search->in, sizeof(search->in), search->root, strlen(search->root)) < 0
			       ? -ENAMETOOLONG
			       : 1;
	return find_written(search->dir_fd, search->link, search->in);
}

int cordon_confirmed_links(const struct cordon_home *home, const char *given, const char *root,
			   char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	CORDON_UNCLEARED struct cordon_resolved found;
	CORDON_UNCLEARED struct link_search search;
	autofd int dir = -1;
	int r = cordon_home_subdir(home, WRITTEN, &dir, err);

	if (r < 0)
		return r;
	search.dir_fd = dir;
	search.root = root;
	r = cordon_resolve_links(&slash, given, judge_link, &search, &found);
	if (r == 0 && found.place != CORDON_PLACE_INSIDE)
		r = -ELOOP;
	if (r == 0)
		r = cordon_path_join("/", found.path, ret_path, CORDON_PATH_MAX);
	if (r == 0)
		return 0;
	if (r < 0)
		return cordon_fail_errno(err, r, "%s", given);
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
		    "%s leads through the link %s, which an agent could have turned: agents write in %s", given,
		    search.link, search.in);
	cordon_error_hint(err, "name the directory that is meant, by a path without that link");
	return -EPERM;
}

int cordon_confirmed_way(const struct cordon_home *home, const char *given, const char *root, const char *path,
			 struct cordon_error *err)
{
	CORDON_UNCLEARED char leads[CORDON_PATH_MAX];
	int r = cordon_confirmed_links(home, given, root, leads, err);

	if (r < 0 || cordon_streq(leads, path))
		return r;
	return cordon_fail(err, -ESTALE, CORDON_KIND_POLICY_DENIED, "%s led to %s, and now leads to %s", given, path,
			   leads);
}

/* ---- records ---- */

/* Returns 1 and the record of a path, or 0 when there is none. A record that can't be read is an error: it would else count
 * as none. */
static int read_record(int dir_fd, const char *given, struct record *ret, struct cordon_error *err)
{
	CORDON_UNCLEARED char spelt[CORDON_PATH_MAX];
	struct record record CORDON_CLEANUP(record_done) = { .text = CORDON_BUF(RECORD_MAX) };
	const char *magic, *name, *identity, *path = spell(given, spelt);
	char key[KEY_SIZE];
	size_t at = 0;
	int r;

	key_of(path, key);
	r = cordon_read_file(dir_fd, key, O_NOFOLLOW, &record.text, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	magic = cordon_buf_next_string(&record.text, &at);
	name = cordon_buf_next_string(&record.text, &at);
	record.path = cordon_buf_next_string(&record.text, &at);
	identity = cordon_buf_next_string(&record.text, &at);
	record.at = cordon_buf_next_string(&record.text, &at);
	if (!magic || !cordon_streq(magic, RECORD_MAGIC) || !name || !cordon_streq(name, path) || !record.at ||
	    cordon_identity_parse(identity, &record.identity) < 0) {
		cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, "the record of what was confirmed at %s can't be read",
			    given);
		cordon_error_hint(err, "look at what is there, then 'cordon config confirm %s' takes it", given);
		return -EBADMSG;
	}
	*ret = record;
	record = (struct record){ 0 };
	return 1;
}

static int write_record(int dir_fd, const struct cordon_named *named, const struct cordon_identity *identity,
			struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	CORDON_UNCLEARED char spelt[CORDON_PATH_MAX];
	char key[KEY_SIZE], now[CORDON_TIME_SIZE], words[CORDON_IDENTITY_SIZE];
	const char *path = spell(named->given, spelt);
	const char *const strings[] = { RECORD_MAGIC, path, named->path, words, now };
	int r = 0;

	cordon_time_format(cordon_time_now(), now);
	cordon_identity_text(identity, words);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(strings); i++)
		r = cordon_buf_add(&text, strings[i], strlen(strings[i]) + 1);
	if (r < 0)
		return cordon_fail_errno(err, r, "%s", named->given);
	key_of(path, key);
	return cordon_write_file(dir_fd, key, 0600, text.data, text.len, err);
}

static int open_records(const struct cordon_home *home, int *ret_fd, struct cordon_error *err)
{
	return cordon_home_subdir(home, CONFIRMED, ret_fd, err);
}

static int identify(const struct cordon_named *named, struct cordon_identity *ret, struct cordon_error *err)
{
	int r = cordon_identity_of(named->fd, ret);

	return r < 0 ? cordon_fail_errno(err, r, "cannot find out what %s is", named->given) : 0;
}

/* ---- judging ---- */

static bool same(const struct record *record, const struct cordon_named *named, const struct cordon_identity *identity)
{
	return cordon_streq(record->path, named->path) && cordon_identity_same(&record->identity, identity);
}

static int refuse_other(const struct record *record, const struct cordon_named *named, struct cordon_error *err)
{
	if (!cordon_streq(record->path, named->path))
		cordon_fail(err, -ESTALE, CORDON_KIND_POLICY_DENIED, "%s leads to %s, and not to %s as on %s",
			    named->given, named->path, record->path, record->at);
	else
		cordon_fail(err, -ESTALE, CORDON_KIND_POLICY_DENIED,
			    "%s is not what it was on %s: something else was put in its place", named->given,
			    record->at);
	cordon_error_hint(err, "look at what is there, then 'cordon config confirm %s' takes it", named->given);
	return -ESTALE;
}

/* Whether a path that nobody confirmed may be taken as it is. */
static int judge_first(const struct cordon_home *home, const struct cordon_named *named, struct cordon_error *err)
{
	CORDON_UNCLEARED char in[CORDON_PATH_MAX];
	autofd int dir = -1;
	int r = cordon_confirmed_way(home, named->given, NULL, named->path, err);

	if (r == -EPERM)
		cordon_error_hint(err, "look at what is there, then 'cordon config confirm %s' takes it", named->given);
	if (r == 0)
		r = cordon_home_subdir(home, WRITTEN, &dir, err);
	if (r < 0 || !find_written(dir, named->path, in))
		return r;
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
		    "%s lies in %s, where agents write and could have put anything in its place", named->given, in);
	cordon_error_hint(err, "look at what is there, then 'cordon config confirm %s' takes it", named->given);
	return -EPERM;
}

/* Judges with the directory of records open, and maybe locked. */
static int judge(const struct cordon_home *home, int dir_fd, const struct cordon_named *named,
		 const struct cordon_identity *identity, bool *ret_known, struct cordon_error *err)
{
	struct record record CORDON_CLEANUP(record_done) = { 0 };
	int r = read_record(dir_fd, named->given, &record, err);

	if (r < 0)
		return r;
	*ret_known = r > 0;
	if (r > 0)
		return same(&record, named, identity) ? 0 : refuse_other(&record, named, err);
	return judge_first(home, named, err);
}

int cordon_confirmed_check(const struct cordon_home *home, const struct cordon_named *named, bool *ret_known,
			   struct cordon_error *err)
{
	struct cordon_identity identity;
	autofd int dir = -1;
	bool known = false;
	int r = open_records(home, &dir, err);

	if (r == 0)
		r = identify(named, &identity, err);
	if (r == 0)
		r = judge(home, dir, named, &identity, &known, err);
	if (r == 0 && ret_known)
		*ret_known = known;
	return r;
}

/* Whoever writes a record holds the lock, so that of two who come first one finds the other's record. */
static int lock_records(const struct cordon_home *home, int *ret_fd, struct cordon_error *err)
{
	int r = open_records(home, ret_fd, err);

	if (r < 0)
		return r;
	r = cordon_lock(*ret_fd, LOCK_EX);
	return r < 0 ? cordon_fail_errno(err, r, "cannot lock the records of confirmed paths") : 0;
}

int cordon_confirmed_use(const struct cordon_home *home, const struct cordon_named *named, struct cordon_error *err)
{
	struct cordon_identity identity;
	autofd int dir = -1;
	bool known = false;
	int r = lock_records(home, &dir, err);

	if (r == 0)
		r = identify(named, &identity, err);
	if (r == 0)
		r = judge(home, dir, named, &identity, &known, err);
	return r < 0 || known ? r : write_record(dir, named, &identity, err);
}

int cordon_confirmed_take(const struct cordon_home *home, const struct cordon_named *named, bool anew,
			  bool *ret_changed, struct cordon_error *err)
{
	struct record record CORDON_CLEANUP(record_done) = { 0 };
	struct cordon_identity identity;
	autofd int dir = -1;
	bool known;
	int r = lock_records(home, &dir, err);

	if (r == 0)
		r = identify(named, &identity, err);
	if (r < 0)
		return r;
	r = read_record(dir, named->given, &record, err);
	if (r < 0 && !(anew && r == -EBADMSG))
		return r;
	known = r > 0 && same(&record, named, &identity);
	if (r > 0 && !known && !anew)
		return refuse_other(&record, named, err);
	r = known || anew ? 0 : cordon_confirmed_way(home, named->given, NULL, named->path, err);
	if (r == 0 && !known)
		r = write_record(dir, named, &identity, err);
	if (r == 0 && ret_changed)
		*ret_changed = !known;
	return r;
}
