/* SPDX-License-Identifier: Apache-2.0 */
/* What is protected by default, in ordinary repositories that git made and in trees that are made to mislead. */
#include "unit.h"

#include <sys/wait.h>

#include "base/io.h"
#include "protect/defaults.h"

static struct cordon_protect_list list;
static struct cordon_root root;

/* Every test starts in an empty directory, with a HOME elsewhere without any configuration of git. */
static int set_up(void **state)
{
	root = (struct cordon_root){ .fd = -1 };
	if (unit_setup(state) < 0)
		return -1;
	unit_mkdir("w");
	unit_mkdir("home");
	return setenv("HOME", "/nonexistent", 1) == 0 && setenv("GIT_CONFIG_NOSYSTEM", "1", 1) == 0 && chdir("w") == 0
		       ? 0
		       : -1;
}

static int tear_down(void **state)
{
	cordon_protect_list_done(&list);
	cordon_root_done(&root);
	return unit_teardown(state);
}

static int collect(struct cordon_error *err)
{
	cordon_protect_list_done(&list);
	cordon_root_done(&root);
	assert_int_equal(cordon_root_open(".", &root, err), 0);
	return cordon_protect_defaults(&root, &list, err);
}

static void collect_all(void)
{
	struct cordon_error err = { 0 };

	if (collect(&err) < 0)
		fail_msg("%s", err.message);
	/* This holds for every list: each path is clean, relative, inside and listed once. */
	for (size_t i = 0; i < list.n; i++) {
		assert_true(*list.paths[i] && *list.paths[i] != '/');
		assert_null(strstr(list.paths[i], ".."));
		assert_string_not_equal(list.paths[i], ".git");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(list.paths[i], list.paths[j]);
	}
}

static bool has(const char *path)
{
	for (size_t i = 0; i < list.n; i++)
		if (cordon_streq(list.paths[i], path))
			return true;
	return false;
}

static size_t below_git(void)
{
	size_t n = 0;

	for (size_t i = 0; i < list.n; i++)
		n += strncmp(list.paths[i], ".git", 4) == 0 && strncmp(list.paths[i], ".github", 7) != 0;
	return n;
}

#define assert_has(path)                                                                                               \
	do {                                                                                                           \
		if (!has(path))                                                                                        \
			fail_msg("%s is missing", path);                                                               \
	} while (0)
#define assert_has_not(path)                                                                                           \
	do {                                                                                                           \
		if (has(path))                                                                                         \
			fail_msg("%s is listed", path);                                                                \
	} while (0)

/* Runs a shell script with git's environment; returns its exit code. */
static int shell(const char *script)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("GIT_CONFIG_COUNT", "5", 1);
		setenv("GIT_CONFIG_KEY_0", "user.name", 1);
		setenv("GIT_CONFIG_VALUE_0", "a", 1);
		setenv("GIT_CONFIG_KEY_1", "user.email", 1);
		setenv("GIT_CONFIG_VALUE_1", "a@b", 1);
		setenv("GIT_CONFIG_KEY_2", "protocol.file.allow", 1);
		setenv("GIT_CONFIG_VALUE_2", "always", 1);
		setenv("GIT_CONFIG_KEY_3", "init.defaultBranch", 1);
		setenv("GIT_CONFIG_VALUE_3", "main", 1);
		setenv("GIT_CONFIG_KEY_4", "core.fsync", 1);
		setenv("GIT_CONFIG_VALUE_4", "none", 1);
		execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void make(const char *script)
{
	assert_int_equal(shell(script), 0);
}

static void a_root_without_repository_gets_the_table_only(void **state)
{
	(void)state;
	collect_all();
	assert_has(".claude");
	assert_has(".mcp.json");
	assert_has(".vscode/tasks.json");
	assert_has(".envrc");
	assert_has_not(".bashrc");
	assert_has(".config/mise");
	assert_has_not(".hg/hgrc");
	assert_has_not(".jj/repo/config.toml");
	assert_int_equal(below_git(), 0);
	make("mkdir -p .hg .jj/repo");
	collect_all();
	assert_has(".hg/hgrc");
	assert_has(".jj/repo/config.toml");
}

static void environments_of_mise_are_found_by_name_and_by_presence(void **state)
{
	(void)state;
	collect_all();
	assert_has_not("mise.ci.toml");
	make("mkdir .config; touch mise.ci.toml .mise.some.local.toml mise.toml .config/mise.x.toml other.ci.toml");
	collect_all();
	assert_has("mise.ci.toml");
	assert_has(".mise.some.local.toml");
	assert_has(".config/mise.x.toml");
	assert_has_not("other.ci.toml");
	assert_int_equal(setenv("MISE_ENV", "prod,../x,,test", 1), 0);
	collect_all();
	assert_int_equal(unsetenv("MISE_ENV"), 0);
	assert_has("mise.prod.toml");
	assert_has(".mise.test.toml");
	assert_has("mise.test.local.toml");
	assert_has(".config/mise.prod.toml");
}

static void the_home_directory_gets_its_own_rows(void **state)
{
	char home[CORDON_PATH_MAX];

	(void)state;
	unit_mkdir(".config");
	assert_int_equal(symlink(".", "../other-name"), 0);
	snprintf(home, sizeof(home), "%s/other-name", unit_dir);
	assert_int_equal(setenv("HOME", home, 1), 0);
	collect_all();
	assert_has_not(".bashrc");
	assert_int_equal(chdir(".."), 0);
	collect_all();
	assert_has(".bashrc");
	assert_has(".ssh");
	assert_has_not(".config/autostart");
	assert_int_equal(chdir("w"), 0);
}

static void a_repository_gets_what_git_executes_and_stays_usable(void **state)
{
	static const char *const written[] = { ".git/index", ".git/HEAD",    ".git/objects",
					       ".git/refs",  ".git/logs",    ".git/COMMIT_EDITMSG",
					       ".git/info",  ".git/modules", ".git/worktrees" };

	(void)state;
	make("git init -q .");
	collect_all();
	assert_has(".git/config");
	assert_has(".git/config.worktree");
	assert_has(".git/hooks");
	assert_has(".git/info/attributes");
	assert_has(".git/commondir");
	assert_has(".gitattributes");
	assert_has(".gitmodules");
	assert_has("HEAD");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(written); i++)
		assert_has_not(written[i]);
	assert_false(list.collapsed);
}

/* The controls: each of these makes the host execute a file of the tree, and each needs a name that is on the list. */
static void planted_names_would_be_obeyed_by_git(void **state)
{
	static const char evil[] = "[core]\nrepositoryformatversion = 0\nfsmonitor = \"touch ../pwned; false\"\n";

	(void)state;
	make("git init -q . && git commit -q --allow-empty -m m && git status >../out");
	assert_int_equal(access("../pwned", F_OK), -1);

	make("cp -r .git ../saved; mkdir evil; cp -r .git/. evil/");
	unit_write("evil/config", evil);
	unit_write(".git/commondir", "../evil\n");
	shell("git status >../out 2>&1");
	assert_int_equal(unlink("../pwned"), 0); /* .git/commondir */

	make("rm -rf .git evil; cp -r ../saved .git; rm .git/HEAD; cp -r ../saved/. .");
	unit_write("config", evil);
	assert_int_equal(shell("printf '[core]\\n worktree = .\\n' >>config"), 0);
	shell("git status >../out 2>&1");
	assert_int_equal(unlink("../pwned"), 0); /* HEAD beside a .git that is no longer a git directory */
}

static void configuration_names_more_of_the_tree(void **state)
{
	(void)state;
	make("git init -q . && mkdir -p tools .hooks deep/er && : >tools/clean.py && : >tools/mon && : >tools/x.sh && : >conf2");
	make("git config core.hooksPath .hooks && git config core.attributesFile tools/attr");
	make("git config filter.x.clean 'python3 tools/clean.py --in %f' && git config core.fsmonitor ./tools/mon");
	make("git config alias.x '!f() { sh \"tools/x.sh\"; }; f' && git config core.sshCommand ssh");
	make("git config include.path ../conf1 && git config includeIf.gitdir:/x/.path '../deep/../conf2'");
	unit_write("conf1", "[include]\npath = deep/er/conf3\n");
	unit_write("deep/er/conf3",
		   "[core]\nhookspath = deep/hooks\n[include]\npath=../../conf1\n[diff \"x\"]\ncommand=deep/none\n");
	collect_all();
	assert_has(".hooks");
	assert_has("tools/attr");
	assert_has("tools/clean.py");
	assert_has("tools/mon");
	assert_has("tools/x.sh");
	assert_has("conf1");
	assert_has("conf2");
	assert_has("deep/er/conf3");
	assert_has("deep/hooks");
	assert_has_not("deep/none");
	assert_has_not("ssh");
	assert_has_not("python3");
}

static void absolute_and_home_names_count_when_they_are_inside(void **state)
{
	char text[2048];

	(void)state;
	make("git init -q . && mkdir hooks2");
	snprintf(text, sizeof(text),
		 "[core]\nhooksPath = %s/w/hooks1\n[core]\nhooksPath=~/hooks2\nhooksPath=%s/outside\n"
		 "[include]\npath = /etc/passwd\npath = ../../outside\npath=~root/x\n",
		 unit_dir, unit_dir);
	unit_write(".git/config", text);
	snprintf(text, sizeof(text), "%s/w", unit_dir);
	assert_int_equal(setenv("HOME", text, 1), 0);
	collect_all();
	assert_has("hooks1");
	assert_has("hooks2");
	for (size_t i = 0; i < list.n; i++) {
		assert_null(strstr(list.paths[i], "outside"));
		assert_null(strstr(list.paths[i], "passwd"));
	}
}

static void nothing_makes_everything_read_only(void **state)
{
	(void)state;
	make("git init -q . && mkdir -p src .git/worktrees/evil .git/worktrees/evil2");
	unit_write(".git/config",
		   "[core]\nhooksPath = .\nhooksPath = .git\nhooksPath = src/..\nattributesFile = .\n"
		   "worktree = ..\n[include]\npath = .\npath = ../src\npath = ..\n[alias]\nx = !./. src .git\n");
	unit_write(".git/worktrees/evil/gitdir", "../../..\n");
	unit_write(".git/worktrees/evil2/gitdir", "../../../.git\n");
	unit_write(".gitmodules",
		   "[submodule \"a\"]\npath = .\n[submodule \"b\"]\npath = ..\n[submodule \"c\"]\npath=/etc\n");
	collect_all(); /* which refuses ".git" and ".." */
	assert_has_not("src");
	assert_has_not(".");
	/* The hooks of a directory that cannot be protected as a whole are named one by one. */
	assert_has("pre-commit");
	assert_has(".git/pre-commit");
	assert_has(".git/worktrees/evil");
	assert_has(".git/worktrees/evil2");
}

static void submodules_and_worktrees_are_found_by_metadata(void **state)
{
	(void)state;
	make("git init -q ../sub && cd ../sub && echo x >f && git add f && git commit -qm m");
	make("git init -q ../super && cd ../super && git submodule --quiet add ../sub inner && git commit -qm m");
	make("git init -q . && git submodule --quiet add ../sub libs/one && git submodule --quiet add ../super two && "
	     "git commit -qm m && git -C two submodule --quiet update --init");
	make("git worktree add -q wt/inside && git worktree add -q ../outside");
	make("mkdir old && git init -q old/.x && mv old/.x/.git old/.git && "
	     "printf '[submodule \"old\"]\\npath = old\\n[submodule \"gone\"]\\npath = gone\\n' >>.gitmodules");
	make("mkdir -p empty && printf '[submodule \"empty\"]\\npath = empty\\n' >>.gitmodules");
	collect_all();
	assert_has(".git/modules/libs/one/config");
	assert_has(".git/modules/libs/one/hooks");
	assert_has(".git/modules/libs/one/commondir");
	assert_has(".git/modules/two/config");
	assert_has(".git/modules/two/modules/inner/config");
	assert_has("libs/one/.git");
	assert_has("two/.git");
	assert_has("two/inner/.git");
	assert_has("old/.git/config");
	assert_has("old/.git/hooks");
	assert_has("old/HEAD");
	assert_has("empty/.git");
	assert_has_not("gone/.git");
	assert_has(".git/worktrees/inside/config.worktree");
	assert_has(".git/worktrees/inside/commondir");
	assert_has("wt/inside/.git");
	/* Its files are not visible inside, so git's clean-up there would remove it. */
	assert_has(".git/worktrees/outside");
	assert_false(list.collapsed);
}

static void a_linked_worktree_protects_its_git_file_only(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	make("git init -q ../main && cd ../main && git commit -q --allow-empty -m m && rmdir ../w && git worktree add -q ../w");
	assert_int_equal(chdir(unit_dir), 0);
	assert_int_equal(chdir("w"), 0);
	assert_int_equal(collect(&err), 0);
	assert_has(".git");
	assert_has(".gitmodules");
	assert_has_not(".git/config");
	for (size_t i = 0; i < list.n; i++)
		assert_null(strstr(list.paths[i], "main"));
	/* A git directory inside the root is found through the pointer, also when pointers form a circle. */
	make("rm .git; git init -q --separate-git-dir=store .");
	unit_write("store/commondir", "../store\n");
	assert_int_equal(collect(&err), 0);
	assert_has(".git");
	assert_has("store/config");
	assert_has("store/hooks");
}

static void a_bare_repository_as_root_is_known(void **state)
{
	(void)state;
	make("git init -q --bare .");
	collect_all();
	assert_has("config");
	assert_has("hooks");
	assert_has_not("HEAD");
}

static void links_fifos_and_directories_in_odd_places_do_no_harm(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	make("git init -q . && rm .git/config && mkfifo .git/config && mkfifo .gitmodules && mkfifo .git/commondir && "
	     "mkdir -p .git/modules/a .git/worktrees/b && mkfifo .git/worktrees/b/gitdir && mkfifo .git/modules/a/HEAD");
	collect_all();
	assert_has(".git/config");
	assert_has(".gitmodules");
	assert_has(".git/worktrees/b");

	make("rm -rf .git/config .git/modules .git/worktrees && ln -s /etc/passwd .git/config && ln -s /etc .git/modules && "
	     "ln -s .. .git/worktrees && rm .gitmodules && ln -s .gitmodules .gitmodules");
	collect_all();
	assert_has(".git/modules");
	assert_has(".git/worktrees");

	make("rm -rf .git && ln -s ../home .git");
	assert_int_equal(collect(&err), 0);
	assert_has(".git");
	make("rm .git && ln -s .git .git");
	assert_int_equal(collect(&err), 0);
	assert_has(".git");
	make("rm .git && mkfifo .git");
	assert_int_equal(collect(&err), 0);
	assert_has(".git");
	assert_has_not(".git/config");
	/* A configuration that is a link inside the root is read through it. */
	make("rm .git && git init -q . && mv .git/config conf && ln -s ../conf .git/config && git config core.hooksPath h");
	collect_all();
	assert_has(".git/config");
	assert_has("h");
}

static void bounds_are_kept(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	/* Too many submodules: they are protected as a whole. */
	make("git init -q . && mkdir .git/modules && cd .git/modules && mkdir $(seq 300)");
	collect_all();
	assert_true(list.collapsed);
	assert_has(".git/modules");
	assert_has(".git/config");
	/* Too deep. */
	make("rm -rf .git/modules; mkdir -p .git/modules/1/2/3/4/5/6/7/8/9/10");
	collect_all();
	assert_true(list.collapsed);
	/* Many real submodules fill the list before they reach the bound. */
	make("rm -rf .git/modules; mkdir .git/modules; cd .git/modules; mkdir $(seq 200); "
	     "for i in *; do mkdir $i/objects $i/refs; : >$i/HEAD; done");
	collect_all();
	assert_true(list.collapsed);
	assert_has(".gitmodules");
	/* Too many worktrees: they are protected as a whole, and every file of the tree that leads to one. */
	make("rm -rf .git/modules; mkdir .git/worktrees; cd .git/worktrees; mkdir $(seq 300); mkdir ../../wt ../../wt/zz; "
	     "echo 'gitdir: x' >../../wt/zz/.git; echo \"$PWD/../../wt/zz/.git\" >300/gitdir; echo ../../../gone/.git >299/gitdir");
	collect_all();
	assert_true(list.collapsed);
	assert_has(".git/worktrees");
	assert_has(".git/config");
	assert_has("wt/zz/.git");
	assert_has_not("gone/.git");
	assert_has_not(".git/worktrees/1");
	/* Where no stricter list is possible, it is an error with the reason. */
	make("cd .git/worktrees; mkdir $(seq 301 8300)");
	assert_int_equal(collect(&err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	assert_true(*err.hint);
	make("rm -rf .git/worktrees; mkdir s; (cd s; mkdir $(seq 900)); "
	     "for i in $(seq 900); do printf '[submodule \"%s\"]\\npath = s/%s\\n' $i $i; done >.gitmodules");
	assert_int_equal(collect(&err), -E2BIG);
	make("rm .gitmodules; for i in $(seq 40); do printf '[include]\\npath = ../inc%s\\n' $i; done >.git/config");
	assert_int_equal(collect(&err), -E2BIG);
	make("head -c 300000 /dev/zero | tr '\\0' '#' >.git/config");
	assert_int_equal(collect(&err), -E2BIG);
}

/* docs/protected-by-default.md has one line "| `path` | who | when |" for each row, in the order of the table. */
static void the_documented_table_is_this_one(void **state)
{
	static const char *const words[] = { "always", "where its directory exists", "root is the home directory",
					     "root is the home directory, where its directory exists" };
	autobuf struct cordon_buf doc = CORDON_BUF(1 << 20);
	const char *cases = getenv("CORDON_CASES"), *at, *end;
	char path[CORDON_PATH_MAX], line[512];
	struct cordon_error err = { 0 };
	size_t n, lines = 0;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	(void)state;
	assert_non_null(cases);
	snprintf(path, sizeof(path), "%s/../../docs/protected-by-default.md", cases);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &doc, &err), 0);
	at = doc.data;
	for (size_t i = 0; i < n; i++) {
		const char *found;

		snprintf(line, sizeof(line), "\n| `%s` | %s | %s |\n", rows[i].path, rows[i].who, words[rows[i].when]);
		found = strstr(at, line);
		if (!found)
			fail_msg("docs/protected-by-default.md lacks, or has in another place:%s", line);
		at = found + 1;
	}
	end = strstr(doc.data, "\n## What is not on the list");
	assert_non_null(end);
	for (at = doc.data; (at = strstr(at, "\n| `")) && at < end; at++)
		lines++;
	assert_int_equal(lines, n);
}

#define in_tree(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tree(a_root_without_repository_gets_the_table_only),
		in_tree(environments_of_mise_are_found_by_name_and_by_presence),
		in_tree(the_home_directory_gets_its_own_rows),
		in_tree(a_repository_gets_what_git_executes_and_stays_usable),
		in_tree(planted_names_would_be_obeyed_by_git),
		in_tree(configuration_names_more_of_the_tree),
		in_tree(absolute_and_home_names_count_when_they_are_inside),
		in_tree(nothing_makes_everything_read_only),
		in_tree(submodules_and_worktrees_are_found_by_metadata),
		in_tree(a_linked_worktree_protects_its_git_file_only),
		in_tree(a_bare_repository_as_root_is_known),
		in_tree(links_fifos_and_directories_in_odd_places_do_no_harm),
		in_tree(bounds_are_kept),
		cmocka_unit_test(the_documented_table_is_this_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
