/* SPDX-License-Identifier: Apache-2.0 */
/* The hand tells the supervisor what calls touch. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/path.h"
#include "policy/policy.h"
#include "sandbox/inside/tell.h"
#include "sandbox/inside/where.h"

bool cordon_tell_skips_free(const struct cordon_plan *plan)
{
	return plan->mode == CORDON_MODE_STRICT;
}

static bool moves_or_removes(const struct cordon_touch *touch)
{
	return cordon_streq(touch->op, "delete") || cordon_streq(touch->op, "rename");
}

/* Whether the call would move or remove a name that leads to a boundary. `path` is relative to the workspace. */
static bool is_guarded(const struct cordon_plan *plan, const struct cordon_touch *touch, const char *path)
{
	CORDON_UNCLEARED char inside[CORDON_PATH_MAX];

	return moves_or_removes(touch) && cordon_path_join(plan->at, path, inside, sizeof(inside)) == 0 &&
	       cordon_plan_guard_of_name(plan, inside);
}

bool cordon_tell_skips(const struct cordon_plan *plan, const struct cordon_policy *policy, int root_fd,
		       const struct cordon_touch *touch)
{
	const struct cordon_places places = { .plan = plan, .root_fd = root_fd };
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	CORDON_UNCLEARED struct cordon_decision decision;

	if (!touch->known || touch->nameless)
		return touch->nameless;
	/* When the workspace itself lies in a system directory, the text of a path is not enough. */
	if (!cordon_where_is_system(plan->at) && cordon_where_plainly_system(touch->path))
		return true;
	if (!cordon_where_plainly_within(&places, touch, path))
		return false;
	cordon_policy_decide(policy, path, touch->writes ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_ALLOW && !is_guarded(plan, touch, path);
}

static uint8_t op_number(const char *op)
{
	uint8_t i = 0;

	while (cordon_touch_ops[i] && !cordon_streq(cordon_touch_ops[i], op))
		i++;
	return i;
}

/* Puts a text behind the others; `used` is how many bytes they have. */
static uint32_t add_text(struct cordon_hand_message *message, size_t *used, const char *text)
{
	size_t at = *used, n = strlen(text) + 1;

	memcpy(message->texts + at, text, n);
	*used += n;
	return (uint32_t)at;
}

static void describe(struct cordon_hand_touch *ret, const struct cordon_touch *touch)
{
	*ret = (struct cordon_hand_touch){ .op = op_number(touch->op),
					   .writes = touch->writes,
					   .creates = touch->creates,
					   .if_missing = touch->if_missing,
					   .directory = touch->directory,
					   .follows = touch->follows,
					   .known = touch->known };
}

/* Whether a path that is skipped does not exist. */
static bool is_missing(const struct cordon_plan *plan, int root_fd, const struct cordon_touch *touch)
{
	struct stat st;

	return !plan->lens && fstatat(root_fd, touch->path + strspn(touch->path, "/"), &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

static bool is_look(const struct cordon_touch *touch)
{
	return cordon_streq(touch->op, "look");
}

bool cordon_tell_look(const struct cordon_plan *plan, const struct cordon_policy *policy, int root_fd, pid_t pid,
		      const struct cordon_touch *touches, size_t n, struct cordon_hand_message *ret)
{
	const struct cordon_places places = { .plan = plan, .root_fd = root_fd };
	static struct cordon_where where; /* static, because the hand has little stack to touch */
	bool any = false;
	size_t used = 0;

	ret->kind = CORDON_HAND_TOUCHES;
	ret->code = CORDON_ERROR_UNKNOWN;
	ret->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct cordon_touch *touch = &touches[i];
		struct cordon_hand_touch *told = &ret->touches[i];

		describe(told, touch);
		told->path_at = add_text(ret, &used, "");
		/* No rule can name so long a path, and one that is longer than any the kernel does not take. */
		told->plain = is_look(touch) || touch->deep || touch->too_long ||
			      cordon_tell_skips(plan, policy, root_fd, touch);
		told->exists = !touch->too_long;
		if (told->plain) {
			if (i == 0 && n == 2 && touch->known && !touch->creates && !touch->deep)
				told->exists = !is_missing(plan, root_fd, touch);
			continue;
		}
		if (touch->known && !cordon_where_find(&places, pid, touch, &where)) {
			told->plain = true;
			continue;
		}
		any = true;
		if (!touch->known)
			continue;
		told->shown = where.shown;
		told->exists = where.exists;
		told->unseen = where.unseen;
		told->type = where.type;
		told->path_at = add_text(ret, &used, where.inside);
	}
	return any;
}

/* Whether a path says nothing about what the next run needs. */
static bool is_no_sight(const struct cordon_plan *plan, const struct cordon_touch *touch)
{
	return !touch->known || touch->nameless || cordon_where_is_system(touch->path) ||
	       (!cordon_path_within(touch->path, plan->at) && cordon_plan_is_private(plan, touch->path));
}

bool cordon_tell_sight(const struct cordon_plan *plan, int root_fd, pid_t pid, const struct cordon_touch *touches,
		       size_t n, struct cordon_hand_message *ret)
{
	const struct cordon_places places = { .plan = plan, .root_fd = root_fd };
	static struct cordon_where where;
	static struct cordon_touch touch;
	size_t used = 0;

	ret->kind = CORDON_HAND_SIGHTS;
	ret->code = 0;
	ret->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct cordon_hand_touch *told = &ret->touches[ret->n];
		char clean[CORDON_PATH_MAX];

		if (is_no_sight(plan, &touches[i]))
			continue;
		touch = touches[i];
		touch.follows = !moves_or_removes(&touch) && !cordon_streq(touch.op, "create");
		if (!cordon_where_find(&places, pid, &touch, &where))
			continue;
		describe(told, &touch);
		told->shown = where.shown;
		told->exists = where.exists;
		told->type = where.type;
		told->linked = cordon_path_clean(touch.path, clean, sizeof(clean)) == 0 &&
			       !cordon_streq(clean, where.inside);
		told->path_at = add_text(ret, &used, where.inside);
		ret->n++;
	}
	return ret->n > 0;
}

void cordon_tell_path(struct cordon_hand_message *ret, cordon_hand_kind kind, int code, const char *op, const char *path)
{
	size_t used = 0;

	ret->kind = kind;
	ret->code = code;
	ret->n = 1;
	ret->touches[0] = (struct cordon_hand_touch){ 0 };
	ret->touches[0].op = op_number(op);
	ret->touches[0].known = ret->touches[0].shown = true;
	ret->touches[0].path_at = add_text(ret, &used, path);
}

void cordon_tell_send(const struct cordon_hand *hand, const struct cordon_hand_message *message, bool wait)
{
	size_t n = offsetof(struct cordon_hand_message, texts);
	ssize_t r;
	char done;

	for (uint32_t i = 0; i < message->n; i++) {
		size_t end = offsetof(struct cordon_hand_message, texts) + message->touches[i].path_at +
			     strlen(message->texts + message->touches[i].path_at) + 1;

		n = end > n ? end : n;
	}
	while ((r = send(hand->socket, message, n, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	while (r >= 0 && wait && (r = recv(hand->socket, &done, 1, 0)) < 0 && errno == EINTR)
		;
	if (r < 0 || (wait && r == 0))
		_exit(0);
}
