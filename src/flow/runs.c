/* SPDX-License-Identifier: Apache-2.0 */
/* The records of runs: makes, finds, opens, lists and removes them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/lock.h"
#include "base/time.h"
#include "flow/internal.h"
#include "flow/step.h"
#include "state/kinds.h"

#define VERSION 1
#define RECORD "run.json"
#define LOCK "lock"
#define NEW ".new-" /* before the id of a run that nobody can see yet */
#define RECORD_MAX ((size_t)16 << 20)
#define RUNS_MAX 100000
#define LOCK_MS 100

void cordon_flow_run_done(struct cordon_flow_run *run)
{
	cordon_closep(&run->fd);
	cordon_document_freep(&run->doc);
	json_decref(run->record);
	run->record = NULL;
}

static int open_runs(const struct cordon_home *home, int *ret_fd, struct cordon_error *err)
{
	return cordon_state_kind_open(home, CORDON_STATE_KIND_WORKFLOWS, ret_fd, err);
}

static bool is_run_id(const char *id)
{
	return cordon_flow_id_valid(id) && strncmp(id, "run-", 4) == 0 && strlen(id) < CORDON_FLOW_RUN_SIZE;
}

/* ---- making ---- */

int cordon_flow_run_make(const struct cordon_home *home, json_t *record, const char *id, int *ret_lock,
			 struct cordon_error *err)
{
	json_auto_t *owned = record;
	autofree char *text = json_dumps(owned, JSON_COMPACT);
	char temporary[CORDON_FLOW_RUN_SIZE + 8];
	autofd int parent = -1;
	autofd int fd = -1;
	autofd int lock = -1;
	int r = text ? open_runs(home, &parent, err) : cordon_fail_errno(err, -ENOMEM, "cannot record the run");

	if (r < 0)
		return r;
	snprintf(temporary, sizeof(temporary), NEW "%s", id);
	if (mkdirat(parent, temporary, 0700) < 0 || (fd = openat(parent, temporary, CORDON_FLOW_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot record the run");
	lock = openat(fd, LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = lock < 0 ? -errno : cordon_lock(lock, LOCK_EX | LOCK_NB);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot record the run");
	r = cordon_write_file(fd, RECORD, 0600, text, strlen(text), err);
	if (r == 0 && (renameat(parent, temporary, parent, id) < 0 || fsync(parent) < 0))
		r = cordon_fail_errno(err, -errno, "cannot record the run");
	if (r == 0)
		*ret_lock = cordon_steal_fd(&lock);
	return r;
}

int cordon_flow_run_lock(const struct cordon_flow_run *run, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = openat(run->fd, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	/* Whoever only looks whether an engine lives has the lock for an instant. */
	int r = fd < 0 ? -errno : cordon_lock_within(fd, LOCK_EX, LOCK_MS);

	if (r == -EWOULDBLOCK)
		return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the run %s is under way", run->id);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the run %s", run->id);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

pid_t cordon_flow_engine(const struct cordon_flow_run *run)
{
	autofd int fd = openat(run->fd, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	char text[CORDON_DIGITS_SIZE] = "";
	uint64_t pid = 0;

	if (fd < 0 || !cordon_lock_is_held(fd))
		return 0;
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 || cordon_parse_u64(text, 1, INT32_MAX, &pid) < 0)
		return 1; /* it lives, and has not said who it is yet */
	return (pid_t)pid;
}

bool cordon_flow_requested(const struct cordon_flow_run *run, const char *name)
{
	return faccessat(run->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- opening ---- */

static uint64_t number_at(const json_t *object, const char *key)
{
	return (uint64_t)cordon_json_integer(object, key);
}

static int read_record(struct cordon_flow_run *run, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	const json_t *limits;
	const char *created;
	int r = cordon_read_file(run->fd, RECORD, O_NOFOLLOW, &text, err);

	if (r < 0)
		return r;
	run->record = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	limits = json_object_get(run->record, "limits");
	run->orchestrator = cordon_json_string(run->record, "orchestrator");
	run->workflow_id = cordon_json_string(run->record, "workflow");
	run->private_path = cordon_json_string(run->record, "private_workspace");
	run->inputs = json_object_get(run->record, "inputs");
	run->agents = json_object_get(run->record, "agents");
	run->context = json_object_get(run->record, "context");
	created = cordon_json_string(run->record, "created_at");
	run->max_iterations = number_at(limits, "max_total_iterations");
	run->run_timeout_ms = number_at(limits, "run_timeout_seconds") * 1000;
	run->step_timeout_ms = number_at(limits, "step_timeout_seconds") * 1000;
	run->max_step_timeout_ms = number_at(limits, "max_step_timeout_seconds") * 1000;
	if (number_at(run->record, "version") != VERSION || !run->orchestrator || !run->workflow_id ||
	    !run->private_path || !run->inputs || !run->agents || !created || !run->max_iterations ||
	    cordon_time_parse(created, &run->created) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the record of the run %s is damaged", run->id);
	return cordon_workflow_parse(json_object_get(run->record, "definition"), &run->doc, &run->workflow, err);
}

static int open_run(int parent, const char *id, struct cordon_flow_run *ret_run, struct cordon_error *err)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	int r;

	(void)cordon_copy(run.id, sizeof(run.id), id, strlen(id));
	run.fd = openat(parent, id, CORDON_FLOW_DIR);
	if (run.fd < 0)
		return errno == ENOENT ? cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no run %s", id)
				       : cordon_fail_errno(err, -errno, "cannot open the run %s", id);
	r = read_record(&run, err);
	if (r < 0)
		return r;
	*ret_run = run;
	run = (struct cordon_flow_run)CORDON_FLOW_RUN_NONE;
	return 0;
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* Lists the ids that begin with `prefix`, oldest first: they begin with the time. */
static int list_names(int parent, const char *prefix, char ***ret_names, size_t *ret_n)
{
	int fd = openat(parent, ".", CORDON_FLOW_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char **names = NULL;
	size_t n = 0;
	int r = 0;

	if (!dir) {
		cordon_closep(&fd);
		return -errno;
	}
	for (struct dirent *entry; r == 0 && n < RUNS_MAX && (entry = readdir(dir));) {
		char **more;

		if (!is_run_id(entry->d_name) || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		more = reallocarray(names, n + 1, sizeof(*names));
		if (!more || !((names = more)[n] = strdup(entry->d_name)))
			r = -ENOMEM;
		else
			n++;
	}
	closedir(dir);
	if (r < 0) {
		free_names(names, n);
		return r;
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	*ret_names = names;
	*ret_n = n;
	return 0;
}

int cordon_flow_run_open(const struct cordon_home *home, const char *id, struct cordon_flow_run *ret_run,
			 struct cordon_error *err)
{
	autofd int parent = -1;
	char **names = NULL;
	size_t n = 0;
	int r;

	if (id && !cordon_flow_id_valid(id))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not the id of a run: '%.80s'", id);
	r = open_runs(home, &parent, err);
	if (r < 0)
		return r;
	if (id && is_run_id(id) && faccessat(parent, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return open_run(parent, id, ret_run, err);
	r = list_names(parent, id ? id : "", &names, &n);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot list the runs");
	if (!n)
		r = id ? cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no run %s", id)
		       : cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no run");
	else if (id && n > 1)
		r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "several runs begin with %s: %s, %s%s", id, names[0],
				names[1], n > 2 ? ", ..." : "");
	else
		r = open_run(parent, names[n - 1], ret_run, err);
	free_names(names, n);
	return r;
}

int cordon_flow_each(const struct cordon_home *home, int (*each)(void *data, struct cordon_flow_run *run), void *data,
		     struct cordon_error *err)
{
	autofd int parent = -1;
	char **names = NULL;
	size_t n = 0;
	int r = open_runs(home, &parent, err);

	if (r == 0 && (r = list_names(parent, "", &names, &n)) < 0)
		r = cordon_fail_errno(err, r, "cannot list the runs");
	for (size_t i = 0; r == 0 && i < n; i++) {
		autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;

		/* One damaged record must not hide the others. */
		if (open_run(parent, names[i], &run, NULL) == 0)
			r = each(data, &run);
	}
	free_names(names, n);
	return r;
}

int cordon_flow_each_latest(const struct cordon_home *home, const char *before, size_t limit,
			    int (*each)(void *data, struct cordon_flow_run *run), void *data, bool *ret_more,
			    struct cordon_error *err)
{
	autofd int parent = -1;
	char **names = NULL;
	size_t n = 0, i, taken = 0;
	int r = open_runs(home, &parent, err);

	if (r == 0 && (r = list_names(parent, "", &names, &n)) < 0)
		r = cordon_fail_errno(err, r, "cannot list the runs");
	for (i = n; before && i > 0 && strcmp(names[i - 1], before) >= 0;)
		i--;
	while (r == 0 && i > 0 && taken < limit) {
		autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;

		if (open_run(parent, names[--i], &run, NULL) < 0)
			continue;
		r = each(data, &run);
		taken++;
	}
	if (r == 0)
		*ret_more = i > 0;
	free_names(names, n);
	return r;
}

/* ---- removing ---- */

struct gc {
	int parent;
	int64_t before;
	size_t removed;
};

static int remove_old(void *data, struct cordon_flow_run *run)
{
	struct gc *gc = data;
	autostanding struct cordon_flow_standing standing = { 0 };
	const struct cordon_flow_progress *progress = &standing.progress;

	if (cordon_flow_standing(run, &standing, NULL) < 0)
		return 0;
	if (cordon_flow_state_ended(progress->state) && progress->updated < gc->before && !cordon_flow_engine(run) &&
	    cordon_dirs_remove(gc->parent, run->id, NULL) == 0)
		gc->removed++;
	return 0;
}

/* What is left of a run whose maker was killed before anybody could see it. Its lock says whether the maker lives. */
static int remove_half_made(void *data, int parent, const char *name)
{
	autofd int fd = strncmp(name, NEW, strlen(NEW)) == 0 ? openat(parent, name, CORDON_FLOW_DIR) : -1;
	autofd int lock = fd < 0 ? -1 : openat(fd, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	(void)data;
	if (lock >= 0 && cordon_lock(lock, LOCK_EX | LOCK_NB) == 0)
		(void)cordon_dirs_remove(parent, name, NULL);
	return 0;
}

int cordon_flow_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, struct cordon_error *err)
{
	struct gc gc = { .before = cordon_time_now() - (int64_t)max_age_ms };
	int r = open_runs(home, &gc.parent, err);

	if (r < 0)
		return r;
	r = cordon_flow_each(home, remove_old, &gc, err);
	(void)cordon_state_kind_each(home, CORDON_STATE_KIND_WORKFLOWS, remove_half_made, NULL, NULL);
	cordon_step_spec_gc(home);
	cordon_closep(&gc.parent);
	*ret_removed = gc.removed;
	return r;
}
