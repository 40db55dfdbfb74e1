/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names of files that a program on the host executes or obeys without showing them to the user. */
#include <fnmatch.h>
#include <sys/stat.h>

#include "base/path.h"
#include "protect/defaults.h"
#include "protect/executes.h"

static const struct {
	/* For fnmatch(3); with a slash it is matched against the last components of a path, else against the name. */
	const char *pattern;
	const char *who;
} rows[] = {
	/* git */
	{ ".git", "git" }, /* a file or link that leads to a git directory */
	{ "*.git/hooks/*", "git" },
	{ "hooks/*.sample", NULL }, /* git runs none of its samples */
	{ "*.git/config", "git" },
	{ "*.git/config.worktree", "git" },
	{ "*.git/commondir", "git" },
	{ "*.git/info/attributes", "git" },
	{ ".gitmodules", "git" },
	{ ".gitattributes", "git" },
	{ ".pre-commit-config.yaml", "pre-commit" },
	{ "lefthook.y*ml", "lefthook" },
	{ "mise.*.toml", "mise" },
	{ ".mise.*.toml", "mise" },
	/* shells */
	{ "*.sh", "a shell" },
	{ "*.bash", "a shell" },
	{ "*.zsh", "a shell" },
	{ "*.fish", "a shell" },
	{ ".bashrc", "a shell, at its start" },
	{ ".bash_profile", "a shell, at its start" },
	{ ".bash_logout", "a shell, at its end" },
	{ ".profile", "a shell, at its start" },
	{ ".zshrc", "a shell, at its start" },
	{ ".zshenv", "a shell, at its start" },
	{ ".zprofile", "a shell, at its start" },
	{ "*.ps1", "a shell" },
	{ "*.bat", "a shell" },
	{ "*.cmd", "a shell" },
	/* builds */
	{ "[Mm]akefile", "make" },
	{ "GNUmakefile", "make" },
	{ "*.mk", "make" },
	{ "CMakeLists.txt", "cmake" },
	{ "*.cmake", "cmake" },
	{ "meson.build", "meson" },
	{ "*.ninja", "ninja" },
	{ "configure", "a build" },
	{ "configure.ac", "a build" },
	{ "[Jj]ustfile", "just" },
	{ "Taskfile.y*ml", "task" },
	{ "Rakefile", "rake" },
	{ "Gemfile", "bundler" },
	{ "*.gemspec", "bundler" },
	{ "build.rs", "cargo" },
	{ "Cargo.toml", "cargo" },
	{ "build.gradle", "gradle" },
	{ "build.gradle.kts", "gradle" },
	{ "settings.gradle*", "gradle" },
	{ "gradlew", "gradle" },
	{ "mvnw", "maven" },
	{ "pom.xml", "maven" },
	{ "BUILD", "bazel" },
	{ "BUILD.bazel", "bazel" },
	{ "*.bzl", "bazel" },
	{ "Dockerfile*", "docker" },
	{ "Containerfile*", "podman" },
	{ "docker-compose*.y*ml", "docker" },
	{ "compose.y*ml", "docker" },
	{ "Vagrantfile", "vagrant" },
	{ "flake.nix", "nix" },
	{ "shell.nix", "nix" },
	/* JavaScript and Python */
	{ "package.json", "npm and its relatives: scripts" },
	{ ".npmrc", "npm" },
	{ ".yarnrc*", "yarn" },
	{ ".pnpmfile.cjs", "pnpm" },
	{ "node_modules/.bin/*", "npm and its relatives" },
	{ "*.config.js", "a JavaScript tool" },
	{ "*.config.cjs", "a JavaScript tool" },
	{ "*.config.mjs", "a JavaScript tool" },
	{ "*.config.ts", "a JavaScript tool" },
	{ ".eslintrc.*js", "eslint" },
	{ "Gruntfile.js", "grunt" },
	{ "Gulpfile.js", "gulp" },
	{ "setup.py", "pip" },
	{ "pyproject.toml", "pip and its relatives" },
	{ "conftest.py", "pytest" },
	{ "noxfile.py", "nox" },
	{ "tox.ini", "tox" },
	{ "sitecustomize.py", "Python, at its start" },
	{ "usercustomize.py", "Python, at its start" },
	{ "*.pth", "Python, at its start" },
	/* continuous integration and services */
	{ ".github/workflows/*", "GitHub Actions" },
	{ ".github/actions/*/action.y*ml", "GitHub Actions" },
	{ ".gitlab-ci.yml", "GitLab CI" },
	{ ".circleci/*", "CircleCI" },
	{ ".travis.yml", "Travis CI" },
	{ "azure-pipelines.yml", "Azure Pipelines" },
	{ "Jenkinsfile", "Jenkins" },
	{ ".buildkite/*", "Buildkite" },
	{ ".woodpecker*", "Woodpecker CI" },
	{ "*.service", "systemd" },
	{ "*.timer", "systemd" },
	{ "*.desktop", "a desktop" },
	{ "crontab", "cron" },
};

/* The last components of a path, as many as the pattern has. */
static const char *tail_of(const char *path, const char *pattern)
{
	const char *tail = path + strlen(path);
	size_t slashes = 0;

	for (const char *p = pattern; *p; p++)
		slashes += *p == '/';
	while (tail > path && (tail[-1] != '/' || slashes-- > 0))
		tail--;
	return tail;
}

/* What is protected by default in the root is also executed in other directories. */
static const char *protected_row(const char *path)
{
	size_t n;
	const struct cordon_protect_row *list = cordon_protect_rows(&n);

	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		for (size_t i = 0; i < n; i++)
			if (list[i].when != CORDON_PROTECT_HOME && cordon_path_within(at, list[i].path))
				return cordon_streq(list[i].who, "the same") ? list[i].path : list[i].who;
	return NULL;
}

const char *cordon_executes(const char *path, mode_t mode)
{
	const char *who;

	if (!S_ISREG(mode) && !S_ISLNK(mode))
		return NULL;
	/* Exceptions stand behind the rows that they restrict, so search from the end. */
	for (size_t i = CORDON_ARRAY_SIZE(rows); i-- > 0;)
		if (fnmatch(rows[i].pattern, tail_of(path, rows[i].pattern), FNM_PATHNAME | FNM_NOESCAPE) == 0)
			return rows[i].who;
	who = protected_row(path);
	if (who)
		return who;
	return S_ISREG(mode) && mode & 0111 ? "whoever calls it" : NULL;
}
