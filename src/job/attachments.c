/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the attachments of a message into the workspace, where the agent finds them. */
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "job/internal.h"

#define DIRECTORY "attachments"
#define ATTACHMENTS_MAX 32
#define NAME_BYTES_MAX 128
#define TRIES_MAX 100

/* Accepts plain file names only: no slash, no dot first, no control characters. */
static int judge_name(const char *name, struct cordon_error *err)
{
	int r = cordon_text_judge("attachments: filename", name, NAME_BYTES_MAX, err);

	if (r == 0 && (!*name || *name == '.' || strchr(name, '/')))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "attachments: not a plain file name: %.80s", name);
	return r;
}

static int decode(const char *data, struct cordon_buf *ret_bytes, struct cordon_error *err)
{
	size_t n = strlen(data), written;
	char *room = cordon_buf_room(ret_bytes, n / 4 * 3 + 3);

	if (!room)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "attachments: too large");
	if (sodium_base642bin((unsigned char *)room, n / 4 * 3 + 3, data, n, " \n\r", &written, NULL,
			      sodium_base64_VARIANT_ORIGINAL) != 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "attachments: data is not base64");
	ret_bytes->len += written;
	return 0;
}

/* Moves the file to its name, or to the name with a number before it when the name is taken. Never replaces a file. */
static int place(const struct cordon_stage *stage, int dir_fd, const char *name, char ret_name[static NAME_MAX + 1])
{
	for (int i = 0; i < TRIES_MAX; i++) {
		int n = i ? snprintf(ret_name, NAME_MAX + 1, "%d-%s", i, name)
			  : snprintf(ret_name, NAME_MAX + 1, "%s", name);

		if (n < 0 || n > NAME_MAX)
			return -ENAMETOOLONG;
		if (renameat2(stage->fd, "attachment", dir_fd, ret_name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Judges all attachments before any of them is written, so that a refused message leaves nothing behind. */
static int judge_all(const json_t *attachments, struct cordon_error *err)
{
	size_t i;
	json_t *attachment;

	json_array_foreach(attachments, i, attachment) {
		autobuf struct cordon_buf bytes = CORDON_BUF(CORDON_MESSAGE_MAX * 4);
		int r = judge_name(cordon_json_text(attachment, "filename"), err);

		if (r == 0)
			r = decode(cordon_json_text(attachment, "data"), &bytes, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int attach_one(const struct cordon_stage *stage, int dir_fd, const json_t *attachment, json_t *names,
		      struct cordon_error *err)
{
	autobuf struct cordon_buf bytes = CORDON_BUF(CORDON_MESSAGE_MAX * 4);
	const char *name = cordon_json_text(attachment, "filename");
	char placed[NAME_MAX + 1];
	int r = decode(cordon_json_text(attachment, "data"), &bytes, err);

	if (r == 0)
		r = cordon_write_file(stage->fd, "attachment", 0644, bytes.data, bytes.len, err);
	if (r < 0)
		return r;
	r = place(stage, dir_fd, name, placed);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot put the attachment %s into the workspace", name);
	return json_array_append_new(names, json_sprintf(DIRECTORY "/%s", placed)) < 0 ? cordon_no_memory(err) : 0;
}

int cordon_session_attach_files(const struct cordon_store *store, const struct cordon_project *project,
				const char *workspace, const json_t *attachments, json_t **ret_names,
				struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *names = json_array();
	autofd int workspaces = -1;
	autofd int top = -1;
	autofd int dir = -1;
	size_t i;
	json_t *attachment;
	int r;

	if (json_array_size(attachments) > ATTACHMENTS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "at most %d attachments", ATTACHMENTS_MAX);
	r = judge_all(attachments, err);
	if (r == 0 && json_array_size(attachments)) {
		r = cordon_project_workspaces(project, &workspaces, err);
		if (r == 0)
			r = cordon_state_dir(workspaces, workspace, &top, err);
		if (r == 0)
			r = cordon_state_dir(top, DIRECTORY, &dir, err);
		if (r == 0)
			r = cordon_stage_temp(store, &stage, err);
	}
	json_array_foreach(attachments, i, attachment) {
		if (r == 0)
			r = attach_one(&stage, dir, attachment, names, err);
	}
	if (r < 0)
		return r;
	*ret_names = cordon_steal_ptr(&names);
	return 0;
}
