/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy-on-write views on disk. A view is a root as a run may change it: what the run writes goes into the upper layer
 * of an overlay, and the host's tree stays as it is until somebody applies the changes.
 *
 *     state/views/<id>/              locked by whoever runs in the view or works on its changes
 *     state/views/<id>/record.json   the record below; written last when a view is made, removed first when it goes
 *     state/views/<id>/policy        the policy of the run, as policy/handover.h writes it
 *     state/views/<id>/upper/        the upper layer; work/ beside it belongs to the kernel
 *     state/views/<id>/git/          the run's own git directory, if its commits are to be taken over
 *     state/views/<id>/journal/, preimages/   applying and undoing
 *
 * INVARIANT: everything below upper/ and git/ was made by the run and is hostile. It is opened by descriptor, no link
 * is followed, and nothing of it is believed. All else in a view is ours.
 */
#ifndef CORDON_VIEW_VIEW_H
#define CORDON_VIEW_VIEW_H

#include <jansson.h>
#include <time.h>

#include "base/home.h"
#include "config/values.h"
#include "policy/policy.h"
#include "store/records.h"

#define CORDON_VIEW_UPPER "upper"
#define CORDON_VIEW_WORK "work"
#define CORDON_VIEW_GIT "git"
#define CORDON_VIEW_LAYERS_MAX 64
#define CORDON_VIEW_LASTING_SIZE 320

typedef enum cordon_view_state {
	CORDON_VIEW_LIVE,      /* its run has not ended */
	CORDON_VIEW_ENDED,     /* its changes wait for a decision */
	CORDON_VIEW_APPLIED,   /* its changes are in the host's tree */
	CORDON_VIEW_DISCARDED, /* its changes are gone */
	CORDON_VIEW_STATE__MAX
} cordon_view_state;

/* What the run may do with the repository. */
typedef enum cordon_view_git {
	CORDON_VIEW_GIT_NONE,
	CORDON_VIEW_GIT_READ,
	CORDON_VIEW_GIT_COMMIT,
	CORDON_VIEW_GIT__MAX
} cordon_view_git;

/* What the record of a view says about a mode. */
cordon_view_git cordon_view_git_of(cordon_git_mode mode);

/* A point in time, by the clock of file times. */
struct cordon_view_time {
	int64_t sec, nsec;
	json_t *other;
};

struct cordon_view_record {
	char id[CORDON_ID_SIZE];
	char *root; /* the host's directory, canonical */
	/* Of the root. The first is another number when the machine starts again; then the last one says whether it is
	 * the same directory. "": the file system does not say. */
	int64_t dev, ino;
	char lasting[CORDON_VIEW_LASTING_SIZE];
	/* What the host changed before the start has an earlier ctime, and what it changes after the run has begun has
	 * a later one or this one. */
	struct cordon_view_time started;
	struct cordon_view_time ended;	   /* 0 while it is live, or when its process was killed */
	char created_at[CORDON_TIME_SIZE]; /* the start, for people */
	char run[CORDON_ID_SIZE];
	char session[CORDON_ID_SIZE]; /* "" when it belongs to no session */
	json_t *layers; /* ids of views whose upper layers lie between this one's and the root, topmost first */
	cordon_view_state state;
	bool lost; /* its process was killed before it could record the end */
	cordon_view_git git;
	json_t *command; /* strings, escaped for people */
	json_t *other;
};

/* An open view. */
struct cordon_view {
	int dir_fd;		    /* state/views/<id> */
	int lock_fd;		    /* or -1 when we do not hold it */
	char path[CORDON_PATH_MAX]; /* of the directory, absolute */
	struct cordon_view_record record;
};

/* clang-format off */
#define CORDON_VIEW_NONE { .dir_fd = -1, .lock_fd = -1 }
/* clang-format on */
#define autoview CORDON_CLEANUP(cordon_view_close)

struct cordon_view_request {
	const char *id; /* a UUID that no view has, for callers that record it first; NULL: a new one */
	const struct cordon_policy *policy; /* of the run; its root becomes the lower layer */
	char *const *argv;		    /* for people */
	const char *session;		    /* or NULL */
	cordon_view_git git;
	const json_t *layers; /* ids, topmost first; or NULL */
};

/* Makes a view for a run that starts now. The caller holds its lock until cordon_view_close(). The work does not grow
 * with the tree. */
int cordon_view_create(const struct cordon_home *home, const struct cordon_view_request *request,
		       struct cordon_view *ret_view, struct cordon_error *err);

/*
 * Finds a view by its id, by the first characters of one (at least 4), or by "latest": the newest that has changes of
 * the root `root_fd` (-1: of any root). kind not_found when there is none, usage when there are several.
 */
int cordon_view_find(const struct cordon_home *home, const char *text, int root_fd, char ret_id[static CORDON_ID_SIZE],
		     struct cordon_error *err);
/* Opens a view by its whole id and reads its record; takes no lock. A view that says it is live and whose process was
 * killed is recorded as ended now. */
int cordon_view_open(const struct cordon_home *home, const char *id, struct cordon_view *ret_view,
		     struct cordon_error *err);
/* Accepts CORDON_VIEW_NONE, and a second call. Releases the lock. */
void cordon_view_close(struct cordon_view *view);

/* Takes the lock of an open view, and reads the record again. Never waits: kind conflict when its run has not ended, or
 * when another process works on it. */
int cordon_view_lock(struct cordon_view *view, struct cordon_error *err);
/* Writes the record, durably. Only the holder of the lock may call it. */
int cordon_view_save(struct cordon_view *view, struct cordon_error *err);
/* Records that the run has ended. A view in which nothing changed is removed instead, unless `keep`; then *ret_removed
 * is true and the view is closed. The caller holds the lock. */
int cordon_view_end(const struct cordon_home *home, struct cordon_view *view, const char *run_id, bool keep,
		    bool *ret_removed, struct cordon_error *err);

/* How a program works in its root. */
struct cordon_view_work {
	struct cordon_policy *policy; /* the spec's; it is changed for the repository, and serves no other run afterwards */
	bool cow;		      /* in a new view */
	cordon_git_mode git;	      /* what was asked for */
	bool git_chosen;	      /* nobody asked: it is what cordon_git_mode_choose() answered */
	const char *session;	      /* or NULL */
	char *ret_git_id; /* CORDON_ID_SIZE bytes: the id of the record of commits, if one is made; or NULL */
	struct cordon_git_take **ret_take; /* what became of commits where there is no view; the caller frees it. Or NULL */
};

/*
 * cordon_run() for everybody who gives a program a root to work in: makes the view and the git directory that the run
 * gets, runs, records the end of the view, or takes over the commits where there is none. Where nobody asked for a mode
 * of git, a policy with a scope decides itself what the run sees of the repository. The result's view_id is "" when the
 * run changed nothing; its `git` says what became of commits. The home is used only for a view and for commits.
 */
int cordon_view_run(const struct cordon_home *home, const struct cordon_run_spec *spec,
		    const struct cordon_view_work *ask, const struct cordon_observer *observer,
		    struct cordon_result *ret_result, struct cordon_error *err);
/* cordon_run_plan() for the same run; names a place where the view would be. Nothing stays of what it makes. */
int cordon_view_plan(const struct cordon_home *home, const struct cordon_run_spec *spec,
		     const struct cordon_view_work *ask, struct cordon_plan **ret_plan, struct cordon_error *err);
/* Removes the view and closes it. The caller holds the lock. Killed at any moment it leaves nothing that
 * cordon_view_gc() does not remove. */
int cordon_view_remove(const struct cordon_home *home, struct cordon_view *view, struct cordon_error *err);

/* Opens the root of a view (O_RDONLY), and makes sure that it is the same directory as at the start. */
int cordon_view_root(const struct cordon_view *view, int *ret_fd, struct cordon_error *err);
/* The policy under which the run worked, for the root as it is now. The caller frees it. */
int cordon_view_policy(const struct cordon_view *view, struct cordon_policy **ret_policy, struct cordon_error *err);

/* Views, oldest first. */
struct cordon_view_list {
	struct cordon_view_record *items;
	size_t n, space;
};

#define autoviewlist CORDON_CLEANUP(cordon_view_list_done)

/* Lists the views of a root (-1: of any root). Leaves out those whose record can't be read. */
int cordon_view_list(const struct cordon_home *home, int root_fd, struct cordon_view_list *ret_list,
		     struct cordon_error *err);
void cordon_view_list_done(struct cordon_view_list *list);

/* Removes what a killed process left half made, and the views that were applied or discarded more than max_age_ms ago.
 * Views whose changes wait for a decision stay. */
struct cordon_view_counts {
	size_t removed, waiting, live;
};

#define CORDON_VIEW_KEEP_MS ((uint64_t)7 * 24 * 3600 * 1000)
int cordon_view_gc(const struct cordon_home *home, uint64_t max_age_ms, struct cordon_view_counts *ret_counts,
		   struct cordon_error *err);

void cordon_view_record_done(struct cordon_view_record *record);
/* What people see of a record, a new reference; NULL when there is no memory. */
json_t *cordon_view_json(const struct cordon_view_record *record);
const char *cordon_view_state_name(cordon_view_state state);

#endif
