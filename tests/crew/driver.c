/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front end of a crew for the tests: prints every report as a line of JSON.
 *
 *     crew_driver run           the first line of standard input is an object, the crew with its jobs; then come orders, one per line:
 *                               "cancel NAME", "cancel-all", "kill-all", "add {job}", "leave"
 *     crew_driver list | show ID | log ID INDEX | cancel ID [NAME] | gc AGE_MS
 */
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "base/io.h"
#include "base/title.h"
#include "job/crew.h"
#include "policy/policy.h"

#define JOBS_MAX (CORDON_CREW_JOBS_MAX + 10)

struct driver {
	struct cordon_crew *crew;
	json_t *crew_json;
	json_t *added[JOBS_MAX]; /* jobs that were added later; kept, because the crew uses their strings */
	size_t n_added;
	bool counts; /* count the bytes of the output instead of printing it */
	bool leaves; /* exit although the crew is busy */
	uint64_t bytes[JOBS_MAX];
	struct cordon_policy *policies[JOBS_MAX];
	size_t last_policy;
	char **argvs[JOBS_MAX], **envs[JOBS_MAX];
	size_t n;
};

static void print(json_t *line)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;

	if (text)
		puts(text);
	fflush(stdout);
	free(text);
	json_decref(line);
}

static bool timed; /* print the times of starts and ends, for measurements */

static void print_time(size_t index)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	print(json_pack("{s:I, s:I}", "job", (json_int_t)index, "ns", (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec));
}

static int print_error(const struct cordon_error *err, const char *name)
{
	print(json_pack("{s:{s:s, s:s, s:s}}", "error", "kind", cordon_kind_name(err->kind), "message", err->message,
			"name", name));
	return 1;
}

static json_t *job_json(const struct cordon_job *job)
{
	return json_pack("{s:I, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:I, s:I, s:s, s:s}", "job", (json_int_t)job->index,
			 "name", job->name, "state", cordon_job_state_name(job->state), "exit_code", job->exit_code,
			 "signal", job->signal, "own_exit", job->own_exit, "violations", (int)job->violations, "run_id",
			 job->run_id, "started", (json_int_t)job->started, "ended", (json_int_t)job->ended, "kind",
			 cordon_kind_name(job->kind), "message", job->message);
}

static void on_state(void *data, const struct cordon_job *job)
{
	(void)data;
	print(job_json(job));
	if (timed && (job->state == CORDON_JOB_STARTING || cordon_job_state_ended(job->state)))
		print_time(job->index);
}

static void on_event(void *data, size_t index, const struct cordon_event *event)
{
	(void)data;
	print(json_pack("{s:I, s:i, s:s*, s:s*, s:i}", "job", (json_int_t)index, "event", (int)event->kind, "op",
			event->op, "path", event->path, "count", (int)event->count));
}

static void on_output(void *data, size_t index, int stream, const char *bytes, size_t n)
{
	struct driver *driver = data;

	driver->bytes[index] += n;
	if (!driver->counts)
		print(json_pack("{s:I, s:i, s:s%}", "job", (json_int_t)index, "stream", stream, "text", bytes, n));
}

/* Returns pointers into the array's own strings, ended by NULL. */
static char **strings(const json_t *array)
{
	char **list = calloc(json_array_size(array) + 1, sizeof(char *));

	for (size_t i = 0; list && i < json_array_size(array); i++)
		list[i] = (char *)(uintptr_t)json_string_value(json_array_get(array, i));
	return list;
}

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Makes the job's policy: its root, the patterns `rw` that may be written, and the protected paths `protect`. */
static int make_policy(const json_t *job, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	const char *root = json_string_value(json_object_get(job, "root"));
	const json_t *rw = json_object_get(job, "rw"), *protect = json_object_get(job, "protect");
	int r = cordon_policy_new(root, ret_policy, err);

	for (size_t i = 0; r == 0 && i < json_array_size(rw); i++)
		r = cordon_policy_grant(*ret_policy, json_string_value(json_array_get(rw, i)), CORDON_ACCESS_WRITE, err);
	for (size_t i = 0; r == 0 && i < json_array_size(protect); i++)
		r = cordon_policy_protect(*ret_policy, json_string_value(json_array_get(protect, i)), err);
	if (r == 0 && json_is_true(json_object_get(job, "vanish")))
		rmdir(root);
	return r;
}

static int add(struct driver *d, const json_t *job)
{
	const char *name = json_string_value(json_object_get(job, "name")),
		   *input = json_string_value(json_object_get(job, "input"));
	struct cordon_error err = { 0 };
	struct cordon_job_spec spec = { .name = name };
	struct cordon_policy *policy;
	size_t index, at = d->n++;

	if (at && json_is_true(json_object_get(job, "shares_policy")))
		policy = d->policies[d->last_policy];
	else if (make_policy(job, &d->policies[at], &err) < 0)
		return print_error(&err, name);
	else
		policy = d->policies[d->last_policy = at];
	d->argvs[at] = strings(json_object_get(job, "argv"));
	d->envs[at] = strings(json_object_get(job, "env"));
	spec.run = (struct cordon_run_spec){ .policy = policy,
					     .argv = d->argvs[at],
					     .env = d->envs[at],
					     .n_env = json_array_size(json_object_get(job, "env")),
					     .cwd = json_string_value(json_object_get(job, "root")),
					     .net = CORDON_NET_NONE,
					     .timeout_ms = number(job, "timeout_ms"),
					     .grace_ms = number(job, "grace_ms"),
					     .memory_bytes = number(job, "memory_bytes"),
					     .pids = number(job, "pids"),
					     .terminal = json_is_true(json_object_get(job, "terminal")),
					     .lens = json_is_true(json_object_get(job, "lens")) ? CORDON_LENS_ALWAYS
												: CORDON_LENS_AUTO };
	if (input)
		spec.input = open(input, O_RDONLY | O_CLOEXEC);
	if (cordon_crew_add(d->crew, &spec, &index, &err) < 0)
		return print_error(&err, name);
	return 0;
}

static void run_order(struct driver *d, const char *line)
{
	struct cordon_error err = { 0 };
	size_t index;

	if (cordon_streq(line, "leave"))
		d->leaves = true;
	else if (cordon_streq(line, "cancel-all"))
		cordon_crew_cancel(d->crew, CORDON_CREW_ALL);
	else if (cordon_streq(line, "kill-all"))
		cordon_crew_kill(d->crew, CORDON_CREW_ALL);
	else if (strncmp(line, "add ", 4) == 0)
		add(d, d->added[d->n_added++] = json_loads(line + 4, 0, NULL));
	else if (strncmp(line, "cancel ", 7) == 0 && cordon_crew_find(d->crew, line + 7, &index, &err) == 0)
		cordon_crew_cancel(d->crew, index);
	else
		print_error(&err, line);
}

/* Returns the next line, which the caller frees; NULL when there is none yet. */
static char *next_line(struct cordon_buf *in)
{
	char *end = in->len ? memchr(in->data, '\n', in->len) : NULL;
	size_t n = end ? (size_t)(end - in->data) : 0;
	char *line = end ? strndup(in->data, n) : NULL;

	if (!end)
		return NULL;
	memmove(in->data, end + 1, in->len - n - 1);
	in->len -= n + 1;
	return line;
}

/* Returns false at the end. */
static bool read_more(struct cordon_buf *in)
{
	char chunk[65536];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	return n > 0 && cordon_buf_add(in, chunk, (size_t)n) == 0;
}

static void loop(struct driver *d, struct cordon_buf *in)
{
	bool more = true;

	while (!d->leaves &&
	       (cordon_crew_busy(d->crew) || (more && json_is_true(json_object_get(d->crew_json, "stay"))))) {
		struct pollfd fds[] = { { .fd = cordon_crew_fd(d->crew), .events = POLLIN },
					{ .fd = more ? STDIN_FILENO : -1, .events = POLLIN } };

		poll(fds, 2, -1);
		if (fds[1].revents)
			more = read_more(in);
		for (char *line; (line = next_line(in)); free(line))
			run_order(d, line);
		cordon_crew_serve(d->crew);
	}
}

/* The most memory that this program had. The figure of getrusage() may be that of the process which executed it. */
static long peak_kb(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	while (status && kb < 0 && fgets(line, sizeof(line), status))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	if (status)
		fclose(status);
	return kb;
}

static int run(struct driver *d)
{
	autobuf struct cordon_buf in = CORDON_BUF((size_t)64 << 20);
	struct cordon_crew_options options = {
		.observer = { .data = d, .state = on_state, .event = on_event, .output = on_output }
	};
	struct cordon_error err = { 0 };
	const json_t *jobs;
	char *line;
	int caught = 0;

	while (!(line = next_line(&in)) && read_more(&in))
		;
	d->crew_json = line ? json_loads(line, 0, NULL) : NULL;
	free(line);
	options.label = json_string_value(json_object_get(d->crew_json, "label"));
	options.max_concurrent = (unsigned int)number(d->crew_json, "max");
	options.detached = json_is_true(json_object_get(d->crew_json, "detached"));
	timed = json_is_true(json_object_get(d->crew_json, "timed"));
	d->counts = json_is_true(json_object_get(d->crew_json, "counts"));
	jobs = json_object_get(d->crew_json, "jobs");
	if (cordon_crew_new(&options, &d->crew, &err) < 0)
		return print_error(&err, "");
	print(json_pack("{s:s}", "crew", cordon_crew_id(d->crew)));
	for (size_t i = 0; i < json_array_size(jobs); i++)
		add(d, json_array_get(jobs, i));
	if (json_is_true(json_object_get(d->crew_json, "wait"))) {
		if (cordon_crew_wait(d->crew, &caught, &err) < 0)
			return print_error(&err, "");
	} else {
		loop(d, &in);
	}
	for (size_t i = 0; i < cordon_crew_count(d->crew) && d->counts; i++)
		print(json_pack("{s:I, s:I}", "job", (json_int_t)i, "bytes", (json_int_t)d->bytes[i]));
	print(json_pack("{s:b, s:I, s:i}", "done", 1, "max_rss_kb", (json_int_t)peak_kb(), "signal", caught));
	cordon_crew_free(d->crew);
	for (size_t i = 0; i < d->n; i++) {
		cordon_policy_free(d->policies[i]);
		free(d->argvs[i]);
		free(d->envs[i]);
	}
	for (size_t i = 0; i < d->n_added; i++)
		json_decref(d->added[i]);
	json_decref(d->crew_json);
	return 0;
}

static json_t *info_json(const struct cordon_crew_info *info)
{
	return json_pack("{s:s, s:s, s:i, s:b, s:b}", "id", info->id, "label", info->label, "max",
			 (int)info->max_concurrent, "detached", info->detached, "owned", info->owned);
}

static int show(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	struct cordon_crew_info info;
	struct cordon_job *jobs;
	size_t n;
	json_t *list = json_array(), *object;
	int r = cordon_crew_read(home, id, &info, &jobs, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, job_json(&jobs[i]));
	object = info_json(&info);
	json_object_set_new(object, "jobs", list);
	print(object);
	free(jobs);
	return 0;
}

static int list(const struct cordon_home *home, struct cordon_error *err)
{
	struct cordon_crew_info *crews;
	size_t n;
	int r = cordon_crew_list(home, &crews, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		print(info_json(&crews[i]));
	if (r == 0)
		free(crews);
	return r;
}

static int show_log(const struct cordon_home *home, const char *id, const char *index, struct cordon_error *err)
{
	json_t *events;
	int64_t last, dropped;
	int r = cordon_crew_log(home, id, (size_t)strtoul(index, NULL, 10), -1, 0, &events, &last, &dropped, err);

	if (r == 0)
		print(json_pack("{s:o, s:I, s:I}", "events", events, "last", (json_int_t)last, "dropped",
				(json_int_t)dropped));
	return r;
}

static int collect(const struct cordon_home *home, const char *age, struct cordon_error *err)
{
	size_t removed, live;
	int r = cordon_crew_gc(home, strtoull(age, NULL, 10), &removed, &live, err);

	if (r == 0)
		print(json_pack("{s:I, s:I}", "removed", (json_int_t)removed, "live", (json_int_t)live));
	return r;
}

int main(int argc, char **argv)
{
	static struct driver driver;
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	const char *verb = argc > 1 ? argv[1] : "";
	int r = -EINVAL;

	mallopt(M_TOP_PAD, 1 << 20); /* as in cordon's own main() */
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_ARENA_MAX, 1);
	cordon_title_init(argc, argv);
	if (cordon_streq(verb, "run"))
		return run(&driver);
	if (cordon_home_open(&home, &err) < 0)
		return print_error(&err, verb);
	if (cordon_streq(verb, "list"))
		r = list(&home, &err);
	else if (cordon_streq(verb, "show") && argc == 3)
		r = show(&home, argv[2], &err);
	else if (cordon_streq(verb, "log") && argc == 4)
		r = show_log(&home, argv[2], argv[3], &err);
	else if (cordon_streq(verb, "cancel") && argc >= 3)
		r = cordon_crew_cancel_by_name(&home, argv[2], argc > 3 ? argv[3] : NULL, &err);
	else if (cordon_streq(verb, "gc") && argc == 3)
		r = collect(&home, argv[2], &err);
	return r < 0 ? print_error(&err, verb) : 0;
}
