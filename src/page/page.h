/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page for the people who answer for agents: what runs, what waits for a person, what was refused, what a view
 * would change. A request comes in as plain data and a whole answer goes out; nothing here knows sockets, cookies or
 * HTTP's syntax. cordon-serve calls it in a child process for each request (serve/worker.c), so an answer may take its
 * time and a fault in rendering hostile bytes ends nothing else.
 *
 * INVARIANT: everything that an agent wrote (names, output, diffs, messages) is text. Markup comes from literals of
 * this room alone; html.h is the only way to add the rest.
 */
#ifndef CORDON_PAGE_PAGE_H
#define CORDON_PAGE_PAGE_H

#include "base/buf.h"
#include "store/store.h"

#define CORDON_PAGE_BODY_MAX ((size_t)2 << 20)	/* of a form */
#define CORDON_PAGE_SIZE_MAX ((size_t)64 << 20) /* of an answer */
#define CORDON_PAGE_TOKEN_SIZE 65		/* hexadecimal text */

struct cordon_page_answer;

struct cordon_page_request {
	const struct cordon_store *store;
	const char *method; /* "GET" or "POST" */
	const char *path;   /* decoded, as "/session/UUID" */
	const char *query;  /* as it stands behind the question mark, or "" */
	const char *body;   /* of a POST: a form, as browsers encode it */
	size_t body_size;
	const char *who;   /* the person, for the audit log: "uid:0" */
	const char *token; /* every form of this login has it in the field "token"; "" refuses all forms */
	/* Takes what is ready of the body, before the answer is whole; NULL: nobody waits for it. */
	void (*send)(void *data, const struct cordon_page_answer *answer, const char *bytes, size_t n);
	void *data;
};

struct cordon_page_answer {
	int status;
	const char *type;	/* media type */
	char location[512];	/* of a redirect, or "" */
	char file[128];		/* the name of a download, or "" */
	struct cordon_buf body; /* what was not sent yet */
};

/* Whether a path has a page for this method: 200, 404 or 405. Needs no login. */
int cordon_page_find(const char *path, const char *method);
/* Always gives an answer. The caller frees its body. */
void cordon_page_serve(const struct cordon_page_request *request, struct cordon_page_answer *ret_answer);
/* The page of somebody who is not logged in, or may not go on, with what to do about it. */
void cordon_page_refuse(int status, const char *why, struct cordon_page_answer *ret_answer);

/* Style sheet and script. Returns -ENOENT for any other path. */
int cordon_page_asset(const char *path, const char **ret_bytes, size_t *ret_size, const char **ret_type);

#endif
