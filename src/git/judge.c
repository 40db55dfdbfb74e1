/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the paths that commits change: reads what git printed about pairs of commits, and asks the policy. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/text.h"
#include "base/upper.h"
#include "git/internal.h"
#include "git/taking.h"
#include "git/twin.h"

#define MODE_TYPE 0170000u
#define MODE_LINK 0120000u
#define MODE_FILE 0100000u
#define MODE_GITLINK 0160000u
#define WHY_MAX ((size_t)2048)

/*
 * A commit is compared with each parent. Of a merge, a path counts as unchanged where the merge only took what the other
 * side has and this side has not changed it since they forked: this is what a merge without conflicts does, and the
 * other side's commits are judged by themselves, or are the host's. For a branch that was moved to a commit that does not
 * descend from the old one (rebase, reset) the old and the new commit are compared in the same way; the other side is
 * the commit of the host's that the new ones begin at.
 *
 *     J COMMIT [PARENT]      judged
 *     1, 2 COMMIT PARENT     of a merge
 *     h COMMIT PARENT        the other side of a branch that was moved
 *     a, b PARENT BASE       the merge bases of side 1 and of side 2
 */
const char cordon_git_pairs_script[] =
	"while read -r c p q more; do\n"
	"	if [ \"$more\" ]; then\n"
	"		for x in $p $q $more; do echo \"J $c $x\"; done\n"
	"	elif [ \"$q\" ]; then\n"
	"		echo \"1 $c $p\"; echo \"2 $c $q\"\n"
	"		bases=$(git merge-base --all $p $q) || [ $? = 1 ]\n"
	"		for x in $bases; do echo \"a $p $x\"; done\n"
	"		for x in $bases; do echo \"b $q $x\"; done\n"
	"	else\n"
	"		echo \"J $c $p\"\n"
	"	fi\n"
	"done <commits >pairs\n"
	": >forced\n"
	"while read -r old new; do\n"
	"	s=0; git merge-base --is-ancestor $old $new || s=$?\n"
	"	[ $s != 0 ] || continue\n"
	"	[ $s = 1 ] || exit 1\n"
	"	echo \"$old $new\" >>forced\n"
	"	{ echo $new; cat known; } >revs.one\n"
	"	git rev-list --topo-order --boundary --stdin <revs.one >bound\n"
	"	k=$new\n"
	"	while read -r x; do k=; case $x in -*) k=${x#-}; break;; esac; done <bound\n"
	"	echo \"1 $new $old\"\n"
	"	[ \"$k\" ] || continue\n"
	"	echo \"h $new $k\"\n"
	"	bases=$(git merge-base --all $old $k) || [ $? = 1 ]\n"
	"	for x in $bases; do echo \"a $old $x\"; done\n"
	"done <moves >>pairs\n"
	"while read -r t c p; do echo \"$c${p:+ $p}\"; done <pairs >pairs.plain\n"
	"(ulimit -f 131072; ulimit -d 196608; exec git diff-tree --stdin -r --root --raw -z --no-renames --no-abbrev --always "
	"<pairs.plain >diff)\n";

/* ---- names ---- */

/* What is wrong with a path that stands in a commit; NULL when nothing is. */
static const char *fault_of(const char *path)
{
	if (strlen(path) >= CORDON_PATH_MAX)
		return "the path is too long";
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return "a commit must not have such a path";
		if ((n == 4 && memcmp(at, ".git", 4) == 0) || cordon_git_is_twin(at, n))
			return "git, or a file system that folds names, could take it for the git directory";
		at += n;
		if (!*at)
			return NULL;
	}
}

/* ---- findings ---- */

int cordon_git_note(struct cordon_git_take *take, struct cordon_error *err, const char *fmt, ...)
{
	autofree char *text = NULL;
	autobuf struct cordon_buf escaped = CORDON_BUF((size_t)4 * CORDON_PATH_MAX);
	char **notes;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	}
	if (cordon_text_escape_lines(&escaped, text, (size_t)n) < 0 ||
	    !(notes = reallocarray(take->notes, take->n_notes + 1, sizeof(*notes))))
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	take->notes = notes;
	take->notes[take->n_notes] = cordon_buf_steal(&escaped);
	take->n_notes += take->notes[take->n_notes] != NULL;
	return 0;
}

static bool is_known(const struct cordon_git_take *take, const char *path, bool refused)
{
	for (size_t i = 0; i < take->n_findings; i++)
		if (take->findings[i].refused == refused && cordon_streq(take->findings[i].path, path))
			return true;
	return false;
}

/* Adds a finding, each path once. Refusals come first: they push warnings out of a full list. */
static int add_finding(struct cordon_git_take *take, const char *commit, const char *path, const char *why,
		       bool refused, struct cordon_error *err)
{
	autobuf struct cordon_buf shown = CORDON_BUF((size_t)4 * CORDON_PATH_MAX);
	struct cordon_git_finding finding = { .refused = refused };
	struct cordon_git_finding *list = take->findings;
	size_t at = 0;

	if (cordon_text_escape(&shown, path, strnlen(path, CORDON_PATH_MAX)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	if (is_known(take, shown.data, refused))
		return 0;
	if (refused)
		take->n_refused++;
	else
		take->n_warned++;
	while (refused && at < take->n_findings && list[at].refused)
		at++;
	if (!refused)
		at = take->n_findings;
	if (at == CORDON_GIT_FINDINGS_MAX)
		return 0;
	if (!list && !(list = take->findings = calloc(CORDON_GIT_FINDINGS_MAX, sizeof(*list))))
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	finding.commit = strdup(commit);
	finding.path = strdup(shown.data);
	finding.why = strdup(why);
	if (!finding.commit || !finding.path || !finding.why) {
		free(finding.commit);
		free(finding.path);
		free(finding.why);
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	}
	if (take->n_findings == CORDON_GIT_FINDINGS_MAX) {
		take->n_findings--;
		free(list[take->n_findings].commit);
		free(list[take->n_findings].path);
		free(list[take->n_findings].why);
	}
	memmove(&list[at + 1], &list[at], (take->n_findings - at) * sizeof(*list));
	list[at] = finding;
	take->n_findings++;
	return 0;
}

/* ---- one path ---- */

static int judge_by_policy(const struct cordon_policy *policy, const char *commit, const char *path, const char *asked,
			   struct cordon_git_take *take, bool *ret_allowed, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(WHY_MAX), remedy = CORDON_BUF(WHY_MAX);
	CORDON_UNCLEARED struct cordon_decision decision;

	cordon_policy_decide(policy, asked, CORDON_OP_WRITE, &decision);
	if (decision.verdict == CORDON_ALLOW)
		return 0;
	*ret_allowed = decision.verdict != CORDON_DENY;
	if (cordon_policy_explain(policy, &decision, CORDON_OP_WRITE, &text, &remedy) < 0)
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	return add_finding(take, commit, path, text.data, decision.verdict == CORDON_DENY, err);
}

/* INVARIANT: a link in the place of a directory leads what the host reads below it to somewhere else. */
static int judge_place(const struct cordon_policy *policy, const char *commit, const struct cordon_git_change *change,
		       struct cordon_git_take *take, bool *ret_allowed, struct cordon_error *err)
{
	autobuf struct cordon_buf why = CORDON_BUF(WHY_MAX + (size_t)4 * CORDON_PATH_MAX);
	const char *below = change->new_mode ? cordon_policy_held_below(policy, change->path) : NULL;

	if (!below)
		return 0;
	*ret_allowed = false;
	if (cordon_buf_adds(&why, "it takes the place of a directory, and below it ") < 0 ||
	    cordon_text_escape(&why, below, strlen(below)) < 0 || cordon_buf_adds(&why, " is protected") < 0)
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	return add_finding(take, commit, change->path, why.data, true, err);
}

/* Attributes choose filters in each directory, and count as those of the root do. */
static const char *stands_for(const char *path)
{
	const char *name = cordon_path_base(path);

	return strcasecmp(name, ".gitattributes") == 0 ? ".gitattributes"
	       : strcasecmp(path, ".gitmodules") == 0  ? ".gitmodules"
						       : path;
}

/*
 * Whether the host has the file of a deletion, and a view could not show it. Overlayfs takes an empty file with this attribute
 * for a whiteout, in the host's tree, too (Linux 6.7 and later), and nothing switches that off. A commit that was made
 * without the file would delete it, and nobody meant that.
 */
static bool was_hidden(const struct cordon_policy *policy, const char *path)
{
	autofd int fd = cordon_open_beneath(policy->root.fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char name[CORDON_FD_PATH_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size)
		return false;
	cordon_fd_path(fd, name);
	return getxattr(name, CORDON_OVERLAY_ATTRIBUTE("whiteout"), NULL, 0) >= 0;
}

/* Judges one changed path; *ret_allowed is false when it is refused. */
static int git_judge(const struct cordon_policy *policy, const char *commit, const struct cordon_git_change *change,
		     struct cordon_git_take *take, bool *ret_allowed, struct cordon_error *err)
{
	unsigned int old_type = change->old_mode & MODE_TYPE, new_type = change->new_mode & MODE_TYPE;
	const char *fault = fault_of(change->path), *asked;
	int r;

	*ret_allowed = true;
	if (!fault && (old_type == MODE_GITLINK || new_type == MODE_GITLINK))
		fault = "a submodule (gitlink) is never taken over";
	if (!fault && new_type && new_type != MODE_FILE && new_type != MODE_LINK)
		fault = "it is neither a file nor a link";
	if (!fault && old_type == MODE_FILE && !new_type && was_hidden(policy, change->path))
		fault = "a view can't show it because of its attribute " CORDON_OVERLAY_ATTRIBUTE(
			"whiteout") ", so nobody decided to delete it; remove the attribute with setfattr -x, and commit again";
	if (fault) {
		*ret_allowed = false;
		return add_finding(take, commit, change->path, fault, true, err);
	}
	r = judge_by_policy(policy, commit, change->path, change->path, take, ret_allowed, err);
	if (r == 0 && *ret_allowed)
		r = judge_place(policy, commit, change, take, ret_allowed, err);
	asked = stands_for(change->path);
	if (r < 0 || !*ret_allowed || asked == change->path || cordon_streq(asked, change->path))
		return r;
	return judge_by_policy(policy, commit, change->path, asked, take, ret_allowed, err);
}

/* ---- pairs ---- */

static int read_pair(const char *line, size_t n, struct cordon_git_pair *ret)
{
	const char *commit = line + 2, *end = line + n, *parent;
	size_t len = n > 2 ? strcspn(commit, " \n") : 0;

	if (n < 3 || line[1] != ' ' || !cordon_git_id_valid(commit, len))
		return -EBADMSG;
	memcpy(ret->commit, commit, len);
	parent = commit + len + (commit[len] == ' ');
	len = parent < end ? (size_t)(end - parent) : 0;
	if (len && !cordon_git_id_valid(parent, len))
		return -EBADMSG;
	memcpy(ret->parent, parent, len);
	return 0;
}

int cordon_git_pairs_parse(const char *text, size_t n, struct cordon_git_pair **ret_pairs, size_t *ret_n,
			   struct cordon_error *err)
{
	struct cordon_git_pair *pairs = NULL;
	size_t n_pairs = 0, space = 0, first = SIZE_MAX, second = SIZE_MAX;
	int r = 0;

	for (size_t at = 0; r == 0 && at < n;) {
		size_t len = strcspn(text + at, "\n");
		struct cordon_git_pair *pair;

		if (n_pairs == space) {
			space = space ? 2 * space : 64;
			pair = reallocarray(pairs, space, sizeof(*pairs));
			if (!pair) {
				r = -ENOMEM;
				break;
			}
			pairs = pair;
		}
		pair = &pairs[n_pairs];
		*pair = (struct cordon_git_pair){ .other = SIZE_MAX };
		r = read_pair(text + at, len, pair);
		switch (text[at]) {
		case '1':
			pair->use = CORDON_GIT_CLEAN;
			first = n_pairs;
			second = SIZE_MAX;
			break;
		case '2':
		case 'h':
			pair->use = text[at] == '2' ? CORDON_GIT_CLEAN : CORDON_GIT_HELP;
			second = n_pairs;
			if (first == SIZE_MAX)
				r = -EBADMSG;
			else
				pairs[first].other = second;
			pair->other = first;
			break;
		case 'a':
		case 'b': {
			size_t side = text[at] == 'a' ? first : second;

			pair->use = CORDON_GIT_HELP;
			if (side == SIZE_MAX)
				r = -EBADMSG;
			else if (!pairs[side].n_bases++)
				pairs[side].first_base = n_pairs;
			break;
		}
		case 'J':
			break;
		default:
			r = -EBADMSG;
		}
		n_pairs++;
		at += len + 1;
	}
	if (r < 0) {
		free(pairs);
		return cordon_fail_errno(err, r, "cannot read the list of commits");
	}
	*ret_pairs = pairs;
	*ret_n = n_pairs;
	return 0;
}

void cordon_git_changes_done(struct cordon_git_changes *changes)
{
	free(changes->items);
	*changes = (struct cordon_git_changes){ 0 };
}

/* ":100644 100755 OLD NEW M" */
static int read_change(char *text, struct cordon_git_change *ret)
{
	char *end = text + strlen(text), *old = text + 15, *new;

	if (end - text < 15 + 2 * 41 || text[7] != ' ' || text[14] != ' ')
		return -EBADMSG;
	for (size_t i = 1; i < 14; i++) {
		unsigned int *mode = i < 7 ? &ret->old_mode : &ret->new_mode;

		if (i == 7)
			continue;
		if (text[i] < '0' || text[i] > '7')
			return -EBADMSG;
		*mode = *mode * 8 + (unsigned int)(text[i] - '0');
	}
	new = strchr(old, ' ');
	if (!new || !cordon_git_id_valid(old, (size_t)(new - old)) ||
	    !cordon_git_id_valid(new + 1, strcspn(new + 1, " ")))
		return -EBADMSG;
	ret->id = new + 1;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct cordon_git_change *)a)->path, ((const struct cordon_git_change *)b)->path);
}

int cordon_git_changes_parse(char *text, size_t n, struct cordon_git_pair *pairs, size_t n_pairs,
			     struct cordon_git_changes *ret_changes, struct cordon_error *err)
{
	struct cordon_git_pair *pair = NULL;
	size_t next = 0;
	int r = 0;

	for (char *at = text, *end = text + n; r == 0 && at < end;) {
		char *path = at + strlen(at) + 1;

		if (*at != ':') {
			if (next == n_pairs || !cordon_streq(at, pairs[next].commit)) {
				r = -EBADMSG;
				break;
			}
			pair = &pairs[next++];
			pair->first = ret_changes->n;
			at = path;
			continue;
		}
		if (!pair || path >= end) {
			r = -EBADMSG;
			break;
		}
		if (ret_changes->n == ret_changes->space) {
			size_t space = ret_changes->space ? 2 * ret_changes->space : 256;
			struct cordon_git_change *items = reallocarray(ret_changes->items, space, sizeof(*items));

			if (!items) {
				r = -ENOMEM;
				break;
			}
			ret_changes->items = items;
			ret_changes->space = space;
		}
		ret_changes->items[ret_changes->n] = (struct cordon_git_change){ .path = path };
		r = read_change(at, &ret_changes->items[ret_changes->n++]);
		pair->n++;
		at = path + strlen(path) + 1;
	}
	/* Each pair is named, also one without differences; a pair that is missing was not compared. */
	if (r == 0 && next != n_pairs)
		r = -EBADMSG;
	for (size_t i = 0; r == 0 && i < n_pairs; i++)
		if (pairs[i].n > 1)
			qsort(&ret_changes->items[pairs[i].first], pairs[i].n, sizeof(*ret_changes->items), by_path);
	return r < 0 ? cordon_fail_errno(err, r, "cannot read what git says about the commits") : 0;
}

static bool has_path(const struct cordon_git_pair *pair, const struct cordon_git_changes *changes, const char *path)
{
	struct cordon_git_change key = { .path = path };

	return pair->n && bsearch(&key, &changes->items[pair->first], pair->n, sizeof(key), by_path);
}

/* Whether a merge without conflicts would have changed this path in this way: it has it from the other side, and this
 * side has not changed it since any of the places where they forked. */
static bool is_clean(const struct cordon_git_pair *pairs, const struct cordon_git_pair *pair,
		     const struct cordon_git_changes *changes, const char *path)
{
	if (pair->use != CORDON_GIT_CLEAN || pair->other == SIZE_MAX || !pair->n_bases ||
	    has_path(&pairs[pair->other], changes, path))
		return false;
	for (size_t i = 0; i < pair->n_bases; i++)
		if (has_path(&pairs[pair->first_base + i], changes, path))
			return false;
	return true;
}

int cordon_git_judge_pairs(const struct cordon_policy *policy, const struct cordon_git_pair *pairs, size_t n_pairs,
			   const struct cordon_git_changes *changes, struct cordon_git_take *take,
			   struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_pairs; i++) {
		const struct cordon_git_pair *pair = &pairs[i];

		if (pair->use == CORDON_GIT_HELP)
			continue;
		for (size_t k = 0; r == 0 && k < pair->n; k++) {
			const struct cordon_git_change *change = &changes->items[pair->first + k];
			bool allowed;

			if (!is_clean(pairs, pair, changes, change->path))
				r = git_judge(policy, pair->commit, change, take, &allowed, err);
		}
	}
	return r;
}

/* ---- what is staged ---- */

/*
 * What a run staged. The index that the host gets is its own one, brought from the old HEAD to the new one as `git checkout`
 * does it, and with what the run staged besides. An entry that the host itself had staged is not judged: it stays, unless the
 * run committed or changed it.
 */

/* A list of differences between HEAD and an index, or between two commits, sorted by path. */
struct list {
	struct cordon_buf text;
	struct cordon_git_changes changes;
};

static void list_done(struct list *list)
{
	cordon_buf_done(&list->text);
	cordon_git_changes_done(&list->changes);
}

static int list_read(const struct cordon_git_taking *t, const char *name, struct list *ret, struct cordon_error *err)
{
	autobuf struct cordon_buf raw = { 0 };
	struct cordon_git_pair pair = { 0 };
	int r = cordon_git_scratch_read(t, name, CORDON_GIT_DIFF_BYTES, &raw, err);

	if (r < 0)
		return r;
	ret->text.max = 2 * CORDON_GIT_DIFF_BYTES;
	memset(pair.commit, '0', 40);
	if (cordon_buf_add(&ret->text, pair.commit, 41) < 0 ||
	    (raw.len && cordon_buf_add(&ret->text, raw.data, raw.len) < 0))
		return cordon_fail_errno(err, -ENOMEM, "what is staged");
	return cordon_git_changes_parse(ret->text.data, ret->text.len, &pair, 1, &ret->changes, err);
}

static const struct cordon_git_change *find(const struct list *list, const char *path)
{
	struct cordon_git_change key = { .path = path };

	return list->changes.n ? bsearch(&key, list->changes.items, list->changes.n, sizeof(key), by_path) : NULL;
}

static size_t id_length(const struct cordon_git_change *change)
{
	return strcspn(change->id, " ");
}

/* Behind the id stands the kind of the change. */
static bool is_unmerged(const struct cordon_git_change *change)
{
	return change->id[id_length(change) + 1] == 'U';
}

static bool same_entry(const struct cordon_git_change *a, const struct cordon_git_change *b)
{
	return a->new_mode == b->new_mode && is_unmerged(a) == is_unmerged(b) && id_length(a) == id_length(b) &&
	       memcmp(a->id, b->id, id_length(a)) == 0;
}

static int add_line(struct cordon_buf *text, unsigned int mode, const char *id, const struct cordon_git_change *change,
		    struct cordon_error *err)
{
	int r = cordon_buf_addf(text, "%o %.*s\t%s", mode, (int)id_length(change), id, change->path);

	r = r < 0 ? r : cordon_buf_addc(text, '\0');
	return r < 0 ? cordon_fail_errno(err, r, "what is staged") : 0;
}

/* The entry gets the value of the old HEAD, from which the index goes on to the new one. */
static int give_way(struct cordon_git_taking *t, const struct cordon_git_change *host, struct cordon_error *err)
{
	return add_line(&t->unstaged, host->old_mode, host->id - id_length(host) - 1, host, err);
}

static int stage(struct cordon_git_taking *t, const struct cordon_git_change *change, struct cordon_error *err)
{
	return add_line(&t->staged, change->new_mode, change->id, change, err);
}

/* The host's entry stays. Where the commit itself has changed as well, it must be out of the way meanwhile. */
static int keep(struct cordon_git_taking *t, const struct cordon_git_change *host, bool moved, struct cordon_error *err)
{
	int r;

	if (!host || !moved || is_unmerged(host))
		return 0;
	r = give_way(t, host, err);
	return r < 0 ? r : stage(t, host, err);
}

/* What is staged after the run. A path that is not allowed stays as it was. */
static int judge_one(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		     const struct cordon_git_change *run, const struct cordon_git_change *host, bool moved,
		     struct cordon_error *err)
{
	bool allowed = false;
	int r = 0;

	if (!(host && same_entry(host, run)) && !is_unmerged(run))
		r = git_judge(policy, "", run, take, &allowed, err);
	if (r < 0 || !allowed)
		return r < 0 ? r : keep(t, host, moved, err);
	r = host ? give_way(t, host, err) : 0;
	return r < 0 ? r : stage(t, run, err);
}

/* What the host had staged, and what is the same as in the new HEAD after the run: it was committed or taken back. */
static int judge_gone(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		      const struct cordon_git_change *host, bool moved, struct cordon_error *err)
{
	struct cordon_git_change back = { .path = host->path, .old_mode = host->new_mode, .new_mode = host->old_mode };
	bool allowed = true;
	int r = moved ? 0 : git_judge(policy, "", &back, take, &allowed, err);

	return r < 0 || !allowed ? r : give_way(t, host, err);
}

int cordon_git_judge_staged(const struct cordon_policy *policy, struct cordon_git_taking *t,
			    struct cordon_git_take *take, struct cordon_error *err)
{
	CORDON_CLEANUP(list_done) struct list start = { 0 }, run = { 0 }, moved = { 0 };
	int r;

	t->unstaged.max = t->staged.max = 4 * CORDON_GIT_DIFF_BYTES;
	if ((r = list_read(t, "staged.start", &start, err)) < 0 || (r = list_read(t, "staged", &run, err)) < 0 ||
	    (r = list_read(t, "moved", &moved, err)) < 0)
		return r;
	for (size_t i = 0; r == 0 && i < run.changes.n; i++) {
		const struct cordon_git_change *change = &run.changes.items[i];

		r = judge_one(policy, t, take, change, find(&start, change->path), find(&moved, change->path), err);
	}
	/* A file that the host only intends to add is in the way of one that the run committed. */
	for (size_t i = 0; r == 0 && i < moved.changes.n; i++) {
		const struct cordon_git_change *change = &moved.changes.items[i];

		if (!change->old_mode && !find(&start, change->path))
			r = give_way(t, change, err);
	}
	for (size_t i = 0; r == 0 && i < start.changes.n; i++) {
		const struct cordon_git_change *change = &start.changes.items[i];

		if (!find(&run, change->path))
			r = judge_gone(policy, t, take, change, find(&moved, change->path), err);
	}
	return r;
}
