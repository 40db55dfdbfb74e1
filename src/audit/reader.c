/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the audit log from the oldest file to the newest, and continues when it grows or is rotated. */
#include <stdio.h>
#include <sys/inotify.h>

#include "audit/chain.h"
#include "audit/query.h"

struct cordon_audit_reader {
	int dir_fd, watch_fd;
	bool has_since;
	int64_t since;
	struct cordon_chain_view view;
	size_t index;	 /* of the file being read, n_files at the end */
	uint64_t number; /* number of that file */
	off_t at;	 /* offset behind the last line that was returned */
	uint64_t line;
	bool follows; /* a writer may still finish an incomplete last line */
	struct cordon_audit_record record;
	struct cordon_lines lines;
};

struct cordon_audit_reader *cordon_audit_reader_free(struct cordon_audit_reader *reader)
{
	if (!reader)
		return NULL;
	cordon_audit_record_done(&reader->record);
	cordon_chain_view_done(&reader->view);
	cordon_closep(&reader->watch_fd);
	cordon_closep(&reader->dir_fd);
	free(reader);
	return NULL;
}

/* Begins to read file `index` of the view at an offset. */
static void begin_file(struct cordon_audit_reader *reader, size_t index, off_t at)
{
	const struct cordon_chain_file *file = &reader->view.files[index];

	reader->index = index;
	reader->number = file->number;
	reader->at = at;
	if (at == 0)
		reader->line = 0;
	cordon_lines_init(&reader->lines, file->fd, at, file->size);
}

int cordon_audit_reader_new(const struct cordon_home *home, const struct cordon_audit_filter *filter,
			    struct cordon_audit_reader **ret_reader, struct cordon_error *err)
{
	struct cordon_audit_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return cordon_fail_errno(err, -ENOMEM, "cannot read the audit log");
	reader->dir_fd = reader->watch_fd = -1;
	reader->has_since = filter->has_since;
	reader->since = filter->since;
	r = cordon_home_subdir(home, "audit", &reader->dir_fd, err);
	if (r == 0)
		r = cordon_chain_view(reader->dir_fd, 0, &reader->view, err);
	if (r < 0) {
		cordon_audit_reader_free(reader);
		return r;
	}
	begin_file(reader, 0, 0);
	*ret_reader = reader;
	return 0;
}

int cordon_audit_reader_next(struct cordon_audit_reader *reader, struct cordon_audit_item *ret_item,
			     struct cordon_error *err)
{
	cordon_audit_record_done(&reader->record);
	for (;;) {
		const struct cordon_chain_file *file = &reader->view.files[reader->index];
		bool last = reader->index + 1 == reader->view.n_files;
		struct cordon_line line;
		int r = 0;

		if (file->fd >= 0 && !cordon_chain_file_before(file, reader->has_since, reader->since))
			r = cordon_lines_next(&reader->lines, &line);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read the audit log %s", file->name);
		if (r == 0 && last)
			return 0;
		if (r == 0) {
			begin_file(reader, reader->index + 1, 0);
			continue;
		}
		if (!line.whole && last && reader->follows)
			return 0;
		reader->at = line.end;
		reader->line++;
		*ret_item = (struct cordon_audit_item){
			.file = file->name, .line = reader->line, .text = line.text, .n = line.n
		};
		if (line.text && cordon_audit_parse(line.text, line.n, &reader->record) == 0)
			ret_item->record = reader->record;
		else
			ret_item->damaged = true;
		return 1;
	}
}

int cordon_audit_reader_fd(struct cordon_audit_reader *reader, struct cordon_error *err)
{
	char path[40];

	reader->follows = true;
	if (reader->watch_fd >= 0)
		return reader->watch_fd;
	reader->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* Use the descriptor, so that it is the directory that we read and no other. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", reader->dir_fd);
	if (reader->watch_fd < 0 ||
	    inotify_add_watch(reader->watch_fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF) < 0) {
		int r = cordon_fail_errno(err, -errno, "cannot watch the audit log");

		cordon_closep(&reader->watch_fd);
		return r;
	}
	return reader->watch_fd;
}

/* Empties the queue. Only the event that the directory is gone matters. */
static int drain(int watch_fd)
{
	_Alignas(struct inotify_event) char events[4096];
	ssize_t n;
	int r = 0;

	while ((n = read(watch_fd, events, sizeof(events))) > 0) {
		for (const char *p = events; p < events + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)p;

			if (event->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
				r = -ENOENT;
			p += sizeof(*event) + event->len;
		}
	}
	return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : r;
}

int cordon_audit_reader_refresh(struct cordon_audit_reader *reader, struct cordon_error *err)
{
	struct cordon_chain_view view;
	size_t index = 0;
	int r = reader->watch_fd >= 0 ? drain(reader->watch_fd) : 0;

	if (r < 0)
		return cordon_fail_errno(err, r, "the audit log cannot be followed any more");
	r = cordon_chain_view(reader->dir_fd, reader->number, &view, err);
	if (r < 0)
		return r;
	while (index + 1 < view.n_files && view.files[index].number < reader->number)
		index++;
	cordon_chain_view_done(&reader->view);
	reader->view = view;
	/* The file may be gone by now; then the file in its place is read from its beginning. */
	begin_file(reader, index,
		   view.files[index].number == reader->number && reader->at <= view.files[index].size ? reader->at : 0);
	return 0;
}
