/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what a run has committed: compares refs, has git pack and check the new objects in a sandbox, and asks the
 * policy about each path. Nothing of the host changes. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"
#include "view/git_taking.h"

#define START_MAX ((size_t)64 << 10)
#define INDEX_MAX ((uint64_t)4 << 30)
#define SMALL_MAX ((uint64_t)16 << 20)
#define LIST_MAX ((size_t)256 << 20) /* of the lists of commits and pairs */

/* ---- opening ---- */

static void taking_free(struct cordon_git_taking *t)
{
	if (!t)
		return;
	cordon_git_repo_done(&t->repo);
	cordon_git_refs_done(&t->start);
	cordon_git_refs_done(&t->run);
	cordon_git_refs_done(&t->host);
	cordon_buf_done(&t->head_start);
	cordon_buf_done(&t->head_run);
	cordon_buf_done(&t->staged);
	for (size_t i = 0; i < t->n_stashes; i++)
		free(t->stashes[i].message);
	cordon_closep(&t->git_fd);
	cordon_closep(&t->own_fd);
	cordon_closep(&t->start_fd);
	cordon_closep(&t->scratch_fd);
	if (t->take_fd >= 0) {
		cordon_closep(&t->take_fd);
		cordon_dirs_remove(t->record_fd, CORDON_GIT_TAKE, NULL);
	}
	cordon_closep(&t->record_fd);
	free(t);
}

struct cordon_git_take *cordon_git_take_free(struct cordon_git_take *take)
{
	if (!take)
		return NULL;
	for (size_t i = 0; i < take->n_refs; i++) {
		free(take->refs[i].name);
		free(take->refs[i].old);
		free(take->refs[i].new);
	}
	for (size_t i = 0; i < take->n_findings; i++) {
		free(take->findings[i].commit);
		free(take->findings[i].path);
		free(take->findings[i].why);
	}
	for (size_t i = 0; i < take->n_notes; i++)
		free(take->notes[i]);
	free(take->refs);
	free(take->findings);
	free(take->notes);
	taking_free(take->taking);
	free(take);
	return NULL;
}

static int open_dirs(struct cordon_git_taking *t, const char *record, struct cordon_error *err)
{
	static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	if (cordon_copy(t->record, sizeof(t->record), record, strlen(record)) < 0 ||
	    cordon_path_join(record, CORDON_GIT_TAKE, t->take, sizeof(t->take)) < 0 ||
	    cordon_path_join(t->take, CORDON_GIT_SCRATCH, t->scratch, sizeof(t->scratch)) < 0 ||
	    cordon_path_join(t->take, CORDON_GIT_SHIM, t->shim, sizeof(t->shim)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", record);
	t->record_fd = open(record, flags);
	if (t->record_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", record);
	t->start_fd = openat(t->record_fd, CORDON_GIT_START, flags);
	t->git_fd = openat(t->record_fd, CORDON_GIT_DIR, flags);
	return t->start_fd < 0 || t->git_fd < 0 ? (errno == ENOENT ? 1 : cordon_fail_errno(err, -errno, "%s", record))
						: 0;
}

/* Reads refs, HEAD and the worktree of the start. 1 when the run was killed before it began. *ret_origin says which
 * repository it was. */
static int read_start(struct cordon_git_taking *t, json_t **ret_origin, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_GIT_REFS_BYTES + START_MAX);
	json_auto_t *origin = NULL;
	const char *own, *head, *refs;
	int r = cordon_read_file(t->start_fd, CORDON_GIT_STARTED, O_NOFOLLOW, &text, err);

	if (r < 0)
		return r == -ENOENT ? 1 : r;
	head = text.data ? strchr(text.data, '\n') : NULL;
	refs = head ? strchr(head + 1, '\n') : NULL;
	origin = refs ? json_loadb(text.data, (size_t)(head - text.data), 0, NULL) : NULL;
	if (!origin || json_unpack(origin, "{s:s}", "own", &own) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG,
				   "%s/" CORDON_GIT_START "/" CORDON_GIT_STARTED " is damaged", t->record);
	t->head_start.max = START_MAX;
	if (cordon_copy(t->own, sizeof(t->own), own, strlen(own)) < 0 ||
	    cordon_buf_add(&t->head_start, head + 1, (size_t)(refs - head - 1)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "%s", t->record);
	r = cordon_git_refs_parse(refs + 1, text.len - (size_t)(refs + 1 - text.data), &t->start, err);
	if (r == 0 && ret_origin)
		*ret_origin = cordon_steal_ptr(&origin);
	return r;
}

/* The repository must be the one that the run started with. */
static int check_origin(struct cordon_git_taking *t, json_t *origin, struct cordon_error *err)
{
	const char *common;
	json_int_t dev, ino;
	struct stat st;

	if (json_unpack(origin, "{s:s, s:I, s:I}", "common", &common, "dev", &dev, "ino", &ino) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, "%s is damaged", t->record);
	if (cordon_streq(common, t->repo.common) && cordon_streq(t->own, t->repo.own) &&
	    fstat(t->repo.common_fd, &st) == 0 && (json_int_t)st.st_dev == dev && (json_int_t)st.st_ino == ino)
		return 0;
	return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
			   "the repository is not the one that the run started with");
}

/* Reads what the run left. What it damaged is refused, and is no error of ours. */
static int read_run(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	struct cordon_error fault = { 0 };
	int r = 0;

	t->own_fd = cordon_open_beneath(t->git_fd, t->own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->own_fd < 0)
		r = cordon_fail_errno(&fault, t->own_fd, "cannot open %s", t->own);
	if (r == 0)
		r = cordon_git_refs_read(t->git_fd, false, &t->run, &fault);
	if (r == 0)
		r = cordon_git_head_read(t->own_fd, &t->head_run, &fault);
	return r < 0 ? cordon_git_refuse(take, err, "the run's git directory can't be read: %s", fault.message) : 0;
}

/* ---- the scratch directory ---- */

static int write_text(int dir, const char *name, const struct cordon_buf *text, struct cordon_error *err)
{
	autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : cordon_write_all(fd, text->data ? text->data : "", text->len);

	return r < 0 ? cordon_fail_errno(err, r, "cannot write %s", name) : 0;
}

/* Copies a regular file, if there is one; true in *ret_there. */
static int copy_file(int from, const char *name, int to, const char *to_name, uint64_t max, bool *ret_there,
		     struct cordon_error *err)
{
	autofd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), out = -1;
	struct stat st;
	int r;

	if (ret_there)
		*ret_there = false;
	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	out = openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = out < 0 ? -errno : cordon_copy_bytes(in, out, &max);
	if (ret_there)
		*ret_there = r == 0;
	return r < 0 ? cordon_fail_errno(err, r, "cannot copy %s", name) : 0;
}

static int make_repository(struct cordon_git_taking *t, struct cordon_error *err)
{
	static const char *const dirs[] = { "repo", "repo/objects", "repo/objects/pack", "repo/objects/info",
					    "repo/refs" };
	autobuf struct cordon_buf config = { 0 }, head = CORDON_BUF(64);
	autofd int repo = -1;
	int r = 0;

	if (mkdirat(t->take_fd, CORDON_GIT_SCRATCH, 0700) < 0 ||
	    (t->scratch_fd = openat(t->take_fd, CORDON_GIT_SCRATCH, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", t->scratch);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(dirs); i++)
		if (mkdirat(t->scratch_fd, dirs[i], 0700) < 0)
			return cordon_fail_errno(err, -errno, "cannot make %s", dirs[i]);
	repo = openat(t->scratch_fd, "repo", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (repo < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", t->scratch);
	if ((r = cordon_git_repo_config(&t->repo, false, &config, err)) < 0)
		return r;
	if (cordon_buf_adds(&head, "ref: refs/heads/none\n") < 0)
		return cordon_fail_errno(err, -ENOMEM, "HEAD");
	if ((r = write_text(repo, "config", &config, err)) < 0 || (r = write_text(repo, "HEAD", &head, err)) < 0)
		return r;
	return copy_file(t->repo.common_fd, "shallow", repo, "shallow", SMALL_MAX, NULL, err);
}

static bool same_file(int a_dir, int b_dir, const char *name)
{
	autofd int a = openat(a_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	autofd int b = openat(b_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat x, y;
	char left[65536], right[65536];

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	if (fstat(a, &x) < 0 || fstat(b, &y) < 0 || !S_ISREG(x.st_mode) || x.st_size != y.st_size)
		return false;
	for (;;) {
		ssize_t n = read(a, left, sizeof(left)), m = read(b, right, sizeof(right));

		if (n != m || n < 0 || memcmp(left, right, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
	}
}

/* Ids that git begins at, those that the host has, and branches that moved. */
static int write_lists(struct cordon_git_taking *t, const struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf tips = CORDON_BUF(CORDON_GIT_REFS_BYTES), known = CORDON_BUF(CORDON_GIT_REFS_BYTES);
	autobuf struct cordon_buf moves = CORDON_BUF(CORDON_GIT_REFS_BYTES), heads = CORDON_BUF(256);
	int r = 0;

	for (size_t i = 0; r == 0 && i < take->n_refs; i++) {
		const struct cordon_git_ref *ref = &take->refs[i];

		r = cordon_buf_addf(&tips, "%s\n", ref->new);
		if (r == 0 && *ref->old && strncmp(ref->name, "refs/heads/", 11) == 0)
			r = cordon_buf_addf(&moves, "%s %s\n", ref->old, ref->new);
	}
	for (size_t i = 0; r == 0 && i < t->n_stashes; i++)
		r = cordon_buf_addf(&tips, "%s\n", t->stashes[i].id);
	if (r == 0 && *t->head_id)
		r = cordon_buf_addf(&tips, "%s\n", t->head_id);
	for (size_t i = 0; r == 0 && i < t->host.n; i++)
		r = cordon_buf_addf(&known, "^%s\n", t->host.items[i].id);
	if (r == 0 && *t->head_old_id)
		r = cordon_buf_addf(&known, "^%s\n", t->head_old_id);
	/* A HEAD without a branch that moved is like a branch that moved. */
	if (r == 0 && strncmp(t->head_run.data, "ref: ", 5) != 0 && strncmp(t->head_start.data, "ref: ", 5) != 0 &&
	    !cordon_streq(t->head_id, t->head_old_id))
		r = cordon_buf_addf(&moves, "%s %s\n", t->head_old_id, t->head_id);
	if (r == 0)
		r = cordon_buf_addf(&heads, "%s %s\n", *t->head_old_id ? t->head_old_id : "-",
				    *t->head_id ? t->head_id : "-");
	if (r < 0)
		return cordon_fail_errno(err, r, "lists of refs");
	if ((r = write_text(t->scratch_fd, "tips", &tips, err)) < 0 ||
	    (r = write_text(t->scratch_fd, "known", &known, err)) < 0 ||
	    (r = write_text(t->scratch_fd, "moves", &moves, err)) < 0)
		return r;
	return write_text(t->scratch_fd, "heads", &heads, err);
}

static int copy_indexes(struct cordon_git_taking *t, struct cordon_error *err)
{
	int r;

	if ((r = copy_file(t->own_fd, "index", t->scratch_fd, "index.run", INDEX_MAX, NULL, err)) < 0 ||
	    (r = copy_file(t->start_fd, "index", t->scratch_fd, "index.start", INDEX_MAX, NULL, err)) < 0)
		return r;
	return copy_file(t->repo.own_fd, "index", t->scratch_fd, "index.host", INDEX_MAX, NULL, err);
}

/* ---- the sandbox ---- */

/*
 * What git does in the sandbox. $HOST are the directories with the host's objects, and $RUN the one with the run's. The
 * file `stage` says what was done last, for messages.
 */
static const char script[] =
	"set -eu\n"
	"umask 077\n"
	"ulimit -d 1572864\n"
	"export GIT_DIR=/q/repo\n"
	"stage() { echo \"$*\" >stage; }\n"
	"read -r old new <heads\n"
	"staged() {\n"
	"	id=$2\n"
	"	[ \"$id\" != - ] || id=$(git hash-object -t tree --stdin </dev/null)\n"
	"	[ -e $1 ] || return 0\n"
	/* The list of differences must fit into memory beside the index. */
	"	(ulimit -f 131072; ulimit -d $((131072 + $(wc -c <$1) / 256))\n"
	"	GIT_INDEX_FILE=/q/$1 exec git diff-index --cached --raw -z --no-renames --no-abbrev $id)\n"
	"}\n"
	"stage list the files of the new commit\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST:$RUN\n"
	/* Comparing an index with a tree that repeats itself takes very long; listing it stops at the bound. */
	"[ $new = - ] || (ulimit -f 131072; exec git ls-tree -r --name-only $new >names)\n"
	"rm -f names\n"
	"stage read the index\n"
	"staged index.run $new >staged\n"
	"staged index.start $old >staged.start\n"
	"staged index.host $old >staged.host\n"
	"tr '\\0' '\\n' <staged | while read -r m n o b rest; do\n"
	"	case $m$b in :*[!0]*) [ ${#b} -lt 40 ] || echo $b;; esac\n"
	"done | grep -v '^0*$' >blobs || :\n"
	"stage collect the new objects\n"
	"cat tips known >revs\n"
	"cat revs blobs >revs.objects\n"
	"git rev-list --objects --stdin <revs.objects >list\n"
	/* What an object has when it is unpacked stands at its beginning, so nothing is unpacked to find out. An object that
	 * says less than it has is damaged, and git refuses it. */
	"stage measure the new objects\n"
	"n=$(wc -l <list)\n"
	"[ $n -le $OBJECTS_MAX ] || { echo \"there are $n new objects\" >&2; exit 1; }\n"
	"cut -d ' ' -f 1 <list | git cat-file --batch-check='%(objectsize)' >sizes\n"
	"total=0\n"
	"while read -r x; do total=$((total + x)); done <sizes\n"
	"[ $total -le $BYTES_MAX ] || { echo \"the new objects have $total bytes\" >&2; exit 1; }\n"
	"stage pack the new objects\n"
	"git pack-objects --quiet --stdout --delta-base-offset <list >in.pack\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST\n"
	"if [ $(wc -c <in.pack) -gt 44 ]; then\n"
	"	stage check the new objects\n"
	"	git index-pack --strict --stdin --max-input-size=$PACK_MAX <in.pack >/dev/null\n"
	"	rm in.pack\n"
	"	stage find all that the new commits need\n"
	"	git rev-list --objects --quiet --stdin <revs\n"
	"	: >packed\n"
	"fi\n"
	"stage compare the new commits\n"
	"git rev-list --topo-order --reverse --parents --stdin <revs >commits\n";

static int add_script(const struct cordon_git_taking *t, struct cordon_buf *text)
{
	int r = cordon_buf_adds(text, "HOST=/objects/0");

	for (size_t i = 1; r == 0 && i < t->repo.n_objects; i++)
		r = cordon_buf_addf(text, ":/objects/%zu", i);
	r = r < 0 ? r
		  : cordon_buf_addf(text, "\nRUN=/objects/%zu\nPACK_MAX=%ju\nOBJECTS_MAX=%ju\nBYTES_MAX=%ju\n",
				    t->repo.n_objects, (uintmax_t)CORDON_GIT_PACK_BYTES,
				    (uintmax_t)CORDON_GIT_OBJECTS_MAX, (uintmax_t)CORDON_GIT_OBJECT_BYTES);
	r = r < 0 ? r : cordon_buf_adds(text, script);
	return r < 0 ? r : cordon_buf_adds(text, cordon_git_pairs_script);
}

static int read_scratch(const struct cordon_git_taking *t, const char *name, size_t max, struct cordon_buf *ret,
			struct cordon_error *err)
{
	ret->max = max;
	return cordon_read_file(t->scratch_fd, name, O_NOFOLLOW, ret, err);
}

/* The last line of what git said; before "fsck error" stands the line that says which. */
static const char *telling_line(struct cordon_buf *said)
{
	for (;;) {
		char *line;

		while (said->len && said->data[said->len - 1] == '\n')
			said->data[--said->len] = '\0';
		if (!said->len)
			return "";
		line = strrchr(said->data, '\n');
		line = line ? line + 1 : said->data;
		if (line == said->data || strncmp(line, "fatal: fsck error", 17) != 0)
			return line;
		said->len = (size_t)(line - said->data);
		said->data[said->len] = '\0';
	}
}

static int run_script(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)64 << 10), said = { 0 }, stage = { 0 };
	const char *objects[CORDON_GIT_ALTERNATES_MAX + 1];
	CORDON_UNCLEARED char own[CORDON_PATH_MAX];
	struct cordon_git_sandbox ask = { .scratch = t->scratch, .objects = objects, .n_objects = t->repo.n_objects + 1 };
	autofd int found = cordon_open_beneath(t->git_fd, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *line;
	int status, r = add_script(t, &text);

	/* INVARIANT: a link would lead git to the objects of a repository that the run may not read. */
	if (found < 0)
		return cordon_git_refuse(take, err, "the run's git directory can't be read: objects: %s", strerror(-found));
	if (r < 0 || cordon_path_join(t->record, CORDON_GIT_DIR "/objects", own, sizeof(own)) < 0)
		return cordon_fail_errno(err, r < 0 ? r : -ENAMETOOLONG, "cannot take over");
	for (size_t i = 0; i < t->repo.n_objects; i++)
		objects[i] = t->repo.objects[i];
	objects[t->repo.n_objects] = own;
	ask.script = text.data;
	r = cordon_git_sandbox(&ask, &status, &said, err);
	if (r < 0 || status == 0)
		return r;
	line = telling_line(&said);
	if (read_scratch(t, "stage", 256, &stage, NULL) < 0 || !stage.len)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "git could not be run in a sandbox: %s", line);
	stage.data[strcspn(stage.data, "\n")] = '\0';
	return cordon_git_refuse(take, err, "git could not %s: %s", stage.data,
				 *line		? line
				 : status > 128 ? "it was killed, because a file became too large"
						: "it said nothing");
}

/* ---- judging ---- */

static int mark_forced(struct cordon_git_take *take, const struct cordon_buf *forced)
{
	for (size_t i = 0; i < take->n_refs; i++) {
		char pair[2 * CORDON_GIT_ID_SIZE + 2];

		snprintf(pair, sizeof(pair), "%s %s", take->refs[i].old, take->refs[i].new);
		take->refs[i].forced = forced->len && *take->refs[i].old && strstr(forced->data, pair);
	}
	return 0;
}

/* What is staged and differs from HEAD. A path that is not allowed stays as it is in the commit. */
static int judge_staged(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
			struct cordon_error *err)
{
	autobuf struct cordon_buf text = { 0 };
	int r = read_scratch(t, "staged", CORDON_GIT_DIFF_BYTES, &text, err);

	t->staged.max = 2 * CORDON_GIT_DIFF_BYTES;
	for (char *at = text.data, *end = text.data + text.len; r == 0 && at && at < end;) {
		/* A list with one pair and one change. */
		struct cordon_git_pair pair = { 0 };
		struct cordon_git_changes one CORDON_CLEANUP(cordon_git_changes_done) = { 0 };
		autobuf struct cordon_buf entry = CORDON_BUF((size_t)4 * CORDON_PATH_MAX + 1024);
		char *path = at + strlen(at) + 1;
		bool unmerged = path - at > 2 && path[-2] == 'U', allowed = false;

		if (path >= end)
			return cordon_fail(err, -EBADMSG, CORDON_KIND_INTERNAL, "cannot read what is staged");
		memset(pair.commit, '0', 40);
		if (!unmerged && strlen(path) < CORDON_PATH_MAX &&
		    ((r = cordon_buf_add(&entry, pair.commit, 41)) < 0 ||
		     (r = cordon_buf_add(&entry, at, strlen(at) + 1)) < 0 ||
		     (r = cordon_buf_add(&entry, path, strlen(path) + 1)) < 0))
			return cordon_fail_errno(err, r, "what is staged");
		if (entry.len && (r = cordon_git_changes_parse(entry.data, entry.len, &pair, 1, &one, err)) == 0 && one.n)
			r = cordon_git_judge(policy, "", &one.items[0], take, &allowed, err);
		if (r == 0 && allowed &&
		    ((r = cordon_buf_addf(&t->staged, "%o %.*s\t%s", one.items[0].new_mode,
					  (int)strcspn(one.items[0].id, " "), one.items[0].id, path)) < 0 ||
		     (r = cordon_buf_addc(&t->staged, '\0')) < 0))
			return cordon_fail_errno(err, r, "what is staged");
		at = path + strlen(path) + 1;
	}
	return r;
}

static size_t count_lines(const struct cordon_buf *text)
{
	size_t n = 0;

	for (const char *c = text->data; c && *c; c++)
		n += *c == '\n';
	return n;
}

static int judge_commits(const struct cordon_policy *policy, const struct cordon_git_taking *t,
			 struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf commits = { 0 }, list = { 0 }, diff = { 0 }, forced = { 0 };
	CORDON_CLEANUP(cordon_git_changes_done) struct cordon_git_changes changes = { 0 };
	autofree struct cordon_git_pair *pairs = NULL;
	size_t n = 0;
	int r;

	if ((r = read_scratch(t, "commits", LIST_MAX, &commits, err)) < 0 ||
	    (r = read_scratch(t, "pairs", LIST_MAX, &list, err)) < 0 ||
	    (r = read_scratch(t, "diff", CORDON_GIT_DIFF_BYTES, &diff, err)) < 0 ||
	    (r = read_scratch(t, "forced", CORDON_GIT_REFS_BYTES, &forced, err)) < 0)
		return r;
	take->n_commits = count_lines(&commits);
	mark_forced(take, &forced);
	if ((r = cordon_git_pairs_parse(list.data, list.len, &pairs, &n, err)) < 0 ||
	    (r = cordon_git_changes_parse(diff.data, diff.len, pairs, n, &changes, err)) < 0)
		return r;
	return cordon_git_judge_pairs(policy, pairs, n, &changes, take, err);
}

static int judge_all(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		     struct cordon_error *err)
{
	autobuf struct cordon_buf at_start = { 0 }, on_host = { 0 }, of_run = { 0 };
	size_t refused;
	struct stat st;
	int r = judge_commits(policy, t, take, err);

	if (r == 0 && take->n_refused)
		take->state = CORDON_GIT_REFUSED;
	refused = take->n_refused;
	if (r == 0)
		r = judge_staged(policy, t, take, err);
	if (r == 0 && take->n_refused > refused)
		r = cordon_git_note(take, err, "what is staged and not allowed is not taken over");
	if (r < 0 || (r = read_scratch(t, "staged.start", CORDON_GIT_DIFF_BYTES, &at_start, err)) < 0 ||
	    (r = read_scratch(t, "staged.host", CORDON_GIT_DIFF_BYTES, &on_host, err)) < 0 ||
	    (r = read_scratch(t, "staged", CORDON_GIT_DIFF_BYTES, &of_run, err)) < 0)
		return r;
	t->has_pack = fstatat(t->scratch_fd, "packed", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (take->state == CORDON_GIT_REFUSED)
		return 0;
	if (!take->n_refs && !t->n_stashes && cordon_streq(t->head_run.data, t->head_start.data) &&
	    of_run.len == at_start.len && (!of_run.len || memcmp(of_run.data, at_start.data, of_run.len) == 0))
		return 0;
	if (t->host_went_on)
		return cordon_git_refuse(take, err, "HEAD: the host changed to another branch while the run went on");
	if (at_start.len != on_host.len || (at_start.len && memcmp(at_start.data, on_host.data, at_start.len) != 0))
		return cordon_git_refuse(take, err, "the host staged changes while the run went on");
	take->state = CORDON_GIT_READY;
	return 0;
}

static int judge(const struct cordon_policy *policy, const char *record, struct cordon_git_take *take,
		 struct cordon_error *err)
{
	struct cordon_git_taking *t = calloc(1, sizeof(*t));
	json_auto_t *origin = NULL;
	bool moved;
	int r;

	if (!t)
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	take->taking = t;
	t->repo = (struct cordon_git_repo)CORDON_GIT_REPO_NONE;
	t->record_fd = t->start_fd = t->take_fd = t->scratch_fd = t->git_fd = t->own_fd = -1;
	r = open_dirs(t, record, err);
	if (r == 0)
		r = read_start(t, &origin, err);
	if (r != 0)
		return r > 0 ? 0 : r;
	r = cordon_git_repo_open(&policy->root, &t->repo, err);
	if (r > 0)
		r = cordon_fail(err, -ENOENT, CORDON_KIND_CONFLICT, "%s has no repository any more", policy->root.path);
	if (r == 0)
		r = check_origin(t, origin, err);
	if (r < 0)
		return r;
	if ((r = cordon_dirs_remove(t->record_fd, CORDON_GIT_TAKE, err)) < 0)
		return r;
	if (mkdirat(t->record_fd, CORDON_GIT_TAKE, 0700) < 0 ||
	    (t->take_fd = openat(t->record_fd, CORDON_GIT_TAKE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", t->take);
	if ((r = cordon_git_refs_read(t->repo.common_fd, true, &t->host, err)) < 0 ||
	    (r = read_run(t, take, err)) < 0 || take->state == CORDON_GIT_REFUSED)
		return r;
	if ((r = cordon_git_compare_refs(t, take, err)) < 0 || (r = cordon_git_compare_head(t, take, err)) < 0 ||
	    (r = cordon_git_find_stashes(t, take, err)) < 0 || take->state == CORDON_GIT_REFUSED)
		return r;
	t->index_differs = !same_file(t->own_fd, t->start_fd, "index");
	moved = take->n_refs || t->n_stashes || !cordon_streq(t->head_run.data, t->head_start.data);
	if (!moved && !t->index_differs)
		return 0;
	if ((r = make_repository(t, err)) < 0 || (r = write_lists(t, take, err)) < 0 ||
	    (r = copy_indexes(t, err)) < 0 || (r = run_script(t, take, err)) < 0 || take->state == CORDON_GIT_REFUSED)
		return r;
	return judge_all(policy, t, take, err);
}

int cordon_git_take_judge(const struct cordon_policy *policy, const char *record, struct cordon_git_take **ret_take,
			  struct cordon_error *err)
{
	struct cordon_git_take *take = calloc(1, sizeof(*take));
	int r = take ? judge(policy, record, take, err) : cordon_fail_errno(err, -ENOMEM, "taking over");

	if (r < 0) {
		cordon_git_take_free(take);
		return r;
	}
	*ret_take = take;
	return 0;
}

bool cordon_git_changed(const char *record)
{
	struct cordon_git_taking *t = calloc(1, sizeof(*t));
	struct cordon_git_take unused = { 0 };
	bool changed = false;

	if (!t)
		return true;
	t->repo = (struct cordon_git_repo)CORDON_GIT_REPO_NONE;
	t->record_fd = t->start_fd = t->take_fd = t->scratch_fd = t->git_fd = t->own_fd = -1;
	if (open_dirs(t, record, NULL) == 0 && read_start(t, NULL, NULL) == 0) {
		/* What can't be read was changed. */
		changed = read_run(t, &unused, NULL) < 0 || unused.state == CORDON_GIT_REFUSED ||
			  !cordon_streq(t->head_run.data, t->head_start.data);
		for (size_t i = 0; !changed && i < t->run.n; i++)
			changed = !cordon_git_same(cordon_git_refs_find(&t->start, t->run.items[i].name),
						   t->run.items[i].id);
	}
	for (size_t i = 0; i < unused.n_notes; i++)
		free(unused.notes[i]);
	free(unused.notes);
	taking_free(t);
	return changed;
}
