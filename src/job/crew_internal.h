/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a crew share: its directory (crew_files.c) and the supervisor of one job (crew_job.c). */
#ifndef CORDON_JOB_CREW_INTERNAL_H
#define CORDON_JOB_CREW_INTERNAL_H

#include "job/crew.h"

#define CORDON_CREW_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define CORDON_CREW_CANCEL "cancel" /* the directory of requests */
#define CORDON_CREW_JOBS "jobs"
#define CORDON_CREW_JOBS_BYTES_MAX ((size_t)CORDON_CREW_JOBS_MAX * (CORDON_CREW_NAME_MAX + 1))
#define CORDON_CREW_OWNER "owner"
#define CORDON_CREW_ALIVE "alive"

/* Makes the directory of a crew, and takes the owner's lock before anybody can see the directory. `info` is complete
 * except for `owned`. */
int cordon_crew_make(const struct cordon_home *home, const struct cordon_crew_info *info, int *ret_crew_fd,
		     int *ret_owner_fd, struct cordon_error *err);
int cordon_crew_info_read(int crew_fd, struct cordon_crew_info *ret_info, struct cordon_error *err);

/* Makes the directory of a job that starts, and takes the lock of its supervisor before anybody can see the
 * directory. */
int cordon_crew_job_make(int crew_fd, size_t index, int *ret_dir_fd, int *ret_alive_fd, struct cordon_error *err);
/* Returns a descriptor or -errno; -ENOENT for a job that has not started. */
int cordon_crew_job_open(int crew_fd, size_t index);
/* Fills in everything except index and name from the disk. `owned` says whether the owner of the crew lives. */
void cordon_crew_job_read(int crew_fd, size_t index, bool owned, struct cordon_job *job);
/* What a supervisor writes: a record before the program runs, which a rename makes visible when it runs, so that the
 * start does not wait for a file; and the result when the program has ended. `job` has index, name and run_id. */
int cordon_crew_job_prepare(int dir_fd, const struct cordon_job *job, const struct cordon_run_spec *spec,
			    struct cordon_error *err);
void cordon_crew_job_running(int dir_fd);
int cordon_crew_result_write(int dir_fd, const struct cordon_job *job, const struct cordon_result *result,
			     bool log_failed, bool durable, struct cordon_error *err);

/* Whether a process holds the FIFO of this name: CORDON_CREW_OWNER or CORDON_CREW_ALIVE. */
bool cordon_crew_held(int dir_fd, const char *name);

/* Requests to cancel; nobody removes them. `index` of the first may be CORDON_CREW_ALL. The second is true for a job
 * that was asked to be cancelled by itself or with all others. */
int cordon_crew_request(int crew_fd, size_t index);
bool cordon_crew_requested(int crew_fd, size_t index);
/* Calls `take` for each of them. */
void cordon_crew_requests(int crew_fd, void (*take)(void *data, size_t index), void *data);

/* Wakes the process that holds this FIFO, if there is one. */
void cordon_crew_wake(int dir_fd, const char *name);
/* For the holder: empties the FIFO; true when somebody had written to it. */
bool cordon_crew_woken(int fd);

/* The orders of the owner to a supervisor, one byte each. */
enum { CORDON_CREW_ORDER_CANCEL = 'c', CORDON_CREW_ORDER_KILL = 'k' };

/* What the owner passes to a supervisor. */
struct cordon_crew_start {
	const struct cordon_job *job; /* only index and name are set */
	const struct cordon_job_spec *spec;
	bool detached, repeatable;
	int crew_fd, dir_fd;
	int alive_fd; /* the FIFO, locked */
	int owner;    /* the supervisor's end of the socket to the owner */
};

/* Starts the supervisor, a child that runs the job. Returns its number or -errno. */
pid_t cordon_crew_supervise(const struct cordon_crew_start *start);

#endif
