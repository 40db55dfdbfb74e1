/* SPDX-License-Identifier: Apache-2.0 */
/* The directory in which git checks in a sandbox what a run has committed: what is put into it, and what git does there. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "git/taking.h"

#define INDEX_MAX ((uint64_t)4 << 30)
#define SMALL_MAX ((uint64_t)16 << 20)

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

/* Ids that git begins at, what must be commits of them (a tag may lead to one), those that the host has, and branches that
 * moved. */
static int write_lists(struct cordon_git_taking *t, const struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf tips = CORDON_BUF(CORDON_GIT_REFS_BYTES), known = CORDON_BUF(CORDON_GIT_REFS_BYTES);
	autobuf struct cordon_buf moves = CORDON_BUF(CORDON_GIT_REFS_BYTES), heads = CORDON_BUF(256);
	autobuf struct cordon_buf types = CORDON_BUF(CORDON_GIT_REFS_BYTES);
	int r = 0;

	for (size_t i = 0; r == 0 && i < take->n_refs; i++) {
		const struct cordon_git_ref *ref = &take->refs[i];

		r = cordon_buf_addf(&tips, "%s\n", ref->new);
		if (r == 0)
			r = cordon_buf_addf(&types, "%s%s\n", ref->new,
					    strncmp(ref->name, "refs/tags/", 10) == 0 ? "^{commit}" : "");
		if (r == 0 && *ref->old && strncmp(ref->name, "refs/heads/", 11) == 0)
			r = cordon_buf_addf(&moves, "%s %s\n", ref->old, ref->new);
	}
	for (size_t i = 0; r == 0 && i < t->n_stashes; i++)
		if ((r = cordon_buf_addf(&tips, "%s\n", t->stashes[i].id)) == 0)
			r = cordon_buf_addf(&types, "%s\n", t->stashes[i].id);
	if (r == 0 && *t->head_id && (r = cordon_buf_addf(&tips, "%s\n", t->head_id)) == 0)
		r = cordon_buf_addf(&types, "%s\n", t->head_id);
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
	    (r = write_text(t->scratch_fd, "types", &types, err)) < 0 ||
	    (r = write_text(t->scratch_fd, "known", &known, err)) < 0 ||
	    (r = write_text(t->scratch_fd, "moves", &moves, err)) < 0)
		return r;
	return write_text(t->scratch_fd, "heads", &heads, err);
}

static int copy_indexes(struct cordon_git_taking *t, struct cordon_error *err)
{
	int r;

	if ((r = copy_file(t->own_fd, "index", t->scratch_fd, "index.run", INDEX_MAX, NULL, err)) < 0 ||
	    (r = copy_file(t->index_fd, "index", t->scratch_fd, "index.start", INDEX_MAX, NULL, err)) < 0)
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
	"empty=$(git hash-object -t tree --stdin </dev/null)\n"
	"[ $old != - ] || old=$empty\n"
	"[ $new != - ] || new=$empty\n"
	"echo $old $new >trees\n"
	"staged() {\n"
	"	[ -e $1 ] || return 0\n"
	/* The list of differences must fit into memory beside the index. */
	"	(ulimit -f 131072; ulimit -d $((131072 + $(wc -c <$1) / 256))\n"
	"	GIT_INDEX_FILE=/q/$1 exec git diff-index --cached --raw -z --no-renames --no-abbrev --ita-invisible-in-index $2)\n"
	"}\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST\n"
	/* A ref of the host's may be broken, which is no reason to take nothing over. */
	"stage look at the host\\'s refs\n"
	"sed 's/^^//' <known | git cat-file --batch-check='%(objectname)' | grep -v ' missing$' | sed 's/^/^/' >known.there\n"
	"mv known.there known\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST:$RUN\n"
	"stage find the commits of all refs\n"
	"git cat-file --batch-check='%(objecttype)' <types | while read -r x; do\n"
	"	[ \"$x\" = commit ] || { echo 'one leads to no commit' >&2; exit 1; }\n"
	"done\n"
	"stage list the files of the new commit\n"
	/* Comparing an index with a tree that repeats itself takes very long; listing it stops at the bound. */
	"(ulimit -f 131072; exec git ls-tree -r --name-only $new >names)\n"
	"rm -f names\n"
	"(ulimit -f 131072; ulimit -d 196608; exec git diff-tree -r --raw -z --no-renames --no-abbrev $old $new >moved)\n"
	"stage read the index\n"
	"staged index.run $new >staged\n"
	"staged index.start $old >staged.start\n"
	"staged index.host $old >staged.host\n"
	/* Each path becomes one line, whatever it has in it. */
	"tr '\\0\\n' '\\n\\001' <staged | while read -r m n o b rest && IFS= read -r path; do\n"
	"	case $n in 000000|160000) ;; *) echo $b;; esac\n"
	"done >blobs\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST\n"
	"git cat-file --batch-check='%(objectname)' <blobs | sed -n 's/ missing$//p' >blobs.new\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST:$RUN\n"
	"stage collect the new objects\n"
	"cat tips known >revs\n"
	"cat revs blobs.new >revs.objects\n"
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
	"if [ $n -gt 0 ]; then\n"
	"	stage pack the new objects\n"
	"	git pack-objects --quiet --stdout --delta-base-offset <list >in.pack\n"
	"	export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST\n"
	"	stage check the new objects\n"
	"	git index-pack --strict --stdin --max-input-size=$PACK_MAX <in.pack >/dev/null\n"
	"	rm in.pack\n"
	"	: >packed\n"
	"fi\n"
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$HOST\n"
	"stage find all that the new commits need\n"
	"[ $n = 0 ] || git rev-list --objects --quiet --stdin <revs\n"
	"stage find all that is staged\n"
	"git cat-file --batch-check='%(objecttype)' <blobs | while read -r x; do\n"
	"	[ \"$x\" = blob ] || { echo 'a file is missing' >&2; exit 1; }\n"
	"done\n"
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

int cordon_git_scratch_read(const struct cordon_git_taking *t, const char *name, size_t max, struct cordon_buf *ret,
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

int cordon_git_scratch_check(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
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
		return cordon_git_refuse(take, err, "the run's git directory can't be read: objects: %s",
					 strerror(-found));
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
	if (cordon_git_scratch_read(t, "stage", 256, &stage, NULL) < 0 || !stage.len)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "git could not be run in a sandbox: %s", line);
	stage.data[strcspn(stage.data, "\n")] = '\0';
	return cordon_git_refuse(take, err, "git could not %s: %s", stage.data,
				 *line		? line
				 : status > 128 ? "it was killed, because a file became too large"
						: "it said nothing");
}

int cordon_git_scratch_make(struct cordon_git_taking *t, const struct cordon_git_take *take, struct cordon_error *err)
{
	int r;

	if ((r = make_repository(t, err)) < 0 || (r = write_lists(t, take, err)) < 0)
		return r;
	return copy_indexes(t, err);
}
