/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes records. */
#include "state/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"

int cordon_no_memory(struct cordon_error *err)
{
	return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}

int cordon_record_read(int dir_fd, const char *name, json_t **ret_record, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_RECORD_MAX);
	json_auto_t *record = NULL;
	json_error_t where;
	int r = cordon_read_file(dir_fd, name, O_NOFOLLOW, &text, err);

	if (r == -ENOENT)
		return cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "%s does not exist", name);
	if (r < 0)
		return r;
	record = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &where);
	if (!json_is_object(record))
		return cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the record %s is damaged", name);
	if (cordon_json_integer(record, "schema") != CORDON_SCHEMA)
		return cordon_fail(err, -EPROTONOSUPPORT, CORDON_KIND_CONFIG,
				   "the record %s has a schema that this version of cordon does not know", name);
	*ret_record = cordon_steal_ptr(&record);
	return 0;
}

int cordon_record_write(int dir_fd, const char *name, const json_t *record, struct cordon_error *err)
{
	autofree char *text = json_dumps(record, JSON_INDENT(2));
	size_t n;

	if (!text)
		return cordon_no_memory(err);
	n = strlen(text);
	if (n + 1 > CORDON_RECORD_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a record holds at most %d bytes", CORDON_RECORD_MAX);
	text[n] = '\n'; /* replaces the NUL, which is not needed because we pass the length */
	return cordon_write_file(dir_fd, name, 0600, text, n + 1, err);
}

int cordon_record_load(const struct cordon_record_kind *kind, int dir_fd, const char *name, void *ret_record,
		       struct cordon_error *err)
{
	json_auto_t *object = NULL;
	int r = cordon_record_read(dir_fd, name, &object, err);

	if (r == 0)
		r = cordon_fields_complete(kind, object, err);
	return r < 0 ? r : cordon_fields_read(kind, object, ret_record, err);
}

int cordon_record_save(const struct cordon_record_kind *kind, int dir_fd, const char *name, const void *record,
		       struct cordon_error *err)
{
	json_auto_t *object = json_pack("{s:i}", "schema", CORDON_SCHEMA);
	json_auto_t *fields = cordon_fields_write(kind, record, false);

	if (!object || !fields || json_object_update(object, fields) < 0)
		return cordon_no_memory(err);
	return cordon_record_write(dir_fd, name, object, err);
}

void cordon_record_stamp(char ret_time[static CORDON_TIME_SIZE])
{
	cordon_time_format(cordon_time_now(), ret_time);
}

int cordon_record_names(int dir_fd, const char *suffix, json_t **ret_names, struct cordon_error *err)
{
	json_auto_t *names = json_array();
	size_t cut = suffix ? strlen(suffix) : 0;
	struct dirent *entry;
	int fd = openat(dir_fd, ".", CORDON_OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = dir && names ? 0 : -errno;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && r == 0 && (errno = 0, entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);

		/* The temporary names of writes under way begin with a dot, and so do "." and "..". */
		if (entry->d_name[0] == '.' || n <= cut || (cut && !cordon_streq(entry->d_name + n - cut, suffix)))
			continue;
		if (json_array_append_new(names, json_stringn(entry->d_name, n - cut)) < 0)
			r = -ENOMEM;
	}
	if (r == 0)
		r = -errno;
	if (dir)
		closedir(dir);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot list the store");
	*ret_names = cordon_steal_ptr(&names);
	return 0;
}

int cordon_state_dir(int dir_fd, const char *name, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = -1;
	struct stat st;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot make %s", name);
	fd = openat(dir_fd, name, CORDON_OPEN_DIR);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return cordon_fail(err, -ENOTDIR, CORDON_KIND_CONFLICT, "%s is not a directory", name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", name);
	if (st.st_uid != geteuid())
		return cordon_fail(err, -EPERM, CORDON_KIND_CONFLICT, "%s belongs to another user", name);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}
