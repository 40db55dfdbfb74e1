/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a crew: makes it, with its locks, requests to cancel, and the records of its jobs; and what
 * processes other than the owner do with crews: list them, read them, cancel their jobs, and remove old ones. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/exit.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/text.h"
#include "base/time.h"
#include "config/net_setting.h"
#include "job/crew_internal.h"
#include "job/log.h"
#include "policy/handover.h"
#include "policy/shares.h"
#include "run/result.h"

#define VERSION 1
#define RECORD_MAX ((size_t)8 << 20)
#define CREW_FILE "crew.json"
#define JOB_FILE "job.json"
#define POLICY_FILE "policy"
#define RESULT_FILE "result.json"
#define JOB_FILE_PREPARED ".job.json"
#define ALL_FILE "all"
#define HALF_MADE_MS 60000 /* a half-made directory older than this was left by an owner that was killed */

static const char *const state_names[] = {
	[CORDON_JOB_QUEUED] = "queued",
	[CORDON_JOB_STARTING] = "starting",
	[CORDON_JOB_RUNNING] = "running",
	[CORDON_JOB_LOST] = "lost",
};

/* The state of a job whose run has ended in this state. */
static const cordon_job_state of_run[] = {
	[CORDON_STATE_COMPLETED] = CORDON_JOB_COMPLETED, [CORDON_STATE_FAILED] = CORDON_JOB_FAILED,
	[CORDON_STATE_TIMEOUT] = CORDON_JOB_TIMEOUT,	 [CORDON_STATE_CANCELLED] = CORDON_JOB_CANCELLED,
	[CORDON_STATE_REFUSED] = CORDON_JOB_REFUSED,
};

const char *cordon_job_state_name(cordon_job_state state)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(of_run); i++)
		if (of_run[i] == state)
			return cordon_state_name((cordon_run_state)i);
	return (unsigned int)state < CORDON_JOB__MAX ? state_names[state] : "lost";
}

bool cordon_job_state_ended(cordon_job_state state)
{
	return state > CORDON_JOB_RUNNING;
}

/* ---- records ---- */

/* Returns NULL when there is no such record, or it cannot be read. */
static json_t *read_record(int dir_fd, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	json_t *record;

	if (cordon_read_file(dir_fd, name, O_NOFOLLOW, &text, NULL) < 0)
		return NULL;
	record = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(record) && cordon_json_integer(record, "version") == VERSION)
		return record;
	json_decref(record);
	return NULL;
}

/* Takes ownership of the record. */
static int write_record(int dir_fd, const char *name, json_t *record, bool durable, struct cordon_error *err)
{
	autofree char *text = record ? json_dumps(record, JSON_COMPACT) : NULL;

	json_decref(record);
	if (!text)
		return cordon_fail_errno(err, -ENOMEM, "cannot write %s", name);
	return (durable ? cordon_write_file : cordon_write_file_unsynced)(dir_fd, name, 0600, text, strlen(text), err);
}

/* ---- locks ---- */

/* Makes a FIFO in a directory that nobody else can see yet, and locks it. Opens it for reading and writing, so that a
 * read never reports the end of the file. */
static int make_held(int dir_fd, const char *name, int *ret_fd)
{
	autofd int fd = -1;
	int r;

	if (mkfifoat(dir_fd, name, 0600) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : cordon_lock(fd, LOCK_EX | LOCK_NB);
	if (r == 0)
		*ret_fd = cordon_steal_fd(&fd);
	return r;
}

bool cordon_crew_held(int dir_fd, const char *name)
{
	autofd int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && cordon_lock_is_held(fd);
}

void cordon_crew_wake(int dir_fd, const char *name)
{
	/* Opening fails when nobody reads: then there is nobody to wake. If the FIFO is full, its reader wakes
	 * anyway. */
	autofd int fd = openat(dir_fd, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && write(fd, "", 1) < 0)
		return;
}

bool cordon_crew_woken(int fd)
{
	char bytes[256];
	bool woken = false;

	while (read(fd, bytes, sizeof(bytes)) > 0)
		woken = true;
	return woken;
}

/* ---- crews ---- */

static json_t *info_json(const struct cordon_crew_info *info)
{
	char created[CORDON_TIME_SIZE];

	cordon_time_format(info->created, created);
	return json_pack("{s:i, s:s, s:s, s:s, s:i, s:b}", "version", VERSION, "id", info->id, "label", info->label,
			 "created_at", created, "max_concurrent", (int)info->max_concurrent, "detached", info->detached);
}

static int fill_crew(int fd, const struct cordon_crew_info *info, int *ret_owner_fd, struct cordon_error *err)
{
	autofd int jobs = -1;
	int r = make_held(fd, CORDON_CREW_OWNER, ret_owner_fd);

	if (r == 0 && mkdirat(fd, CORDON_CREW_CANCEL, 0700) < 0)
		r = -errno;
	if (r == 0 && (jobs = openat(fd, CORDON_CREW_JOBS, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot make the crew")
		     : write_record(fd, CREW_FILE, info_json(info), true, err);
}

int cordon_crew_make(const struct cordon_home *home, const struct cordon_crew_info *info, int *ret_crew_fd,
		     int *ret_owner_fd, struct cordon_error *err)
{
	char temporary[sizeof(".new-") + CORDON_UUID_SIZE];
	autofd int parent = -1;
	autofd int fd = -1;
	autofd int owner = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_CREWS, &parent, err);

	if (r < 0)
		return r;
	snprintf(temporary, sizeof(temporary), ".new-%s", info->id);
	if (mkdirat(parent, temporary, 0700) < 0 || (fd = openat(parent, temporary, CORDON_CREW_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the crew");
	r = fill_crew(fd, info, &owner, err);
	if (r == 0 && renameat(parent, temporary, parent, info->id) < 0)
		r = cordon_fail_errno(err, -errno, "cannot make the crew");
	if (r < 0)
		return r; /* gc removes what is half made */
	*ret_crew_fd = cordon_steal_fd(&fd);
	*ret_owner_fd = cordon_steal_fd(&owner);
	return 0;
}

/* Judges the id and opens the directory of the crew. */
static int open_crew(const struct cordon_home *home, const char *id, int *ret_crew_fd, struct cordon_error *err)
{
	autofd int parent = -1;
	int fd, r;

	if (!cordon_uuid_valid(id))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not the id of a crew: %.80s", id);
	r = cordon_state_kind_open(home, CORDON_STATE_KIND_CREWS, &parent, err);
	if (r < 0)
		return r;
	fd = openat(parent, id, CORDON_CREW_DIR);
	if (fd < 0 && errno == ENOENT)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no crew %s", id);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open the crew %s", id);
	*ret_crew_fd = fd;
	return 0;
}

int cordon_crew_info_read(int crew_fd, struct cordon_crew_info *ret_info, struct cordon_error *err)
{
	json_auto_t *record = read_record(crew_fd, CREW_FILE);
	struct cordon_crew_info info = { .max_concurrent = (unsigned int)cordon_json_integer(record, "max_concurrent"),
					 .detached = cordon_json_true(record, "detached") };
	const char *id = cordon_json_text(record, "id"), *label = cordon_json_text(record, "label");

	if (!record || cordon_copy(info.id, sizeof(info.id), id, strlen(id)) < 0 ||
	    cordon_copy(info.label, sizeof(info.label), label, strlen(label)) < 0 ||
	    cordon_time_parse(cordon_json_text(record, "created_at"), &info.created) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the record of the crew is damaged");
	info.owned = cordon_state_kind_lives(CORDON_STATE_KIND_CREWS, crew_fd);
	*ret_info = info;
	return 0;
}

/* ---- jobs ---- */

int cordon_crew_job_make(int crew_fd, size_t index, int *ret_dir_fd, int *ret_alive_fd, struct cordon_error *err)
{
	char name[CORDON_DIGITS_SIZE], temporary[CORDON_DIGITS_SIZE + 1];
	autofd int dir = -1;
	autofd int alive = -1;
	int r = 0;

	snprintf(name, sizeof(name), "%zu", index);
	snprintf(temporary, sizeof(temporary), ".%zu", index);
	if (mkdirat(crew_fd, temporary, 0700) < 0 || (dir = openat(crew_fd, temporary, CORDON_CREW_DIR)) < 0)
		r = -errno;
	if (r == 0)
		r = make_held(dir, CORDON_CREW_ALIVE, &alive);
	if (r == 0 && renameat(crew_fd, temporary, crew_fd, name) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make the directory of a job");
	*ret_dir_fd = cordon_steal_fd(&dir);
	*ret_alive_fd = cordon_steal_fd(&alive);
	return 0;
}

int cordon_crew_job_open(int crew_fd, size_t index)
{
	char name[CORDON_DIGITS_SIZE];
	int fd;

	snprintf(name, sizeof(name), "%zu", index);
	fd = openat(crew_fd, name, CORDON_CREW_DIR);
	return fd < 0 ? -errno : fd;
}

/* Texts that are not UTF-8 are left out of records: these are for people. */
static json_t *text_json(const char *text)
{
	return cordon_utf8_valid(text, strlen(text)) ? json_string(text) : NULL;
}

static json_t *shares_json(const struct cordon_policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];

		json_array_append_new(array, json_pack("{s:o*, s:o*, s:b}", "path",
						       text_json(share->home ? "~" : share->target), "source",
						       text_json(share->source), "read_only", share->read_only));
	}
	return array;
}

/* For those who look at the job later. */
static void write_policy(int dir_fd, const struct cordon_policy *policy)
{
	autofd int fd = openat(dir_fd, POLICY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)cordon_handover_write(policy, !policy->no_editor_temps, fd, NULL);
}

int cordon_crew_job_prepare(int dir_fd, const struct cordon_job *job, const struct cordon_run_spec *spec,
			    struct cordon_error *err)
{
	json_auto_t *command = json_array();
	json_auto_t *record = NULL;
	autofree char *text = NULL;
	autofd int fd = -1;
	char started[CORDON_TIME_SIZE];
	int r;

	cordon_time_format(cordon_time_now(), started);
	for (size_t i = 0; spec->argv[i]; i++)
		json_array_append_new(command,
				      json_string(spec->argv[i])); /* skips what is not UTF-8: this is for people */
	record = json_pack("{s:i, s:i, s:s, s:s, s:O, s:s, s:o*, s:o*, s:o*}", "version", VERSION, "index",
			   (int)job->index, "name", job->name, "run_id", job->run_id, "command", command, "started_at",
			   started, "root", text_json(spec->policy->root.path), "net",
			   cordon_net_list_json(&spec->policy->net), "shares", shares_json(spec->policy));
	write_policy(dir_fd, spec->policy);
	text = record ? json_dumps(record, JSON_COMPACT) : NULL;
	/* No fsync(): a job that runs does not survive a crash of the machine, and its start must not wait for the
	 * disk. */
	fd = openat(dir_fd, JOB_FILE_PREPARED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = !text ? -ENOMEM : fd < 0 ? -errno : cordon_write_all(fd, text, strlen(text));
	return r < 0 ? cordon_fail_errno(err, r, "cannot write the record of the job") : 0;
}

/* If the rename fails, others still see the job as starting. That is no reason to end it. */
void cordon_crew_job_running(int dir_fd)
{
	(void)renameat(dir_fd, JOB_FILE_PREPARED, dir_fd, JOB_FILE);
}

int cordon_crew_result_write(int dir_fd, const struct cordon_job *job, const struct cordon_result *result,
			     bool log_failed, bool durable, struct cordon_error *err)
{
	json_t *record = cordon_result_json(result);

	if (!record)
		return cordon_fail_errno(err, -ENOMEM, "cannot write the result of the job");
	json_object_set_new(record, "index", json_integer((json_int_t)job->index));
	json_object_set_new(record, "name", json_string(job->name));
	json_object_set_new(record, "own_exit", json_integer(result->own_exit));
	if (log_failed)
		json_object_set_new(record, "log_failed", json_true());
	return write_record(dir_fd, RESULT_FILE, record, durable, err);
}

/* The policy that a supervisor has written, for the root as it is now. */
static int read_policy(int dir_fd, const char *root, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	autofd int file = openat(dir_fd, POLICY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	autofd int root_fd = -1;
	bool temps;
	int r;

	if (file < 0)
		return cordon_fail_errno(err, -errno, "cannot read the policy of the job");
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", root);
	r = cordon_handover_read(file, root_fd, ret_policy, &temps, err);
	if (r == 0)
		(*ret_policy)->no_editor_temps = !temps;
	return r;
}

static void take_time(const json_t *record, const char *key, int64_t *ret_ms)
{
	if (cordon_time_parse(cordon_json_text(record, key), ret_ms) < 0)
		*ret_ms = 0;
}

static void take_text(const char *text, char *dst, size_t size)
{
	size_t n = strlen(text);

	cordon_copy(dst, size, text, n < size ? n : size - 1);
}

static void take_result(const json_t *result, struct cordon_job *job)
{
	const json_t *error = json_object_get(result, "error");

	job->state = CORDON_JOB_LOST;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(of_run); i++)
		if (cordon_json_is(result, "state", cordon_state_name((cordon_run_state)i)))
			job->state = of_run[i];
	take_text(cordon_json_text(result, "session_id"), job->run_id, sizeof(job->run_id));
	job->exit_code = (int)cordon_json_integer_or(result, "exit_code", -1);
	job->signal = (int)cordon_json_integer(result, "signal");
	job->own_exit = (int)cordon_json_integer(result, "own_exit");
	job->violations = (unsigned int)cordon_json_integer(result, "violations");
	take_time(result, "started_at", &job->started);
	take_time(result, "ended_at", &job->ended);
	if (error) {
		job->kind = cordon_kind_parse(cordon_json_text(error, "kind"));
		take_text(cordon_json_text(error, "message"), job->message, sizeof(job->message));
	}
}

/* Reads the state of a job that has a directory. Its supervisor may write the result and end at any moment, so we look
 * for the result again when the supervisor has ended. */
static void read_started(int dir_fd, struct cordon_job *job)
{
	json_auto_t *result = read_record(dir_fd, RESULT_FILE);
	json_auto_t *record = NULL;
	bool alive = !result && cordon_crew_held(dir_fd, CORDON_CREW_ALIVE);

	if (!result && !alive)
		result = read_record(dir_fd, RESULT_FILE);
	if (result) {
		take_result(result, job);
		return;
	}
	record = read_record(dir_fd, JOB_FILE);
	job->state = !alive ? CORDON_JOB_LOST : record ? CORDON_JOB_RUNNING : CORDON_JOB_STARTING;
	take_text(cordon_json_text(record, "run_id"), job->run_id, sizeof(job->run_id));
	take_time(record, "started_at", &job->started);
}

void cordon_crew_job_read(int crew_fd, size_t index, bool owned, struct cordon_job *job)
{
	autofd int dir = cordon_crew_job_open(crew_fd, index);

	job->exit_code = job->own_exit = -1;
	if (dir >= 0)
		read_started(dir, job);
	else if (cordon_crew_requested(crew_fd, index))
		job->state = CORDON_JOB_CANCELLED;
	else
		job->state = owned ? CORDON_JOB_QUEUED : CORDON_JOB_LOST;
	if (job->state == CORDON_JOB_LOST)
		job->own_exit = CORDON_EXIT_REFUSED;
	if (job->state == CORDON_JOB_CANCELLED && dir < 0)
		job->own_exit = CORDON_EXIT_SIGNAL + SIGTERM;
}

/* ---- requests to cancel ---- */

static const char *request_path(size_t index, char buf[static 64])
{
	if (index == CORDON_CREW_ALL)
		snprintf(buf, 64, CORDON_CREW_CANCEL "/" ALL_FILE);
	else
		snprintf(buf, 64, CORDON_CREW_CANCEL "/%zu", index);
	return buf;
}

int cordon_crew_request(int crew_fd, size_t index)
{
	char path[64];
	autofd int fd = openat(crew_fd, request_path(index, path), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

bool cordon_crew_requested(int crew_fd, size_t index)
{
	char one[64], all[64];

	return faccessat(crew_fd, request_path(CORDON_CREW_ALL, all), F_OK, 0) == 0 ||
	       faccessat(crew_fd, request_path(index, one), F_OK, 0) == 0;
}

void cordon_crew_requests(int crew_fd, void (*take)(void *data, size_t index), void *data)
{
	int fd = openat(crew_fd, CORDON_CREW_CANCEL, CORDON_CREW_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		cordon_closep(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		uint64_t index;

		if (cordon_streq(entry->d_name, ALL_FILE))
			take(data, CORDON_CREW_ALL);
		else if (cordon_parse_u64(entry->d_name, 0, CORDON_CREW_JOBS_MAX, &index) == 0)
			take(data, index);
	}
	closedir(dir);
}

/* ---- for processes other than the owner: reading ---- */

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
	int r = open_crew(home, id, &fd, err);

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
	int r = open_crew(home, id, &crew, err);

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
	int fd, r = open_crew(home, id, &crew, err);

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
	result = read_record(dir, RESULT_FILE);
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
	record = read_record(dir, JOB_FILE);
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
	record = read_record(dir, JOB_FILE);
	root = cordon_json_string(record, "root");
	return root ? read_policy(dir, root, ret_policy, err)
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
	int r = open_crew(home, id, &fd, err);

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
	if (crew->owned || !crew->detached || open_crew(home, crew->id, &fd, NULL) < 0)
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
