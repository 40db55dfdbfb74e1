/* SPDX-License-Identifier: Apache-2.0 */
/* What is protected by default, in ordinary repositories that git made and in trees that are made to mislead. */
#include "unit.h"

#include <fnmatch.h>
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
		n += strncmp(list.paths[i], ".git", 4) == 0 && strncmp(list.paths[i], ".github", 7) != 0 &&
		     strncmp(list.paths[i], ".git-", 5) != 0;
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
	assert_has_not("mise/config.y.toml");
	make("mkdir .config mise; touch mise.ci.toml .mise.some.local.toml mise.toml .config/mise.x.toml other.ci.toml "
	     "mise/config.y.toml mise/other.y.toml");
	collect_all();
	assert_has("mise.ci.toml");
	assert_has(".mise.some.local.toml");
	assert_has(".config/mise.x.toml");
	assert_has("mise/config.y.toml");
	assert_has_not("mise/other.y.toml");
	assert_has_not("other.ci.toml");
	assert_int_equal(setenv("MISE_ENV", "prod,../x,,test", 1), 0);
	collect_all();
	assert_int_equal(unsetenv("MISE_ENV"), 0);
	assert_has("mise.prod.toml");
	assert_has(".mise.test.toml");
	assert_has("mise.test.local.toml");
	assert_has(".mise.test.local.toml");
	assert_has(".config/mise.prod.toml");
	assert_has(".config/mise.prod.local.toml");
	assert_has("mise/config.prod.toml");
	assert_has("mise/config.test.local.toml");
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
	/* A directory that the run would make itself does not matter. */
	assert_has(".config/autostart");
	assert_has(".local/lib");
	assert_has(".cargo/bin");
	assert_int_equal(chdir("w"), 0);
}

static void a_repository_gets_what_git_executes_and_stays_usable(void **state)
{
	static const char *const written[] = { ".git/index", ".git/HEAD",	    ".git/objects", ".git/refs",
					       ".git/logs",  ".git/COMMIT_EDITMSG", ".git/info",    ".git/worktrees" };

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
	assert_has(".git/modules"); /* as long as it is missing */
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
	assert_has("deep/none"); /* the agent could make it */
	assert_has_not("ssh");
	assert_has_not("python3");
}

/* Writes the user's configuration and has it count. */
static void write_user(const char *name, const char *text)
{
	char path[2 * CORDON_PATH_MAX], home[CORDON_PATH_MAX];

	snprintf(home, sizeof(home), "%s/home", unit_dir);
	snprintf(path, sizeof(path), "%s/%s", home, name);
	unit_write(path, text);
	assert_int_equal(setenv("HOME", home, 1), 0);
}

static void the_users_own_configuration_counts_in_every_root(void **state)
{
	char text[2048];

	(void)state;
	write_user(".gitconfig", "[core]\nhooksPath = .githooks\nattributesFile = conf/attr\nfsmonitor = tools/mon --x\n"
				 "[include]\npath = more\n[includeIf \"gitdir:/nowhere/\"]\npath = ~/never\n"
				 "[init]\ntemplateDir = template\n");
	write_user("more", "[include]\npath = .gitconfig\n[merge \"x\"]\ndriver = ./tools/merge %O %A\n");
	write_user("never", "[filter \"x\"]\nclean = sh tools/clean.sh\n");
	/* Also before there is a repository. */
	for (int round = 0; round < 2; round++) {
		collect_all();
		assert_has(".githooks");
		assert_has("conf/attr");
		assert_has("tools/mon");
		assert_has("tools/merge");
		assert_has("tools/clean.sh");
		assert_has("template");
		make("HOME=/nonexistent git init -q .");
	}
	assert_has_not(".git");
	/* XDG's file, and an absolute path into the root. */
	unit_mkdir("../home/.config");
	unit_mkdir("../home/.config/git");
	snprintf(text, sizeof(text), "[core]\nhooksPath = %s/w/abs\n[include]\npath = %s/w/inc\n", unit_dir, unit_dir);
	write_user(".gitconfig", "");
	write_user(".config/git/config", text);
	unit_write("inc", "[core]\nsshCommand = bin/ssh -v\n");
	collect_all();
	assert_has("abs");
	assert_has("inc");
	assert_has("bin/ssh");
	assert_has_not(".githooks");
}

static void a_users_configuration_that_is_kept_in_the_root_is_held(void **state)
{
	(void)state;
	write_user("unused", "");
	make("mkdir dot; ln -s ../w/link ../home/.gitconfig; ln -s dot/gitconfig link; echo '[core]\n hooksPath = h' >dot/gitconfig");
	collect_all();
	assert_has("link");
	assert_has("dot/gitconfig");
	assert_has("h");
	/* Nor can it be made where it is missing. */
	make("rm dot/gitconfig");
	collect_all();
	assert_has("link");
	assert_has("dot/gitconfig");
}

static void a_hostile_users_configuration_ends_nothing(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	write_user(".gitconfig", "[include]\npath = .gitconfig\n[include]\npath = fifo\n[include]\npath = /dev/zero\n"
				 "[core]\nhooksPath = .\n");
	make("mkfifo ../home/fifo; HOME=/nonexistent git init -q .");
	assert_int_equal(collect(&err), 0);
	assert_has("pre-commit");
	assert_has_not("");
	make("for i in $(seq 80); do printf '[include]\npath = i%s\n' $i; : >../home/i$i; done >../home/.gitconfig");
	assert_int_equal(collect(&err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
}

static void a_root_below_a_repository_holds_what_that_executes(void **state)
{
	(void)state;
	make("cd ..; git init -q .; git config core.hooksPath w/hooks; git config core.fsmonitor w/tools/mon; "
	     "git config include.path ../w/inc; git config filter.x.clean elsewhere/x");
	unit_write("inc", "[core]\nattributesFile = w/attr\n");
	collect_all();
	assert_has("hooks");
	assert_has("tools/mon");
	assert_has("inc");
	assert_has("attr");
	assert_has(".gitattributes");
	assert_has_not("elsewhere/x");
	assert_has_not(".git/config");
	/* The root is the directory of hooks. */
	make("cd ..; git config core.hooksPath w");
	collect_all();
	assert_has("pre-commit");
}

static void nested_repositories_are_held_like_the_roots_own(void **state)
{
	(void)state;
	make("git init -q .; git init -q sub; git init -q a/b/c; git init -q --bare hub.git; git init -q --bare a/hub; "
	     "git init -q node_modules/x; git -C sub config core.fsmonitor tools/mon; git init -q a/b/c/d/e");
	write_user(".gitconfig", "[core]\nhooksPath = .githooks\n");
	collect_all();
	assert_has("sub/.git/config");
	assert_has("sub/.git/hooks");
	assert_has("sub/.git/commondir");
	assert_has("sub/HEAD");
	assert_has("sub/tools/mon");
	assert_has("sub/.githooks");
	assert_has("a/b/c/.git/hooks");
	assert_has("hub.git/hooks");
	assert_has("hub.git/config");
	assert_has("a/hub/hooks");
	/* What lies deeper, and in the directories of package managers, is not looked for. */
	assert_has_not("a/b/c/d/e/.git/hooks");
	assert_has_not("node_modules/x/.git/hooks");
	assert_has_not("sub/AGENTS.md");
	/* Many of them are held as a whole. */
	make("mkdir m; for i in $(seq 10 60); do mkdir -p m/$i; cp -r sub/.git m/$i/; done");
	collect_all();
	assert_true(list.collapsed);
	assert_has("m/60/.git");
	assert_has("m/10/.git/hooks");
	assert_has_not("m/10/.git");
}

static void the_bounds_of_the_search_for_repositories_do_not_depend_on_the_tree(void **state)
{
	(void)state;
	make("for i in $(seq 1000 1099); do mkdir -p $i/x; done; git init -q 1000/x; git init -q 1099/x; git init -q 1098");
	collect_all();
	assert_has("1000/x/.git/hooks");
	assert_has("1098/.git/hooks");
	assert_has_not("1099/x/.git/hooks");
}

static void what_an_envrc_reads_is_held(void **state)
{
	(void)state;
	make("mkdir -p env conf tools node_modules/.bin; : >tools/gen; : >data");
	unit_write(".envrc",
		   "# dotenv not-this\nsource_env conf\nsource ./env/a.sh; dotenv\ndotenv_if_exists .env.local\n"
		   "PATH_add bin\nPATH_add node_modules/.bin\nexport PATH=\"$PWD/tools/bin:$PATH\"\n"
		   "eval \"$(tools/gen --x)\"\nuse flake\n. \"$(pwd)/last.sh\"\npath_add LD_LIBRARY_PATH lib\n");
	unit_write("conf/.envrc", "source_env_if_exists ../.envrc\nsource_env deeper.sh\n");
	collect_all();
	assert_has(".envrc");
	assert_has("conf/.envrc");
	assert_has("env/a.sh");
	assert_has(".env");
	assert_has(".env.local");
	assert_has("bin");
	assert_has("tools/bin");
	assert_has("tools/gen");
	assert_has("flake.nix");
	assert_has(".direnv");
	assert_has("last.sh");
	assert_has("lib");
	assert_has("deeper.sh");
	assert_has_not("not-this");
	assert_has_not("data");
	assert_has_not("node_modules/.bin");
	make("rm .envrc; mkfifo .envrc");
	collect_all();
	assert_has_not(".env");
}

static void workspace_files_of_editors_are_found_by_name_and_by_presence(void **state)
{
	(void)state;
	make(": >my.code-workspace");
	collect_all();
	assert_has("my.code-workspace");
	assert_has("w.code-workspace");
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
	assert_has(".git/modules/gone");
	assert_has(".git/modules/libs/HEAD");
	assert_has_not(".git/modules");
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

/* docs/protected-by-default.md has one line "| `path` | who | when | source |" for each row, in the order of the table. */
static void the_documented_table_is_this_one(void **state)
{
	static const char *const words[] = { "always", "where its directory exists", "root is the home directory" };
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

		snprintf(line, sizeof(line), "\n| `%s` | %s | %s | %s |\n", rows[i].path, rows[i].who,
			 words[rows[i].when], rows[i].source);
		assert_true(*rows[i].source);
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

/* Each source of the table has one line "| source | where | state |" under "## Sources", and each such line a row. */
static void every_source_says_whether_it_was_looked_up(void **state)
{
	autobuf struct cordon_buf doc = CORDON_BUF(1 << 20);
	const char *cases = getenv("CORDON_CASES"), *sources;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	size_t n, different = 0, lines = 0;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	(void)state;
	assert_non_null(cases);
	snprintf(path, sizeof(path), "%s/../../docs/protected-by-default.md", cases);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &doc, &err), 0);
	sources = strstr(doc.data, "\n## Sources\n");
	assert_non_null(sources);
	for (size_t i = 0; i < n; i++) {
		char line[512];
		const char *found;
		size_t j = 0, length;

		snprintf(line, sizeof(line), "\n| %s | ", rows[i].source);
		found = strstr(sources, line);
		if (!found)
			fail_msg("Sources of docs/protected-by-default.md lacks: %s", rows[i].source);
		length = strcspn(found + 1, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, found + 1);
		if (fnmatch("| * | ?* | read |", line, 0) != 0 && fnmatch("| * | ?* | page found |", line, 0) != 0 &&
		    fnmatch("| * |  | not looked up |", line, 0) != 0)
			fail_msg("this source does not say whether it was looked up: %s", line);
		while (!cordon_streq(rows[j].source, rows[i].source))
			j++;
		different += j == i;
	}
	for (const char *at = strstr(sources, "\n|---"); (at = strstr(at + 1, "\n| "));)
		lines++;
	assert_int_equal(lines, different);
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
		in_tree(the_users_own_configuration_counts_in_every_root),
		in_tree(a_users_configuration_that_is_kept_in_the_root_is_held),
		in_tree(a_hostile_users_configuration_ends_nothing),
		in_tree(a_root_below_a_repository_holds_what_that_executes),
		in_tree(nested_repositories_are_held_like_the_roots_own),
		in_tree(the_bounds_of_the_search_for_repositories_do_not_depend_on_the_tree),
		in_tree(what_an_envrc_reads_is_held),
		in_tree(workspace_files_of_editors_are_found_by_name_and_by_presence),
		in_tree(absolute_and_home_names_count_when_they_are_inside),
		in_tree(nothing_makes_everything_read_only),
		in_tree(submodules_and_worktrees_are_found_by_metadata),
		in_tree(a_linked_worktree_protects_its_git_file_only),
		in_tree(a_bare_repository_as_root_is_known),
		in_tree(links_fifos_and_directories_in_odd_places_do_no_harm),
		in_tree(bounds_are_kept),
		cmocka_unit_test(the_documented_table_is_this_one),
		cmocka_unit_test(every_source_says_whether_it_was_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
