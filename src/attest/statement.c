/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the statement about a run: from what was seen while it went on, and from what it left. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "attest/attest.h"
#include "audit/chain.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/time.h"
#include "git/record.h"
#include "policy/handover.h"
#include "run/changes.h"
#include "run/result.h"
#include "state/kinds.h"
#include "view/delta.h"
#include "view/show.h"

#define POLICY_MAX ((size_t)1 << 20)
#define REFUSALS_MAX 100
#define HOSTS_MAX 1000
#define FILES_MAX 5000
#define BYTES_MAX ((uint64_t)1 << 30) /* of all files whose digests are made */
#define COMMITS_MAX 5000
#define ARGUMENTS_MAX 100

/* ---- before the run ---- */

static int add_line(json_t *lines, const char *text)
{
	json_t *line = cordon_audit_text(text);

	return line && json_array_append_new(lines, line) == 0 ? 0 : -ENOMEM;
}

/* The strings of the form in which policies go from one process of ours to another. */
static int add_rules(json_t *lines, const struct cordon_policy *policy, struct cordon_error *err)
{
	autobuf struct cordon_buf bytes = CORDON_BUF(POLICY_MAX);
	autofd int fd = memfd_create("policy", MFD_CLOEXEC);
	int r = fd < 0 ? cordon_fail_errno(err, -errno, "policy")
		       : cordon_handover_write(policy, !policy->no_editor_temps, fd, err);

	if (r < 0)
		return r;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : cordon_read_fd(fd, "policy", &bytes, NULL);
	for (size_t at = 0; r == 0 && at < bytes.len; at += strlen(bytes.data + at) + 1)
		r = add_line(lines, bytes.data + at);
	return r < 0 ? cordon_fail_errno(err, r, "the policy is too large for an attestation") : 0;
}

static int add_net(json_t *lines, const struct cordon_net_list *net)
{
	int r = add_line(lines, net->listed ? "net list" : "net");

	for (size_t i = 0; r == 0 && i < net->n; i++)
		r = add_line(lines, net->rules[i].text);
	return r;
}

int cordon_attest_begin(struct cordon_attest *attest, const struct cordon_policy *policy, struct cordon_error *err)
{
	int r;

	attest->policy = json_array();
	attest->refusals = json_array();
	attest->hosts = json_array();
	/* File times come from this clock. */
	clock_gettime(CLOCK_REALTIME_COARSE, &attest->since);
	if (!attest->policy || !attest->refusals || !attest->hosts)
		return cordon_fail_errno(err, -ENOMEM, "attestation");
	r = add_rules(attest->policy, policy, err);
	return r < 0					   ? r
	       : add_net(attest->policy, &policy->net) < 0 ? cordon_fail_errno(err, -ENOMEM, "attestation")
							   : 0;
}

void cordon_attest_done(struct cordon_attest *attest)
{
	json_decref(attest->policy);
	json_decref(attest->refusals);
	json_decref(attest->hosts);
	*attest = (struct cordon_attest){ 0 };
}

void cordon_attest_policy_digest(const json_t *lines, char ret_hex[static 65])
{
	autobuf struct cordon_buf text = CORDON_BUF(4 * POLICY_MAX);
	json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
		if (!json_is_string(line) || cordon_buf_adds(&text, json_string_value(line)) < 0 ||
		    cordon_buf_addc(&text, '\n') < 0)
			break;
	cordon_digest(text.len ? text.data : "", text.len, ret_hex);
}

/* ---- while it goes on ---- */

void cordon_attest_event(struct cordon_attest *attest, const struct cordon_event *event)
{
	if (event->kind == CORDON_EVENT_UNTOLD)
		attest->unlisted += event->count;
	if (event->kind == CORDON_EVENT_REACHED) {
		attest->more_hosts |= json_array_size(attest->hosts) >= HOSTS_MAX;
		if (!attest->more_hosts)
			json_array_append_new(attest->hosts, cordon_audit_text(event->path));
	}
	if (event->kind != CORDON_EVENT_VIOLATION)
		return;
	/* An event with a count repeats one that was reported before; the first attempt is counted already. */
	*(event->verdict == CORDON_WARN ? &attest->warned : &attest->refused) += event->count > 1 ? event->count - 1 : 1;
	if (event->verdict != CORDON_WARN && event->count <= 1 && json_array_size(attest->refusals) < REFUSALS_MAX)
		json_array_append_new(attest->refusals, json_pack("{s:s, s:o*, s:o*}", "op", event->op ? event->op : "",
								  "path", cordon_audit_text(event->path), "rule",
								  cordon_audit_text(event->rule)));
}

/* ---- what it left ---- */

/* Files as subjects of the statement. */
struct files {
	int root_fd;
	json_t *subjects; /* borrowed */
	json_t *deleted;  /* paths */
	size_t n, listed;
	uint64_t bytes;	 /* that may still be read */
	bool incomplete; /* there is more than is listed, or something could not be read */
};

/* The digest of a file, or of the target of a link. */
static int digest_of(int fd, const struct stat *st, uint64_t *bytes, char ret_hex[static CORDON_DIGEST_SIZE])
{
	char target[CORDON_PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode))
		return cordon_digest_fd(fd, bytes, ret_hex);
	n = readlinkat(fd, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	cordon_digest(target, (size_t)n, ret_hex);
	return 0;
}

static int add_file(struct files *files, const char *path, int fd, const struct stat *st)
{
	char hex[CORDON_DIGEST_SIZE];
	json_t *subject;

	files->n++;
	if (files->listed >= FILES_MAX || fd < 0 || (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) ||
	    digest_of(fd, st, &files->bytes, hex) < 0) {
		files->incomplete = true;
		return 0;
	}
	subject = json_pack("{s:o, s:{s:s}}", "name", cordon_audit_text(path), "digest", "sha256", hex);
	if (subject && S_ISLNK(st->st_mode))
		json_object_set_new(subject, "annotations", json_pack("{s:s}", "type", "link"));
	files->listed++;
	return subject && json_array_append_new(files->subjects, subject) == 0 ? 0 : -ENOMEM;
}

static int on_file(void *data, const char *path, bool created)
{
	struct files *files = data;
	autofd int look = cordon_open_beneath(files->root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat st = { 0 };

	(void)created;
	if (look >= 0 && fstat(look, &st) == 0 && S_ISREG(st.st_mode))
		fd = cordon_open_beneath(files->root_fd, path,
					 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return add_file(files, path, S_ISREG(st.st_mode) ? fd : look, &st);
}

static int list_root(struct files *files, const struct cordon_attest *attest, const struct cordon_policy *policy,
		     struct cordon_error *err)
{
	struct cordon_changes_listener listener = { .data = files, .file = on_file };
	struct cordon_changes changes = { 0 };
	int r;

	files->root_fd = policy->root.fd;
	r = cordon_changes_find(policy, &attest->since, &listener, &changes, err);
	files->incomplete |= changes.stopped || changes.n_unread || changes.n_removed_from;
	cordon_changes_done(&changes);
	return r;
}

static int list_view(struct files *files, const struct cordon_view *view, struct cordon_error *err)
{
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	int r = cordon_delta_find(view, &delta, err);

	for (size_t i = 0; r == 0 && i < delta.n; i++) {
		const struct cordon_delta_change *change = &delta.changes[i];
		autofd int fd = -1;
		struct stat st = { 0 };

		if (!cordon_delta_shown(change, NULL, 0))
			continue;
		if (change->kind == CORDON_DELTA_DELETED) {
			files->incomplete |= json_array_size(files->deleted) >= FILES_MAX;
			r = files->incomplete ? 0 : add_line(files->deleted, change->path);
			continue;
		}
		fd = cordon_delta_open(&delta, change, &st);
		r = add_file(files, change->path, fd, &st);
	}
	files->incomplete |= delta.n_left > 0;
	return r == -ENOMEM ? cordon_fail_errno(err, r, "attestation") : r;
}

/* The commits of a view wait for whoever applies it; what they are is known already. */
static int judge_view(struct cordon_view *view, struct cordon_git_take **ret_take, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	bool locked = view->lock_fd >= 0;
	int r = 0;

	if (!cordon_git_changed(view->path))
		return 0;
	if (!locked)
		r = cordon_view_lock(view, err);
	if (r == 0)
		r = cordon_view_policy(view, &policy, err);
	if (r == 0)
		r = cordon_git_take_judge(policy, view->path, ret_take, err);
	if (!locked)
		cordon_closep(&view->lock_fd);
	return r;
}

static json_t *git_json(const struct cordon_git_take *take, json_t *subjects, int *ret_code)
{
	json_t *git = take ? cordon_git_take_json(take) : NULL;
	const char *at = take && take->commits ? take->commits : "";
	size_t n = 0;

	for (; *at; at += strcspn(at, "\n") + 1)
		if (n++ < COMMITS_MAX &&
		    json_array_append_new(subjects, json_pack("{s:s, s:{s:s%}}", "name", "commit", "digest",
							      "gitCommit", at, (int)strcspn(at, "\n"))) < 0)
			*ret_code = -ENOMEM;
	if (git)
		json_object_set_new(git, "complete", json_boolean(n <= COMMITS_MAX));
	return git ? git : json_null();
}

static json_t *command_json(char *const *argv)
{
	json_t *command = json_array();

	for (size_t i = 0; argv[i] && i < ARGUMENTS_MAX; i++)
		json_array_append_new(command, cordon_audit_text(argv[i]));
	return command;
}

static json_t *run_json(const struct cordon_attest_end *end)
{
	const struct cordon_result *result = end->result;
	char started[CORDON_TIME_SIZE], ended[CORDON_TIME_SIZE];

	cordon_time_format((int64_t)result->started.tv_sec * 1000 + result->started.tv_nsec / 1000000, started);
	cordon_time_format((int64_t)result->ended.tv_sec * 1000 + result->ended.tv_nsec / 1000000, ended);
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:o, s:o, s:s*}", "id", result->run_id, "state",
			 cordon_state_name(result->state), "exitCode", result->exit_code, "signal", result->signal,
			 "startedAt", started, "endedAt", ended, "root", cordon_audit_text(end->spec->policy->root.path),
			 "command", command_json(end->spec->argv), "view", *result->view_id ? result->view_id : NULL);
}

static json_t *network_json(const struct cordon_attest *attest, const struct cordon_attest_end *end)
{
	bool listed = end->spec->policy->net.listed;
	const char *mode = end->spec->net == CORDON_NET_NONE ? "none" : listed ? "list" : "host";

	/* Without a list the run has the network of the host, and nobody sees whom it reaches. */
	return json_pack("{s:s, s:O, s:b}", "mode", mode, "reached", attest->hosts, "complete",
			 !attest->more_hosts && !cordon_streq(mode, "host"));
}

static int read_head(const struct cordon_home *home, json_t **ret_head, struct cordon_error *err)
{
	struct cordon_chain_view log = { 0 };
	autofd int dir = -1;
	int r = cordon_home_subdir(home, cordon_chain_dir(false), &dir, err);

	if (r == 0)
		r = cordon_chain_view(dir, UINT64_MAX, &log, err);
	if (r == 0 && log.state != CORDON_HEAD_GOOD)
		r = cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the audit log has no head: see 'cordon audit verify'");
	if (r == 0)
		*ret_head = json_pack("{s:I, s:s}", "seq", (json_int_t)log.head.seq, "hash", log.head.hash);
	cordon_chain_view_done(&log);
	return r == 0 && !*ret_head ? cordon_fail_errno(err, -ENOMEM, "attestation") : r;
}

static int make_statement(const struct cordon_home *home, const struct cordon_attest *attest,
			  const struct cordon_attest_end *end, const struct cordon_attest_key *key,
			  json_t **ret_statement, struct cordon_error *err)
{
	json_auto_t *subjects = json_array(), *deleted = json_array(), *head = NULL, *git = NULL;
	struct files files = { .subjects = subjects, .deleted = deleted, .bytes = BYTES_MAX };
	struct cordon_git_take *waiting = NULL;
	char hex[CORDON_DIGEST_SIZE];
	int r;

	cordon_attest_policy_digest(attest->policy, hex);
	json_array_append_new(subjects, json_pack("{s:s++, s:{s:s}}", "name", "cordon:", end->result->run_id, ":policy",
						  "digest", "sha256", hex));
	r = end->view ? judge_view(end->view, &waiting, err) : 0;
	if (r == 0) {
		git = git_json(end->view ? waiting : end->take, subjects, &r);
		r = r < 0 ? cordon_fail_errno(err, r, "attestation") : 0;
	}
	cordon_git_take_free(waiting);
	if (r == 0 && end->view)
		r = list_view(&files, end->view, err);
	else if (r == 0 && !end->cow)
		r = list_root(&files, attest, end->spec->policy, err);
	if (r == 0)
		r = read_head(home, &head, err);
	if (r < 0)
		return r;
	*ret_statement = json_pack(
		"{s:s, s:O, s:s, s:{s:i, s:{s:s, s:s}, s:o, s:{s:{s:s}, s:O}, s:o, s:{s:I, s:I, s:I, s:O}, s:o, "
		"s:{s:I, s:O, s:b}, s:O, s:O}}",
		"_type", CORDON_ATTEST_TYPE, "subject", subjects, "predicateType", CORDON_ATTEST_PREDICATE, "predicate",
		"version", 1, "cordon", "version", cordon_version(), "key", key->shown, "run", run_json(end), "policy",
		"digest", "sha256", hex, "lines", attest->policy, "layers", cordon_result_enforcement(end->result),
		"refusals", "count", (json_int_t)(attest->refused + attest->unlisted), "warned",
		(json_int_t)attest->warned, "unlisted", (json_int_t)attest->unlisted, "listed", attest->refusals,
		"network", network_json(attest, end), "files", "count", (json_int_t)files.n, "deleted", deleted,
		"complete", !files.incomplete, "git", git, "audit", head);
	return *ret_statement ? 0 : cordon_fail_errno(err, -ENOMEM, "attestation");
}

int cordon_attest_make(const struct cordon_home *home, const struct cordon_attest *attest,
		       const struct cordon_attest_end *end, const struct cordon_attest_key *key,
		       struct cordon_buf *ret_text, struct cordon_error *err)
{
	json_auto_t *statement = NULL;
	autofree char *text = NULL;
	int r = make_statement(home, attest, end, key, &statement, err);

	if (r < 0)
		return r;
	text = json_dumps(statement, JSON_COMPACT);
	ret_text->max = CORDON_ATTEST_MAX;
	if (!text || (r = cordon_buf_adds(ret_text, text)) < 0 || (r = cordon_buf_addc(ret_text, '\n')) < 0)
		return cordon_fail_errno(err, text ? r : -ENOMEM, "the attestation is too large");
	return cordon_attest_sign(key, ret_text->data, ret_text->len, ret_text, err);
}

/* ---- keeping it ---- */

/* For commits that wait: whoever takes them over finds it there. */
static int keep_for_commits(const struct cordon_home *home, const char *record, const struct cordon_buf *text,
			    struct cordon_error *err)
{
	autofd int records = -1, dir = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_COMMITS, &records, err);

	if (r < 0)
		return r;
	dir = openat(records, record, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? 0 : cordon_write_file(dir, CORDON_GIT_ATTESTATION, 0600, text->data, text->len, err);
}

int cordon_attest_keep(const struct cordon_home *home, const struct cordon_attest_end *end, const char *record,
		       const struct cordon_buf *text, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	bool taken = end->take && end->take->state == CORDON_GIT_TAKEN && end->take->commits;
	autofd int dir = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_ATTESTATIONS, &dir, err);

	if (r == 0)
		r = cordon_write_file(dir, end->result->run_id, 0600, text->data, text->len, err);
	if (r == 0 && cordon_concat(ret_path, CORDON_PATH_MAX, home->path, "/state/",
				    cordon_state_kinds[CORDON_STATE_KIND_ATTESTATIONS].dir, "/", end->result->run_id,
				    (char *)NULL) < 0)
		r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", home->path);
	if (r == 0 && end->view)
		r = cordon_write_file(end->view->dir_fd, CORDON_GIT_ATTESTATION, 0600, text->data, text->len, err);
	if (r == 0 && taken)
		r = cordon_git_attach(&end->spec->policy->root, end->take->commits, text->data, text->len, err);
	else if (r == 0 && record && *record)
		r = keep_for_commits(home, record, text, err);
	return r;
}
