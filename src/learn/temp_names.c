/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary names: which of them the lens will allow again, and for which a grant of exactly that name would not
 * help. */
#include "policy/temp_names.h"
#include "base/path.h"
#include "learn/set.h"

struct beside {
	struct cordon_learn *learn;
	const char *path;
	size_t dir_len; /* length of its directory, with the slash */
};

static bool is_written_file(const struct cordon_learn_item *item)
{
	return cordon_learn_need(item) == CORDON_NEED_WRITE && !(item->uses & CORDON_LEARN_DIRECTORY);
}

/* Whether a name in the same directory was written, too, and so will be granted. */
static bool written_beside(void *data, const char *name, size_t n)
{
	const struct beside *beside = data;
	char path[CORDON_PATH_MAX];
	const struct cordon_learn_item *item;

	if (beside->dir_len + n >= sizeof(path))
		return false;
	memcpy(path, beside->path, beside->dir_len);
	memcpy(path + beside->dir_len, name, n);
	path[beside->dir_len + n] = '\0';
	item = cordon_learn_find(beside->learn, path);
	return item && is_written_file(item);
}

/* Whether the same directory has a file that existed from the start and was written. The answer for the last
 * directory is kept, because the paths come in order. */
static bool any_beside(const struct beside *beside)
{
	struct cordon_learn *learn = beside->learn;

	if (learn->last_dir && learn->last_dir_len == beside->dir_len &&
	    strncmp(learn->last_dir, beside->path, beside->dir_len) == 0)
		return learn->last_answer;
	learn->last_dir = beside->path;
	learn->last_dir_len = beside->dir_len;
	learn->last_answer = false;
	for (size_t i = 0; i < learn->n && !learn->last_answer; i++) {
		const struct cordon_learn_item *item = &learn->items[i];

		learn->last_answer = item->uses & CORDON_LEARN_EXISTED && is_written_file(item) &&
				     strncmp(item->path, beside->path, beside->dir_len) == 0 &&
				     !strchr(item->path + beside->dir_len, '/');
	}
	return learn->last_answer;
}

bool cordon_learn_is_save(struct cordon_learn *learn, const struct cordon_learn_item *item)
{
	const char *name = cordon_path_base(item->path);
	struct beside beside = { learn, item->path, (size_t)(name - item->path) };

	if (!(item->uses & CORDON_LEARN_GONE) || !(item->uses & CORDON_LEARN_MOVED) ||
	    item->uses & CORDON_LEARN_DIRECTORY)
		return false;
	return cordon_temp_of_name(name, false, written_beside, &beside) ||
	       (cordon_temp_of_any(name) && any_beside(&beside));
}

bool cordon_learn_is_temporary(struct cordon_learn *learn, const struct cordon_learn_item *item, bool patterns)
{
	size_t from, to;

	return item->uses & CORDON_LEARN_GONE && (cordon_learn_random(cordon_path_base(item->path), &from, &to) ||
						  (patterns && cordon_learn_is_save(learn, item)));
}
