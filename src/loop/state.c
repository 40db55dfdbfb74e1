/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a loop on disk and in memory: its directory and locks, its stories, going on after a kill, and removing it. */
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "loop/control.h"
#include "loop/internal.h"
#include "state/kinds.h"
#include "state/record.h"
#include "view/journal.h"

#define DEAD_WAIT_MS 60000 /* how long the agents of a killed loop may take to end */
#define DEAD_POLL_MS 10

/* ---- opening ---- */

static void hash_of(const char *a, const char *b, char ret[static 33])
{
	unsigned char hash[16];
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	crypto_generichash_update(&state, (const unsigned char *)a, strlen(a) + 1);
	crypto_generichash_update(&state, (const unsigned char *)b, strlen(b) + 1);
	crypto_generichash_final(&state, hash, sizeof(hash));
	sodium_bin2hex(ret, 33, hash, sizeof(hash));
}

void cordon_loop_make_key(const char *root, const char *const *prds, size_t n, char ret_key[static 33])
{
	unsigned char sum[16] = { 0 };
	char one[33];

	for (size_t i = 0; i < n; i++) {
		unsigned char bytes[16];

		hash_of(root, prds[i], one);
		sodium_hex2bin(bytes, sizeof(bytes), one, 32, NULL, NULL, NULL);
		for (size_t k = 0; k < sizeof(sum); k++)
			sum[k] ^= bytes[k];
	}
	sodium_bin2hex(ret_key, 33, sum, sizeof(sum));
}

#define LOCK_NAME_SIZE 48

static void lock_name(const char *prd, char ret[static LOCK_NAME_SIZE])
{
	char hash[33];

	hash_of("", prd, hash);
	snprintf(ret, LOCK_NAME_SIZE, "%s.prd", hash);
}

static int take_locks(struct cordon_loop *loop, int loops, struct cordon_error *err)
{
	for (size_t i = 0; i < loop->options.n_prds; i++) {
		char name[LOCK_NAME_SIZE];
		int r;

		lock_name(loop->options.prds[i].path, name);
		r = cordon_lock_take(loops, name, LOCK_EX | LOCK_NB, &loop->prd_locks[i], err);
		if (r == -EWOULDBLOCK) {
			cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "another loop works on %s",
				    loop->options.prds[i].path);
			cordon_error_hint(err, "wait for its end, or stop it with Ctrl-C");
			return -EBUSY;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_dir(struct cordon_loop *loop, struct cordon_error *err)
{
	const char *prds[CORDON_LOOP_PRDS_MAX];
	autofd int loops = -1;
	char path[80];
	int r;

	if (sodium_init() < 0)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium does not work");
	for (size_t i = 0; i < loop->options.n_prds; i++)
		prds[i] = loop->options.prds[i].path;
	cordon_loop_make_key(loop->root.path, prds, loop->options.n_prds, loop->key);
	r = cordon_state_kind_open(loop->home, CORDON_STATE_KIND_LOOPS, &loops, err);
	if (r == 0)
		r = take_locks(loop, loops, err);
	snprintf(path, sizeof(path), CORDON_LOOP_DIRS "/%s", loop->key);
	if (r == 0)
		r = cordon_home_subdir(loop->home, path, &loop->dir_fd, err);
	if (r == 0 && cordon_concat(loop->dir, sizeof(loop->dir), loop->home->path, "/state/", path, (char *)NULL) < 0)
		r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", loop->home->path);
	return r;
}

/* ---- stories ---- */

static int read_prds(struct cordon_loop *loop, struct cordon_errors *errors)
{
	size_t n = loop->options.n_prds;
	int r = 0;

	loop->prds = calloc(n, sizeof(void *));
	loop->first = calloc(n + 1, sizeof(*loop->first));
	if (!loop->prds || !loop->first)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int one = cordon_prd_load(loop->options.prds[i].path, &loop->prds[i], errors);

		r = r < 0 ? r : one;
		loop->first[i] = loop->n_stories;
		loop->n_stories += one < 0 ? 0 : loop->prds[i]->n_stories;
	}
	loop->first[n] = loop->n_stories;
	return r;
}

static int make_stories(struct cordon_loop *loop)
{
	loop->stories = calloc(loop->n_stories + 1, sizeof(*loop->stories));
	loop->order = calloc(loop->n_stories + 1, sizeof(*loop->order));
	loop->calls = calloc(loop->options.workers, sizeof(*loop->calls));
	if (!loop->stories || !loop->order || !loop->calls)
		return -ENOMEM;
	loop->n_calls = loop->options.workers;
	for (size_t p = 0; p < loop->options.n_prds; p++)
		for (size_t i = 0; i < loop->prds[p]->n_stories; i++)
			loop->stories[loop->first[p] + i] = (struct cordon_loop_story){
				.story = &loop->prds[p]->stories[i],
				.prd = p,
				.state = loop->prds[p]->stories[i].passes ? CORDON_STORY_PASSED : CORDON_STORY_WAITING
			};
	return 0;
}

/* Gives stories without a fileScope the one that the folders stand for, and says so. */
static int infer_scopes(struct cordon_loop *loop, struct cordon_errors *errors)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < loop->options.n_prds; i++) {
		const struct cordon_loop_prd *prd = &loop->options.prds[i];
		CORDON_CLEANUP(cordon_prd_changes_done) struct cordon_prd_changes changes = { 0 };
		json_auto_t *patterns = NULL;
		struct cordon_error err = { 0 };
		json_t *ids;

		if (!prd->n_items)
			continue;
		r = cordon_prd_infer_scope(prd->items, prd->n_items, 0, &patterns, &err);
		if (r < 0)
			return cordon_errors_add(errors, &err, NULL, 0, 0);
		r = cordon_prd_update_scope(prd->path, patterns, &changes, errors);
		ids = json_array();
		for (size_t k = 0; r == 0 && k < changes.n; k++)
			json_array_append_new(ids, json_string(changes.ids[k]));
		cordon_loop_tell(loop,
				 json_pack("{s:s, s:s, s:o}", "event", "scopes", "prd", prd->path, "stories", ids));
	}
	return r;
}

int cordon_loop_state_open(struct cordon_loop *loop, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	int r = cordon_root_open(loop->options.root, &loop->root, &err);

	if (r == 0)
		r = open_dir(loop, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	r = infer_scopes(loop, errors);
	if (r == 0)
		r = read_prds(loop, errors);
	if (r < 0)
		return r;
	r = make_stories(loop);
	if (r < 0) {
		cordon_fail_errno(&err, r, "the loop");
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	for (size_t i = 0; i < loop->n_calls; i++)
		loop->calls[i] = (struct cordon_loop_call){ .view = CORDON_VIEW_NONE,
							    .changed = CORDON_DELTA_NONE,
							    .check_view = CORDON_VIEW_NONE,
							    .check_result = CORDON_VIEW_NONE,
							    .logs = CORDON_LOOP_LOGS_NONE,
							    .input = -1 };
	return 0;
}

void cordon_loop_state_close(struct cordon_loop *loop)
{
	cordon_loop_pop(loop, 0);
	for (size_t i = 0; loop->prds && i < loop->options.n_prds; i++)
		cordon_prd_free(loop->prds[i]);
	for (size_t i = 0; loop->stories && i < loop->n_stories; i++) {
		free(loop->stories[i].reason);
		free(loop->stories[i].note);
	}
	free(loop->prds);
	free(loop->stories);
	free(loop->first);
	free(loop->order);
	free(loop->calls);
	cordon_journal_done(&loop->journal);
	cordon_closep(&loop->dir_fd);
	for (size_t i = 0; i < CORDON_LOOP_PRDS_MAX; i++) {
		cordon_closep(&loop->prd_locks[i]);
		json_decref(loop->types[i]);
	}
	cordon_root_done(&loop->root);
}

/* ---- accepted results ---- */

int cordon_loop_upper(const struct cordon_loop *loop, const char *view, int *ret_fd, struct cordon_error *err)
{
	char path[96];
	autofd int fd = -1;

	snprintf(path, sizeof(path), "views/%s/" CORDON_VIEW_UPPER, view);
	fd = cordon_open_beneath(loop->home->state_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open the view %s", view);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_loop_push(struct cordon_loop *loop, uint64_t n, size_t story, const char *view, const char *commit,
		     json_t *result, struct cordon_error *err)
{
	struct cordon_loop_accepted *item = &loop->stack[loop->n_stack];
	autofd int upper = -1;
	int r = 0;

	*item = (struct cordon_loop_accepted){ .n = n, .story = story, .result = result };
	if (loop->n_stack > CORDON_LOOP_STACK_MAX)
		r = cordon_fail(err, -E2BIG, CORDON_KIND_INTERNAL, "too many results wait");
	cordon_copy(item->view, sizeof(item->view), view, strlen(view));
	cordon_copy(item->commit, sizeof(item->commit), commit, strlen(commit));
	if (r == 0 && *view)
		r = cordon_loop_upper(loop, view, &upper, err);
	if (r == 0 && *view)
		r = cordon_layer_read(upper, &item->layer, err);
	if (r < 0) {
		json_decref(result);
		return r;
	}
	loop->n_stack++;
	return 0;
}

void cordon_loop_pop(struct cordon_loop *loop, size_t from)
{
	while (loop->n_stack > from) {
		struct cordon_loop_accepted *item = &loop->stack[--loop->n_stack];

		cordon_layer_done(&item->layer);
		json_decref(item->result);
		item->result = NULL;
	}
}

void cordon_loop_note(struct cordon_loop *loop, size_t story, unsigned int attempt, const char *note)
{
	struct cordon_loop_story *one = &loop->stories[story];
	autobuf struct cordon_buf text = CORDON_BUF(4 * CORDON_LOOP_NOTE_MAX);
	const char *old = one->note ? one->note : "";
	size_t line = strcspn(note, "\n");

	/* What is too old goes; the newest note is whole. */
	while (strlen(old) > 3 * (size_t)CORDON_LOOP_NOTE_MAX - 64) {
		const char *next = strstr(old + 1, "\n### ");

		old = next ? next + 1 : "";
	}
	if (cordon_buf_adds(&text, old) < 0 ||
	    cordon_buf_addf(&text, "### Attempt %u\n\n%.*s\n\n", attempt, CORDON_LOOP_NOTE_MAX - 64, note) < 0)
		return;
	free(one->note);
	one->note = cordon_buf_steal(&text);
	free(one->reason);
	one->reason = strndup(note, line < 300 ? line : 300);
}

void cordon_loop_give_back(struct cordon_loop *loop, size_t story)
{
	loop->stories[story].failures = 0;
	if (loop->stories[story].state == CORDON_STORY_PARKED)
		cordon_loop_set(loop, story, CORDON_STORY_WAITING);
}

/* ---- going on ---- */

/* The agents of a loop that was killed end with it, but not at the same instant. */
static int wait_for_dead(const struct cordon_loop *loop, const char *crew, struct cordon_error *err)
{
	int64_t until = cordon_time_monotonic() + DEAD_WAIT_MS;

	for (bool asked = false;; asked = true) {
		struct cordon_crew_info info;
		autofree struct cordon_job *jobs = NULL;
		bool alive = false;
		size_t n = 0;

		if (cordon_crew_read(loop->home, crew, &info, &jobs, &n, NULL) < 0)
			return 0; /* it is gone */
		for (size_t i = 0; i < n; i++)
			alive |= jobs[i].state == CORDON_JOB_STARTING || jobs[i].state == CORDON_JOB_RUNNING;
		if (!alive)
			return 0;
		if (!asked)
			(void)cordon_crew_cancel_by_name(loop->home, crew, NULL, NULL);
		if (cordon_time_monotonic() > until)
			return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
					   "an agent of the loop that was killed still runs");
		(void)poll(NULL, 0, DEAD_POLL_MS);
	}
}

bool cordon_loop_find(const struct cordon_loop *loop, const json_t *event, size_t *ret_story)
{
	const char *prd = cordon_json_string(event, "prd");
	const char *id = cordon_json_string(event, "story");

	for (size_t i = 0; prd && id && i < loop->n_stories; i++) {
		if (!cordon_streq(loop->options.prds[loop->stories[i].prd].path, prd) ||
		    !cordon_streq(loop->stories[i].story->id, id))
			continue;
		*ret_story = i;
		return true;
	}
	return false;
}

void cordon_loop_remove_view(const struct cordon_loop *loop, const char *id)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;

	if (cordon_view_open(loop->home, id, &view, NULL) == 0 && cordon_view_lock(&view, NULL) == 0)
		(void)cordon_view_remove(loop->home, &view, NULL);
}

/* ---- after a crash of the machine ---- */

const char *cordon_loop_boot(char buf[static CORDON_LOOP_BOOT_SIZE])
{
	autofd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, CORDON_LOOP_BOOT_SIZE - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

/* 1 when a view is in the host's tree, 0 when nothing of it is. An apply that was under way is ended first; if that fails, the
 * view has files of the host's, and must stay. */
static int is_applied(const struct cordon_loop *loop, const char *id, struct cordon_error *err)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	size_t ended;
	int r;

	if (cordon_view_open(loop->home, id, &view, NULL) < 0)
		return 0;
	r = cordon_view_lock(&view, err);
	if (r == 0)
		r = cordon_apply_journal_recover(&view, &ended, err);
	if (r < 0)
		return r == -ESTALE ? 0 : r; /* the host went on, and all was taken back */
	return view.record.state == CORDON_VIEW_APPLIED;
}

/*
 * The files of a result are not synced before they are applied: after a crash of the machine they may be empty, though the
 * journal says "accepted". 1 when nothing of these files is needed any more: they were applied, or for a branch that is not
 * checked out, they are in commits.
 */
static int is_on_disk(const struct cordon_loop *loop, const struct cordon_loop_progress *progress,
		      struct cordon_error *err)
{
	bool any = false;
	json_t *event;
	size_t i;

	if (progress->base && *progress->base)
		return loop->git.has_parent;
	if (progress->landing)
		return is_applied(loop, progress->landing, err);
	json_array_foreach(progress->accepted, i, event) {
		const char *view = cordon_json_string(event, "view");
		int r = view && *view ? is_applied(loop, view, err) : 0;

		if (r != 0)
			return r;
		any |= view && *view;
	}
	return !any;
}

/* The stories are done again; this is no failure of theirs. */
static int forget(struct cordon_loop *loop, struct cordon_loop_progress *progress, struct cordon_error *err)
{
	static const char note[] = "The machine stopped before the result was on the disk.";
	json_t *event;
	size_t i, story;
	int r = 0;

	json_array_foreach(progress->accepted, i, event) {
		const char *view = cordon_json_string(event, "view");
		json_int_t n = cordon_json_integer(event, "n");

		if (r < 0 || !cordon_loop_find(loop, event, &story))
			continue;
		cordon_loop_note(loop, story, loop->stories[story].calls, note);
		event = cordon_loop_event(loop, "failed", (uint64_t)n, story);
		json_object_set_new(event, "counts", json_false());
		json_object_set_new(event, "note", json_string(note));
		r = cordon_loop_say(loop, event, false, err);
		if (view && *view)
			cordon_loop_remove_view(loop, view);
	}
	if (progress->landing)
		cordon_loop_remove_view(loop, progress->landing);
	progress->landing = NULL;
	loop->git.has_parent = false;
	json_array_clear(progress->accepted);
	return r;
}

static bool has_restarted(const struct cordon_loop_progress *progress)
{
	char boot[CORDON_LOOP_BOOT_SIZE];

	return !progress->boot || !cordon_streq(progress->boot, cordon_loop_boot(boot));
}

static int push_accepted(struct cordon_loop *loop, const json_t *event, struct cordon_error *err)
{
	const char *view = cordon_json_string(event, "view");
	const char *commit = cordon_json_string(event, "commit");
	size_t story;
	int r;

	/* A story that a person took out of the PRD meanwhile has no result any more. */
	if (!cordon_loop_find(loop, event, &story))
		return 0;
	r = cordon_loop_push(loop, (uint64_t)cordon_json_integer(event, "n"), story, view ? view : "",
			     commit ? commit : "", json_incref(json_object_get(event, "result")), err);
	if (r == 0)
		cordon_loop_set(loop, story, CORDON_STORY_ACCEPTED);
	return r;
}

/* What is known of one story. A PRD that says that it has passed has the last word. */
static void resume_story(struct cordon_loop *loop, size_t story, const json_t *known)
{
	struct cordon_loop_story *one = &loop->stories[story];
	json_t *note;
	size_t i;

	one->calls = (unsigned int)cordon_json_integer(known, "attempts");
	one->failures = (unsigned int)cordon_json_integer(known, "failures");
	if (cordon_json_true(known, "parked") && one->state != CORDON_STORY_PASSED)
		one->state = CORDON_STORY_PARKED;
	json_array_foreach(json_object_get(known, "notes"), i, note)
		cordon_loop_note(loop, story, (unsigned int)json_integer_value(json_array_get(note, 0)),
				 json_string_value(json_array_get(note, 1)));
}

int cordon_loop_state_resume(struct cordon_loop *loop, struct cordon_loop_progress *progress, struct cordon_error *err)
{
	const char *number;
	json_t *value, *event;
	size_t i;
	int r = 0;

	loop->n = progress->n;
	for (i = 0; i < loop->n_stories; i++)
		resume_story(loop, i,
			     cordon_loop_progress_story(progress, loop->options.prds[loop->stories[i].prd].path,
							loop->stories[i].story->id));
	loop->git.has_parent = progress->parent;
	if (progress->parent)
		cordon_copy(loop->git.parent, sizeof(loop->git.parent), progress->parent, strlen(progress->parent));
	if (progress->crew)
		r = wait_for_dead(loop, progress->crew, err);
	if (r == 0 && json_array_size(progress->accepted) && has_restarted(progress)) {
		r = is_on_disk(loop, progress, err);
		r = r == 0 ? forget(loop, progress, err) : r < 0 ? r : 0;
	}
	if (r == 0)
		json_object_foreach(progress->views, number, value)
			if (*json_string_value(value) &&
			    !(progress->landing && cordon_streq(json_string_value(value), progress->landing)))
				cordon_loop_remove_view(loop, json_string_value(value));
	if (progress->landing)
		cordon_copy(loop->landing, sizeof(loop->landing), progress->landing, strlen(progress->landing));
	json_array_foreach(progress->accepted, i, event)
		if (r == 0)
			r = push_accepted(loop, event, err);
	return r;
}

/* ---- removing ---- */

/* The PRDs of a loop that has ended before a time, and that nobody asked to go on since; NULL for any other. */
static json_t *ended_prds(int dir_fd, int64_t before)
{
	autoprogress struct cordon_loop_progress progress = { 0 };
	json_auto_t *events = NULL;
	int64_t ended;

	if (cordon_journal_read(dir_fd, &events, NULL) < 0 || cordon_loop_progress_read(events, &progress, NULL) < 0 ||
	    !progress.begin || !progress.done || cordon_time_parse(progress.last_time, &ended) < 0 || ended >= before ||
	    cordon_loop_has_requests(dir_fd))
		return NULL;
	return json_incref(json_object_get(progress.begin, "prds"));
}

/* Removes a loop while no other can begin with one of its PRDs. Returns whether it did. */
static bool remove_ended(int loops, const char *id, int64_t before)
{
	autofd int dir = openat(loops, id, CORDON_LOOP_OPEN_DIR);
	json_auto_t *prds = dir < 0 ? NULL : ended_prds(dir, before);
	size_t n = json_array_size(prds), held = 0;
	int locks[CORDON_LOOP_PRDS_MAX];
	char name[LOCK_NAME_SIZE];
	bool removed = false;

	for (; held < n && held < CORDON_LOOP_PRDS_MAX && json_is_string(json_array_get(prds, held)); held++) {
		lock_name(json_string_value(json_array_get(prds, held)), name);
		if (cordon_lock_take(loops, name, LOCK_EX | LOCK_NB, &locks[held], NULL) < 0)
			break;
	}
	if (n && held == n) {
		json_auto_t *still = ended_prds(dir, before); /* one may have begun and ended before we had the locks */

		removed = still && cordon_dirs_remove(loops, id, NULL) == 0;
	}
	for (size_t i = 0; i < held; i++) {
		lock_name(json_string_value(json_array_get(prds, i)), name);
		if (removed)
			unlinkat(loops, name, 0); /* whoever waits for it looks whether it is still there */
		close(locks[i]);
	}
	return removed;
}

struct gc {
	int64_t before;
	size_t removed;
};

static int collect(void *data, int loops, const char *name)
{
	struct gc *gc = data;

	gc->removed += strlen(name) == CORDON_LOOP_ID_SIZE - 1 && remove_ended(loops, name, gc->before);
	return 0;
}

int cordon_loop_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, struct cordon_error *err)
{
	struct gc gc = { .before = cordon_time_now() - (int64_t)max_age_ms };
	int r = sodium_init() < 0 ? cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium does not work")
				  : cordon_state_kind_each(home, CORDON_STATE_KIND_LOOPS, collect, &gc, err);

	*ret_removed = gc.removed;
	return r;
}
