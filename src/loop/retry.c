/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying a story again. Whoever asks for it leaves a request in the directory of the loop, and the process that runs the loop
 * takes it: at once, or when the loop goes on. So nobody but that process ever writes to the journal.
 *
 * Killed at any instant nothing is lost: a request goes when the journal says what became of it, and to take one twice is the
 * same as to take it once.
 */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>

#include "base/io.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/time.h"
#include "loop/control.h"
#include "loop/internal.h"

#define REQUEST "retry." /* and 32 hexadecimal digits: a hash of PRD and story */
#define REQUEST_MAX ((size_t)64 << 10)
#define REQUEST_SIZE (sizeof(REQUEST) + 32)
#define LOOK_MS 250 /* between two looks for requests */

/* ---- requests ---- */

static void name_request(const char *prd, const char *story, char ret[static REQUEST_SIZE])
{
	char hash[33];

	cordon_loop_make_key(prd, &story, 1, hash);
	snprintf(ret, REQUEST_SIZE, REQUEST "%s", hash);
}

/* NULL when it can't be read. */
static json_t *read_request(int dir_fd, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(REQUEST_MAX);

	return cordon_read_file(dir_fd, name, O_NOFOLLOW, &text, NULL) < 0 || !text.len
		       ? NULL
		       : json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
}

int cordon_loop_requests(int dir_fd, int (*each)(void *data, const char *name, const json_t *request), void *data)
{
	autofd int fd = openat(dir_fd, ".", CORDON_LOOP_OPEN_DIR);
	struct cordon_listing listing;
	const struct dirent64 *entry;
	int r = 0;

	if (fd < 0)
		return -errno;
	cordon_listing_init(&listing, fd);
	while (r >= 0 && (entry = cordon_listing_next(&listing))) {
		json_auto_t *request = NULL;

		if (strncmp(entry->d_name, REQUEST, strlen(REQUEST)) != 0)
			continue;
		request = read_request(dir_fd, entry->d_name);
		r = each(data, entry->d_name, request);
	}
	return r;
}

static int count_request(void *data, const char *name, const json_t *request)
{
	(void)name, (void)request;
	++*(size_t *)data;
	return 0;
}

bool cordon_loop_has_requests(int dir_fd)
{
	size_t n = 0;

	return cordon_loop_requests(dir_fd, count_request, &n) == 0 && n > 0;
}

/* ---- asking ---- */

/* Finds the story that is meant; `prd` may be NULL. */
static int find_story(const json_t *stories, const char *prd, const char *id, const json_t **ret_story,
		      struct cordon_error *err)
{
	const json_t *story, *found = NULL;
	size_t i;

	json_array_foreach(stories, i, story) {
		if (!cordon_streq(cordon_json_text(story, "id"), id) ||
		    (prd && !cordon_streq(cordon_json_text(story, "prd"), prd)))
			continue;
		if (found) {
			cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%s and %s both have a story %s",
				    cordon_json_text(found, "prd"), cordon_json_text(story, "prd"), id);
			cordon_error_hint(err, "say which PRD is meant");
			return -ENOTUNIQ;
		}
		found = story;
	}
	if (!found)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the loop has no story %.200s", id);
	*ret_story = found;
	return 0;
}

/* What has not failed has nothing to be given back. */
static int judge(const json_t *story, struct cordon_error *err)
{
	const char *state = cordon_json_text(story, "state"), *id = cordon_json_text(story, "id");
	bool passed = cordon_streq(state, cordon_story_state_name(CORDON_STORY_PASSED));

	if (passed || cordon_streq(state, cordon_story_state_name(CORDON_STORY_ACCEPTED))) {
		cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "the story %s has %s", id,
			    passed ? "passed" : "been accepted");
		cordon_error_hint(err, "set \"passes\" to false in the PRD to have it done again");
		return -EALREADY;
	}
	if (cordon_streq(state, cordon_story_state_name(CORDON_STORY_PARKED)) || json_object_get(story, "failures"))
		return 0;
	return cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "the story %s is %s, and has all its attempts", id,
			   state);
}

int cordon_loop_retry(const struct cordon_home *home, const char *id, const char *prd, const char *story,
		      struct cordon_error *err)
{
	json_auto_t *status = NULL;
	json_auto_t *request = NULL;
	const json_t *found = NULL;
	autofree char *text = NULL;
	char name[REQUEST_SIZE];
	autofd int dir = -1;
	int r = cordon_loop_dir_open(home, id, &dir, err);

	if (r == 0)
		r = cordon_loop_look(home, id, CORDON_LOOP_LOOK_ALL, &status, err);
	if (r == 0)
		r = find_story(json_object_get(status, "stories"), prd, story, &found, err);
	if (r == 0)
		r = judge(found, err);
	if (r < 0)
		return r;
	if (sodium_init() < 0)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium does not work");
	request = json_pack("{s:s, s:s, s:I}", "prd", cordon_json_text(found, "prd"), "story",
			    cordon_json_text(found, "id"), "uid", (json_int_t)getuid());
	text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	if (!text)
		return cordon_fail_errno(err, -ENOMEM, "cannot try the story %s again", story);
	name_request(cordon_json_text(found, "prd"), cordon_json_text(found, "id"), name);
	return cordon_write_file(dir, name, 0600, text, strlen(text), err);
}

/* ---- in the process that runs the loop ---- */

struct taking {
	struct cordon_loop *loop;
	struct cordon_error *err;
};

static int take_request(void *data, const char *name, const json_t *request)
{
	const struct taking *taking = data;
	struct cordon_loop *loop = taking->loop;
	size_t story;
	int r = 0;

	/* A story that passed meanwhile, or that a person took out of the PRD, needs no attempts. */
	if (cordon_loop_find(loop, request, &story) && loop->stories[story].state != CORDON_STORY_ACCEPTED &&
	    loop->stories[story].state != CORDON_STORY_PASSED) {
		json_t *event = cordon_loop_event(loop, "retry", 0, story);

		json_object_set(event, "uid", json_object_get(request, "uid"));
		r = cordon_loop_say(loop, event, true, taking->err);
		if (r == 0)
			cordon_loop_give_back(loop, story);
	}
	if (r == 0 && unlinkat(loop->dir_fd, name, 0) < 0 && errno != ENOENT)
		r = cordon_fail_errno(taking->err, -errno, "cannot remove %s", name);
	return r;
}

int cordon_loop_take_requests(struct cordon_loop *loop, bool now, struct cordon_error *err)
{
	struct taking taking = { .loop = loop, .err = err };
	int64_t at = cordon_time_monotonic();
	int r;

	if (!now && at - loop->looked < LOOK_MS)
		return 0;
	loop->looked = at;
	r = cordon_loop_requests(loop->dir_fd, take_request, &taking);
	return r < 0 && err && !*err->message ? cordon_fail_errno(err, r, "cannot look for requests") : r;
}
