/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages are made by child processes, one for each request: the server goes on with others while a page reads a long log
 * or an action applies ten thousand files, and a fault in rendering hostile bytes ends only that child. The child has
 * the store and a pipe, and none of the server's other descriptors.
 */
#ifndef CORDON_SERVE_WORKER_H
#define CORDON_SERVE_WORKER_H

#include "page/page.h"

#define CORDON_WORKERS_MAX 16 /* pages at once, and as many actions */

struct cordon_exchange;
struct cordon_server;

/* What the child sends before the body. */
struct cordon_worker_head {
	int status;
	pid_t browser; /* the process that asked, if it was looked for */
	char type[64];
	char location[sizeof(((struct cordon_page_answer *)NULL)->location)];
	char file[sizeof(((struct cordon_page_answer *)NULL)->file)];
};

struct cordon_worker {
	struct cordon_worker *next;
	struct cordon_exchange *exchange; /* NULL when nobody waits for the answer any more */
	pid_t pid;
	int fd;	      /* the pipe */
	bool acts;    /* it changes something, so it is left to end by itself */
	bool watched; /* the loop looks at the pipe */
	size_t got;   /* bytes of the head that were read */
	struct cordon_worker_head head;
};

/* Begins to make the answer to a request whose body, if it has one, was read. -EAGAIN when there are too many. */
int cordon_worker_start(struct cordon_exchange *exchange, const char *method, const char *path, const char *query);
/* Reads what the child has written; called when the pipe is readable. */
void cordon_worker_read(struct cordon_server *server, int fd);
/* The exchange has sent what it had, and has room for more. */
void cordon_worker_more(struct cordon_worker *worker);
/* Nobody waits for the answer any more. */
void cordon_worker_leave(struct cordon_worker *worker);
/* The server ends. Actions go on without it. */
void cordon_workers_free(struct cordon_server *server);

#endif
