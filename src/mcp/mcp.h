/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP server without a transport: one dispatcher for both protocol eras.
 *
 * A transport hands in messages and gives each a channel to answer on. stdio has one channel for the life of the
 * process; HTTP has one per request in the modern era and one per session in the legacy era.
 *
 *     modern   a request that carries _meta["io.modelcontextprotocol/protocolVersion"], or is server/discover; it is
 *              served from what it says itself, whatever came before on the channel
 *     legacy   everything after an `initialize` without modern _meta; the choice belongs to the channel
 *
 * Tools, resources and prompts do not know the era; the envelope is put on where a result leaves. The server has no
 * threads: what takes long becomes a call that cordon_mcp_work() moves on when its descriptor or deadline is due.
 */
#ifndef CORDON_MCP_MCP_H
#define CORDON_MCP_MCP_H

#include <jansson.h>

#include "store/store.h"

#define CORDON_MCP_MODERN "2026-07-28"
#define CORDON_MCP_LEGACY "2025-11-25"

#define CORDON_MCP_MESSAGE_MAX ((size_t)4 << 20)
#define CORDON_MCP_CALLS_MAX 256
#define CORDON_MCP_LISTENS_MAX 4096
#define CORDON_MCP_LISTEN_URIS_MAX 256
#define CORDON_MCP_PAGE 100

struct cordon_mcp;

/* Where answers go. The transport fills in send and data before the first message and calls cordon_mcp_hang_up()
 * before it forgets the channel; the rest is the dispatcher's. */
struct cordon_mcp_channel {
	void (*send)(struct cordon_mcp_channel *channel, const json_t *message); /* the message stays the caller's */
	void *data;
	const char *principal; /* who is authenticated on it; NULL where the transport knows only one */
	bool initialized;      /* legacy: the handshake was made */
	char version[16];      /* legacy: what was agreed on */
	json_t *capabilities;  /* legacy: the client's */
	json_t *client;	       /* legacy: clientInfo */
	uint64_t next_request; /* legacy: ids of requests that we send */
};

struct cordon_mcp_offer;

struct cordon_mcp_options {
	const struct cordon_mcp_offer *offer; /* tools, resources and prompts to serve; NULL: cordon's own */
	const char *session;		      /* serve only what the agent of this session may have; NULL: everything */
	bool approved; /* the operator consented in advance to deletions and to settings that widen access */
};

int cordon_mcp_new(const struct cordon_store *store, const struct cordon_mcp_options *options,
		   struct cordon_mcp **ret_mcp, struct cordon_error *err);
struct cordon_mcp *cordon_mcp_free(struct cordon_mcp *mcp);

/* Handles one message. Whatever its bytes are, the answer is a proper one or, for a notification, none. */
void cordon_mcp_message(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, const char *text, size_t n);
/* Answers a message that was longer than CORDON_MCP_MESSAGE_MAX and was not kept. */
void cordon_mcp_too_long(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel);
/* The client is gone or the server stops: calls are forgotten, listens are answered where that still can be. `cancel`: a
 * disconnect counts as the cancellation of what is under way (modern HTTP); otherwise it goes on without a listener. */
void cordon_mcp_hang_up(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, bool cancel);

/* Readable when there is work; and milliseconds until there is, -1 for never. */
int cordon_mcp_fd(const struct cordon_mcp *mcp);
int cordon_mcp_timeout(const struct cordon_mcp *mcp);
void cordon_mcp_work(struct cordon_mcp *mcp);

/* What server/discover answers, for `cordon mcp --self-test`. A new reference. */
json_t *cordon_mcp_discover(struct cordon_mcp *mcp);

/* Serves the standard streams until the end of the input; a library function, so it prints nothing else. */
int cordon_mcp_stdio(struct cordon_mcp *mcp, int in_fd, int out_fd, struct cordon_error *err);

#endif
