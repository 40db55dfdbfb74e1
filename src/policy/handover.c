/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a policy to another process of cordon over a descriptor. */
#include <fcntl.h>

#include "base/io.h"
#include "policy/handover.h"

#define MAGIC "cordon-policy"
#define VERSION "2"

static const char *const access_names[] = {
	[CORDON_ACCESS_NONE] = "none",
	[CORDON_ACCESS_READ] = "read",
	[CORDON_ACCESS_WRITE] = "write",
};

static int put(struct cordon_buf *buf, const char *s)
{
	return cordon_buf_add(buf, s ? s : "", s ? strlen(s) + 1 : 1);
}

static int put_pair(struct cordon_buf *buf, const char *key, const char *value)
{
	int r = put(buf, key);

	return r < 0 ? r : put(buf, value);
}

static int put_grant(struct cordon_buf *buf, const struct cordon_grant *grant)
{
	int r = put_pair(buf, "grant", access_names[grant->access]);

	return r < 0 ? r : put_pair(buf, cordon_pattern_text(grant->pattern), grant->where);
}

static int put_protected(struct cordon_buf *buf, const struct cordon_protected *protected_path)
{
	int r = put_pair(buf, "protect", protected_path->path);

	return r < 0 ? r : put_pair(buf, protected_path->where, protected_path->by_default ? "by_default" : "asked");
}

static int put_fence(struct cordon_buf *buf, const struct cordon_policy *fence)
{
	int r = put_pair(buf, "fence", fence->name);

	if (r == 0)
		r = put(buf, fence->read_only ? "yes" : "no");
	for (size_t i = 0; r == 0 && i < fence->n_grants; i++)
		r = put_grant(buf, &fence->grants[i]);
	return r;
}

static int put_policy(struct cordon_buf *buf, const struct cordon_policy *policy, bool editor_temps)
{
	int r = put_pair(buf, MAGIC, VERSION);

	if (r == 0)
		r = put_pair(buf, "root", policy->root.path);
	if (r == 0)
		r = put_pair(buf, "mode", policy->mode == CORDON_MODE_STRICT ? "strict" : "permissive");
	if (r == 0)
		r = put_pair(buf, "read_only", policy->read_only ? "yes" : "no");
	if (r == 0)
		r = put_pair(buf, "editor_temps", editor_temps ? "yes" : "no");
	for (size_t i = 0; r == 0 && i < policy->n_grants; i++)
		r = put_grant(buf, &policy->grants[i]);
	for (size_t i = 0; r == 0 && i < policy->n_protected; i++)
		r = put_protected(buf, &policy->protected_paths[i]);
	for (size_t i = 0; r == 0 && i < policy->n_fences; i++)
		r = put_fence(buf, policy->fences[i]);
	return r < 0 ? r : put(buf, "end");
}

int cordon_handover_write(const struct cordon_policy *policy, bool editor_temps, int fd, struct cordon_error *err)
{
	autobuf struct cordon_buf buf = CORDON_BUF(CORDON_HANDOVER_MAX);
	int r = put_policy(&buf, policy, editor_temps);

	if (r == 0)
		r = cordon_write_all(fd, buf.data, buf.len);
	return r < 0 ? cordon_fail_errno(err, r, "cannot hand over the policy") : 0;
}

/* A position in the strings that were read. */
struct reader {
	const char *at;
	const char *end;
};

static int damaged(struct cordon_error *err, const char *what)
{
	return cordon_fail(err, -EBADMSG, CORDON_KIND_INTERNAL, "the policy that was handed over is damaged: %s", what);
}

/* The next string, or NULL when the bytes end before its NUL. */
static const char *take(struct reader *reader)
{
	const char *s = reader->at;
	const char *nul = s < reader->end ? memchr(s, '\0', (size_t)(reader->end - s)) : NULL;

	if (!nul)
		return NULL;
	reader->at = nul + 1;
	return s;
}

static int take_choice(struct reader *reader, const char *no, const char *yes, bool *ret, struct cordon_error *err)
{
	const char *s = take(reader);

	if (!s || (!cordon_streq(s, no) && !cordon_streq(s, yes)))
		return damaged(err, s ? s : yes);
	*ret = cordon_streq(s, yes);
	return 0;
}

static int take_grant(struct reader *reader, struct cordon_policy *policy, struct cordon_error *err)
{
	const char *access = take(reader), *pattern = take(reader), *where = take(reader);

	for (size_t i = 0; where && i < CORDON_ARRAY_SIZE(access_names); i++)
		if (cordon_streq(access, access_names[i]))
			return cordon_policy_add_grant(policy, pattern, (cordon_access)i, *where ? where : NULL, err);
	return damaged(err, "grant");
}

static int take_protected(struct reader *reader, struct cordon_policy *policy, struct cordon_error *err)
{
	const char *path = take(reader), *where = take(reader);
	bool by_default;
	int r = take_choice(reader, "asked", "by_default", &by_default, err);

	if (r < 0)
		return r;
	return cordon_policy_add_protected(policy, path, *where ? where : NULL, by_default, err);
}

/* The grants that follow belong to the fence. */
static int take_fence(struct reader *reader, struct cordon_policy *policy, struct cordon_error *err)
{
	const char *name = take(reader);
	struct cordon_policy *fence = NULL;
	struct reader ahead;
	int r = name ? cordon_policy_new_like(policy, &fence, err) : damaged(err, "fence");

	if (r == 0)
		r = take_choice(reader, "no", "yes", &fence->read_only, err);
	for (ahead = *reader; r == 0 && cordon_streq(take(&ahead) ?: "", "grant"); ahead = *reader) {
		*reader = ahead;
		r = take_grant(reader, fence, err);
	}
	if (r < 0) {
		cordon_policy_free(fence);
		return r;
	}
	cordon_policy_set_mode(fence, policy->mode);
	return cordon_policy_fence(policy, name, fence, err);
}

static int take_root(struct reader *reader, struct cordon_policy *policy, struct cordon_error *err)
{
	const char *path = take(reader);

	if (!path || *path != '/' || cordon_copy(policy->root.path, sizeof(policy->root.path), path, strlen(path)) < 0)
		return damaged(err, "root");
	return 0;
}

static int take_all(struct reader *reader, struct cordon_policy *policy, bool *ret_temps, struct cordon_error *err)
{
	const char *magic = take(reader), *version = take(reader);
	const char *key;
	int r = 0;

	if (!version || !cordon_streq(magic, MAGIC) || !cordon_streq(version, VERSION))
		return damaged(err, "not of this version");
	while (r == 0 && (key = take(reader)) != NULL) {
		bool flag = false;

		if (cordon_streq(key, "end"))
			return reader->at == reader->end ? 0 : damaged(err, "bytes after the end");
		if (cordon_streq(key, "root")) {
			r = take_root(reader, policy, err);
		} else if (cordon_streq(key, "mode")) {
			r = take_choice(reader, "strict", "permissive", &flag, err);
			cordon_policy_set_mode(policy, flag ? CORDON_MODE_PERMISSIVE : CORDON_MODE_STRICT);
		} else if (cordon_streq(key, "read_only")) {
			r = take_choice(reader, "no", "yes", &policy->read_only, err);
		} else if (cordon_streq(key, "editor_temps")) {
			r = take_choice(reader, "no", "yes", ret_temps, err);
		} else if (cordon_streq(key, "grant")) {
			r = take_grant(reader, policy, err);
		} else if (cordon_streq(key, "protect")) {
			r = take_protected(reader, policy, err);
		} else if (cordon_streq(key, "fence")) {
			r = take_fence(reader, policy, err);
		} else {
			r = damaged(err, key);
		}
	}
	return r < 0 ? r : damaged(err, "it has no end");
}

int cordon_handover_read(int fd, int root_fd, struct cordon_policy **ret_policy, bool *ret_editor_temps,
			 struct cordon_error *err)
{
	autobuf struct cordon_buf buf = CORDON_BUF(CORDON_HANDOVER_MAX);
	autofd int root = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	struct cordon_policy *policy = NULL;
	struct reader reader;
	bool temps = true;
	int r;

	if (root < 0)
		return cordon_fail_errno(err, -errno, "cannot take the root directory");
	r = cordon_read_fd(fd, "the policy", &buf, err);
	if (r < 0)
		return r;
	/* Begin with any directory: the real root replaces it below. */
	r = cordon_policy_new("/", &policy, err);
	if (r < 0)
		return r;
	cordon_root_done(&policy->root);
	policy->root.fd = cordon_steal_fd(&root);
	reader = (struct reader){ .at = buf.data, .end = buf.data + buf.len };
	r = buf.data ? take_all(&reader, policy, &temps, err) : damaged(err, "it is empty");
	if (r < 0) {
		cordon_policy_free(policy);
		return r;
	}
	*ret_policy = policy;
	*ret_editor_temps = temps;
	return 0;
}
