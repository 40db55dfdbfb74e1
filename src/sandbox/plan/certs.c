/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans the links to the host's certificates, and shows nothing else of the directories in which they lie.
 *
 * /etc/pki and similar directories hold private keys beside certificates, and a caller that is root may read them all.
 * So sandbox/plan/system.c mounts only the certificates that are extracted for everybody, and this file makes the links
 * that lead there again. Files beside those links belong to the administrator and are not shown.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/plan/plan.h"

#define LINKS_MAX 64 /* in one directory of certificates */

/* Names below /etc that are links on some systems, such as Fedora and RHEL. */
static const char *const links[] = { "ssl/certs", "ssl/cert.pem", "pki/tls/cert.pem" };
/* Directories whose links lead to extracted certificates. */
static const char *const linked_dirs[] = { "pki/java", "pki/tls/certs" };

static int make_link(struct cordon_plan *plan, int etc, const char *name, struct cordon_error *err)
{
	char target[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	ssize_t n = readlinkat(etc, name, target, sizeof(target) - 1);
	struct cordon_step *step;
	int r;

	if (n <= 0 || cordon_path_join("/etc", name, path, sizeof(path)) < 0)
		return 0;
	target[n] = '\0';
	r = cordon_plan_parents(plan, path, NULL, err);
	if (r < 0)
		return r;
	step = cordon_plan_step(plan, CORDON_STEP_LINK, path);
	if (!step || !(step->text = cordon_arena_printf(plan->arena, "%s", target)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return 0;
}

static int make_links(struct cordon_plan *plan, int etc, const char *dir, struct cordon_error *err)
{
	int fd = cordon_open_beneath(etc, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;
	int r = 0;

	if (fd >= 0 && !stream)
		close(fd);
	for (struct dirent *entry; r == 0 && stream && n < LINKS_MAX && (entry = readdir(stream));) {
		char name[CORDON_PATH_MAX];

		if (entry->d_type != DT_LNK || cordon_path_join(dir, entry->d_name, name, sizeof(name)) < 0)
			continue;
		n++;
		r = make_link(plan, etc, name, err);
	}
	if (stream)
		closedir(stream);
	return r;
}

int cordon_plan_certificates(struct cordon_plan *plan, int etc, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(links); i++)
		r = make_link(plan, etc, links[i], err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(linked_dirs); i++)
		r = make_links(plan, etc, linked_dirs[i], err);
	return r;
}
