/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the hand (sandbox/inside/hand.h): sends it requests to make entries in held directories. */
#ifndef CORDON_SANDBOX_WATCH_HAND_ASK_H
#define CORDON_SANDBOX_WATCH_HAND_ASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "sandbox/inside/hand.h"

struct cordon_hand {
	pthread_mutex_t lock; /* the hand serves one request at a time */
	int fd;		      /* -1 until the first request: most runs make nothing in a held directory */
	atomic_int pid;	      /* its pid inside, by which the lens recognises it; 0 while there is no hand */
	bool too_large;	      /* the last request was to rename a directory of a view with too much in it */
	int ctl;	      /* the notice socket to PID 1, which starts the hand; borrowed */
};

/* Sends one request and waits for the reply; starts the hand first when there is none. `dirs` are the directory of
 * `name` and the second descriptor, or -1. *ret_fd is -1 unless a file was opened. Returns the hand's result;
 * -ECANCELED when a signal comes and *stop is set; -EPIPE when the hand is gone, and then the next request starts
 * another one. */
int cordon_hand_ask(struct cordon_hand *hand, const struct cordon_hand_request *request, const int dirs[static 2],
		    const atomic_bool *stop, int *ret_fd);

#endif
