/* SPDX-License-Identifier: Apache-2.0 */
/* What processes other than the owner do with crews: list them, read them, cancel their jobs, and remove old ones. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/time.h"
#include "job/crew_internal.h"
#include "job/log.h"

#define HALF_MADE_MS 60000 /* a half-made directory older than this was left by an owner that was killed */

/* ---- reading ---- */

static int by_age(const void *a, const void *b)
{
	const struct cordon_crew_info *x = a, *y = b;

	return x->created != y->created ? (x->created > y->created) - (x->created < y->created) : strcmp(x->id, y->id);
}

struct found {
	struct cordon_crew_info *crews;
	size_t n, cap;
};

static int add_crew(void *data, int parent_fd, const char *name)
{
	struct found *found = data;
	autofd int fd = cordon_uuid_valid(name) ? openat(parent_fd, name, CORDON_CREW_DIR) : -1;
	struct cordon_crew_info info;

	/* Leave out a crew that is being removed, or whose record is damaged. */
	if (fd < 0 || cordon_crew_info_read(fd, &info, NULL) < 0)
		return 0;
	if (found->n == found->cap) {
		struct cordon_crew_info *grown = realloc(found->crews, (found->cap * 2 + 16) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		found->crews = grown;
		found->cap = found->cap * 2 + 16;
	}
	found->crews[found->n++] = info;
	return 0;
}

int cordon_crew_list(const struct cordon_home *home, struct cordon_crew_info **ret_crews, size_t *ret_n,
		     struct cordon_error *err)
{
	struct found found = { 0 };
	int r = cordon_state_kind_each(home, CORDON_STATE_KIND_CREWS, add_crew, &found, err);

	if (r < 0) {
		free(found.crews);
		return r == -ENOMEM ? cordon_fail_errno(err, r, "cannot list the crews") : r;
	}
	if (found.n)
		qsort(found.crews, found.n, sizeof(*found.crews), by_age);
	*ret_crews = found.crews;
	*ret_n = found.n;
	return 0;
}

/* Calls `take` with the name of each job, until it returns false. Ignores an incomplete last line that a killed owner
 * left. */
static int each_job(int crew_fd, bool (*take)(void *data, size_t index, const char *name), void *data,
		    struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CREW_JOBS_BYTES_MAX);
	int r = cordon_read_file(crew_fd, CORDON_CREW_JOBS, O_NOFOLLOW, &text, err);
	size_t index = 0;

	if (r < 0)
		return r;
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!take(data, index++, line))
			break;
	}
	return 0;
}

struct reading {
	int crew_fd;
	bool owned;
	struct cordon_job *jobs;
	size_t n, cap;
	bool failed;
};

static bool read_job(void *data, size_t index, const char *name)
{
	struct reading *reading = data;
	struct cordon_job *job;

	if (reading->n == reading->cap) {
		size_t cap = reading->cap * 2 + 64;
		struct cordon_job *grown = realloc(reading->jobs, cap * sizeof(*grown));

		reading->failed = !grown;
		if (!grown)
			return false;
		reading->jobs = grown;
		reading->cap = cap;
	}
	job = &reading->jobs[reading->n];
	*job = (struct cordon_job){ .index = index };
	if (cordon_copy(job->name, sizeof(job->name), name, strlen(name)) < 0)
		return true;
	cordon_crew_job_read(reading->crew_fd, index, reading->owned, job);
	reading->n++;
	return true;
}

int cordon_crew_read(const struct cordon_home *home, const char *id, struct cordon_crew_info *ret_crew,
		     struct cordon_job **ret_jobs, size_t *ret_n, struct cordon_error *err)
{
	struct reading reading = { 0 };
	struct cordon_crew_info info;
	autofd int fd = -1;
	int r = cordon_crew_open(home, id, &fd, err);

	if (r == 0)
		r = cordon_crew_info_read(fd, &info, err);
	if (r == 0) {
		reading.crew_fd = fd;
		reading.owned = info.owned;
		r = each_job(fd, read_job, &reading, err);
	}
	if (r == 0 && reading.failed)
		r = cordon_fail_errno(err, -ENOMEM, "cannot read the crew");
	if (r < 0) {
		free(reading.jobs);
		return r;
	}
	*ret_crew = info;
	*ret_jobs = reading.jobs;
	*ret_n = reading.n;
	return 0;
}

int cordon_crew_log(const struct cordon_home *home, const char *id, size_t index, int64_t since, size_t max,
		    json_t **ret_events, int64_t *ret_last, int64_t *ret_dropped, struct cordon_error *err)
{
	autofd int crew = -1;
	autofd int dir = -1;
	int r = cordon_crew_open(home, id, &crew, err);

	if (r < 0)
		return r;
	dir = cordon_crew_job_open(crew, index);
	if (dir >= 0)
		return cordon_job_log_read(dir, since, max, ret_events, ret_last, ret_dropped, err);
	if (dir != -ENOENT)
		return cordon_fail_errno(err, dir, "cannot open the job %zu", index);
	*ret_events = json_array();
	*ret_last = -1;
	*ret_dropped = 0;
	return *ret_events ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot read the log");
}

/* Opens the directory of a job; -ENOENT when it has not started. */
static int open_job(const struct cordon_home *home, const char *id, size_t index, int *ret_fd, struct cordon_error *err)
{
	autofd int crew = -1;
	int fd, r = cordon_crew_open(home, id, &crew, err);

	if (r < 0)
		return r;
	fd = cordon_crew_job_open(crew, index);
	if (fd == -ENOENT)
		return cordon_fail(err, fd, CORDON_KIND_NOT_FOUND, "the job %zu has not started", index);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open the job %zu", index);
	*ret_fd = fd;
	return 0;
}

int cordon_crew_result(const struct cordon_home *home, const char *id, size_t index, json_t **ret_result,
		       struct cordon_error *err)
{
	autofd int dir = -1;
	json_t *result;
	int r = open_job(home, id, index, &dir, err);

	if (r < 0)
		return r;
	result = cordon_crew_result_read(dir);
	if (!result)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the job %zu has no result", index);
	*ret_result = result;
	return 0;
}

int cordon_crew_record(const struct cordon_home *home, const char *id, size_t index, json_t **ret_record,
		       struct cordon_error *err)
{
	autofd int dir = -1;
	json_t *record;
	int r = open_job(home, id, index, &dir, err);

	if (r < 0)
		return r;
	record = cordon_crew_record_read(dir);
	if (!record)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the job %zu has not started", index);
	*ret_record = record;
	return 0;
}

int cordon_crew_policy(const struct cordon_home *home, const char *id, size_t index, struct cordon_policy **ret_policy,
		       struct cordon_error *err)
{
	json_auto_t *record = NULL;
	const char *root;
	autofd int dir = -1;
	int r = open_job(home, id, index, &dir, err);

	if (r < 0)
		return r;
	record = cordon_crew_record_read(dir);
	root = cordon_json_string(record, "root");
	return root ? cordon_crew_policy_read(dir, root, ret_policy, err)
		    : cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the policy of the job %zu is not known", index);
}

/* ---- cancel ---- */

struct search {
	const char *name; /* NULL: all */
	int crew_fd;
	bool found;
	int error;
};

/* Writes the request first and wakes the supervisor then. A supervisor that starts in between looks for the request
 * itself. */
static bool cancel_job(void *data, size_t index, const char *name)
{
	struct search *search = data;
	autofd int dir = -1;

	if (search->name && !cordon_streq(search->name, name))
		return true;
	search->found = true;
	if (search->name)
		search->error = cordon_crew_request(search->crew_fd, index);
	dir = cordon_crew_job_open(search->crew_fd, index);
	if (dir >= 0)
		cordon_crew_wake(dir, CORDON_CREW_ALIVE);
	return !search->name;
}

int cordon_crew_cancel_by_name(const struct cordon_home *home, const char *id, const char *name,
			       struct cordon_error *err)
{
	struct search search = { .name = name };
	autofd int fd = -1;
	int r = cordon_crew_open(home, id, &fd, err);

	if (r < 0)
		return r;
	search.crew_fd = fd;
	if (!name)
		search.error = cordon_crew_request(fd, CORDON_CREW_ALL);
	r = each_job(fd, cancel_job, &search, err);
	if (r < 0)
		return r;
	if (search.error < 0)
		return cordon_fail_errno(err, search.error, "cannot ask for the end of the crew's jobs");
	if (name && !search.found)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the crew has no job %.80s", name);
	cordon_crew_wake(fd, CORDON_CREW_OWNER);
	return 0;
}

/* ---- removing ---- */

struct age {
	int crew_fd;
	int64_t newest; /* ms since 1970 */
	bool alive;
};

static void note_time(struct age *age, const char *name)
{
	struct stat st;
	int64_t ms;

	if (fstatat(age->crew_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	age->newest = ms > age->newest ? ms : age->newest;
}

static bool check_job(void *data, size_t index, const char *name)
{
	struct age *age = data;
	char path[CORDON_DIGITS_SIZE];
	autofd int dir = cordon_crew_job_open(age->crew_fd, index);

	(void)name;
	if (dir < 0)
		return true;
	snprintf(path, sizeof(path), "%zu", index);
	note_time(age, path);
	age->alive = cordon_crew_held(dir, CORDON_CREW_ALIVE);
	return !age->alive;
}

/* Finds out whether a process of the crew lives, and if not, when something last happened in the crew. */
static void find_age(int crew_fd, struct age *ret)
{
	static const char *const names[] = { ".", CORDON_CREW_JOBS, CORDON_CREW_CANCEL };

	*ret = (struct age){ .crew_fd = crew_fd, .alive = cordon_state_kind_lives(CORDON_STATE_KIND_CREWS, crew_fd) };
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(names); i++)
		note_time(ret, names[i]);
	if (!ret->alive)
		(void)each_job(crew_fd, check_job, ret, NULL);
}

bool cordon_crew_runs(const struct cordon_home *home, const struct cordon_crew_info *crew)
{
	struct age age = { 0 };
	autofd int fd = -1;

	/* The jobs of a crew that is not detached end with its owner. */
	if (crew->owned || !crew->detached || cordon_crew_open(home, crew->id, &fd, NULL) < 0)
		return crew->owned;
	age.crew_fd = fd;
	(void)each_job(fd, check_job, &age, NULL);
	return age.alive;
}

/* Renames the crew in one step, so that nobody finds it any more, and then removes it. If we die in between, the next
 * gc goes on. */
static bool remove_crew(int parent_fd, const char *id)
{
	char gone[sizeof(".gone-") + NAME_MAX];

	snprintf(gone, sizeof(gone), ".gone-%s", id);
	return renameat(parent_fd, id, parent_fd, gone) == 0 && cordon_dirs_remove(parent_fd, gone, NULL) == 0;
}

/* Removes a directory that an owner did not finish to make, or another gc did not finish to remove. */
static void remove_unfinished(int parent_fd, const char *name)
{
	bool gone = strncmp(name, ".gone-", 6) == 0 && cordon_uuid_valid(name + 6);
	bool half = strncmp(name, ".new-", 5) == 0 && cordon_uuid_valid(name + 5);
	autofd int fd = gone || half ? openat(parent_fd, name, CORDON_CREW_DIR) : -1;
	struct age age;

	if (fd < 0)
		return;
	find_age(fd, &age);
	if (gone || (!age.alive && age.newest + HALF_MADE_MS < cordon_time_now()))
		(void)cordon_dirs_remove(parent_fd, name, NULL);
}

struct gc {
	int64_t now;
	uint64_t max_age_ms;
	size_t removed, live;
};

static int collect(void *data, int parent_fd, const char *name)
{
	struct gc *gc = data;
	autofd int fd = -1;
	struct age age;

	if (!cordon_uuid_valid(name)) {
		remove_unfinished(parent_fd, name);
		return 0;
	}
	fd = openat(parent_fd, name, CORDON_CREW_DIR);
	if (fd < 0)
		return 0;
	find_age(fd, &age);
	gc->live += age.alive;
	if (!age.alive && (uint64_t)(gc->now > age.newest ? gc->now - age.newest : 0) >= gc->max_age_ms)
		gc->removed += remove_crew(parent_fd, name);
	return 0;
}

int cordon_crew_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, size_t *ret_live,
		   struct cordon_error *err)
{
	struct gc gc = { .now = cordon_time_now(), .max_age_ms = max_age_ms };
	int r = cordon_state_kind_each(home, CORDON_STATE_KIND_CREWS, collect, &gc, err);

	if (r < 0)
		return r;
	*ret_removed = gc.removed;
	*ret_live = gc.live;
	return 0;
}
