/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an empty git repository without running git, so git need not be installed and no configuration of git has an
 * effect. */
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "store/internal.h"

#define URL_MAX ((size_t)2048)

int cordon_git_url_judge(const char *url, struct cordon_error *err)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://", "file:///" };
	const char *colon = strchr(url, ':');
	const char *at = strchr(url, '@');
	int r = cordon_text_judge("remote_url", url, URL_MAX, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(schemes); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0 && url[strlen(schemes[i])] &&
		    url[strlen(schemes[i])] != '-' && !strchr(url, ' '))
			return 0;
	/* The form user@host:path. Anything else could be an option, or name a helper such as ext::, which runs
	 * programs. */
	if (at && colon && at > url && *url != '-' && at + 1 < colon && at[1] != '-' && colon[1] && colon[1] != ':' &&
	    !strchr(url, ' ') && strcspn(url, "/") > (size_t)(colon - url))
		return 0;
	r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "remote_url is not one that git can be given: %.200s", url);
	cordon_error_hint(err, "use https://, ssh://, git:// or user@host:path");
	return r;
}

static int add_remote(struct cordon_buf *config, const char *url)
{
	int r = cordon_buf_adds(config, "[remote \"origin\"]\n\turl = \"");

	for (; r == 0 && *url; url++) {
		if (*url == '"' || *url == '\\')
			r = cordon_buf_addc(config, '\\');
		if (r == 0)
			r = cordon_buf_addc(config, *url);
	}
	return r < 0 ? r : cordon_buf_adds(config, "\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
}

int cordon_git_init(int dir_fd, const char *remote_url, struct cordon_error *err)
{
	static const char *const dirs[] = {
		".git",	     ".git/objects",	".git/objects/info", ".git/objects/pack",
		".git/refs", ".git/refs/heads", ".git/refs/tags",    ".git/hooks",
		".git/info",
	};
	static const char head[] = "ref: refs/heads/main\n";
	autobuf struct cordon_buf config = CORDON_BUF(4 * URL_MAX);
	autofd int git = -1;
	int r;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(dirs); i++)
		if (mkdirat(dir_fd, dirs[i], 0755) < 0)
			return cordon_fail_errno(err, -errno, "cannot make %s", dirs[i]);
	git = openat(dir_fd, ".git", CORDON_OPEN_DIR);
	if (git < 0)
		return cordon_fail_errno(err, -errno, "cannot open .git");
	r = cordon_buf_adds(&config, "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
				     "\tlogallrefupdates = true\n");
	if (r == 0 && remote_url)
		r = add_remote(&config, remote_url);
	if (r < 0)
		return cordon_no_memory(err);
	r = cordon_write_file(git, "config", 0644, config.data, config.len, err);
	return r < 0 ? r : cordon_write_file(git, "HEAD", 0644, head, sizeof(head) - 1, err);
}
