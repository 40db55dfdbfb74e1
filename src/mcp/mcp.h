/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP server without a transport: one dispatcher for both protocol eras.
 *
 * A transport passes in messages and gives each a channel for the answers. stdio has one channel for the life of the
 * process; HTTP has one per request in the modern era and one per session in the legacy era.
 *
 *     modern   a request that has _meta["io.modelcontextprotocol/protocolVersion"], or is server/discover; the request
 *              itself has all that is needed to answer it, whatever came before on the channel
 *     legacy   everything after an `initialize` without modern _meta; the channel remembers it
 *
 * Tools, resources and prompts do not know the era; protocol.c adds the envelope to each result. The server has no
 * threads: what takes long becomes a call, and cordon_mcp_work() continues it when its descriptor or deadline is due.
 */
#ifndef CORDON_MCP_MCP_H
#define CORDON_MCP_MCP_H

#include <jansson.h>

#include "project/token.h"
#include "store/store.h"

#define CORDON_MCP_MODERN "2026-07-28"
#define CORDON_MCP_LEGACY "2025-11-25"

#define CORDON_MCP_MESSAGE_MAX ((size_t)4 << 20)
#define CORDON_MCP_VALUES_MAX 65536 /* of JSON in one message */
#define CORDON_MCP_DEPTH_MAX 128
#define CORDON_MCP_CALLS_MAX 4096
#define CORDON_MCP_CALLS_OF_ONE 1024 /* of one client, where there can be several */
#define CORDON_MCP_LISTENS_MAX 4096
#define CORDON_MCP_LISTEN_URIS_MAX 256
#define CORDON_MCP_PAGE 100

struct cordon_mcp;

/* What an authenticated client may do: its scope, in these projects only. */
struct cordon_mcp_grant {
	cordon_token_scope scope;
	const json_t *projects; /* ids; empty or NULL: all of them, and what belongs to none */
};

/* What the headers of an HTTP request say about its body; NULL for a header that it does not have. */
struct cordon_mcp_headers {
	const char *version, *method, *name;
};

/* The channel for answers. The transport sets send and data before the first message and calls
 * cordon_mcp_close_channel() before it forgets the channel; the other fields belong to the dispatcher. */
struct cordon_mcp_channel {
	void (*send)(struct cordon_mcp_channel *channel,
		     const json_t *message); /* the caller keeps the reference to the message */
	void *data;
	const char *principal;			  /* the authenticated client; NULL where the transport has only one */
	const struct cordon_mcp_grant *grant;	  /* what it may do; NULL: everything */
	const struct cordon_mcp_headers *headers; /* HTTP only; they must fit the message */
	/* Legacy HTTP: the channel of the session, which outlives the request. A request is cancelled and a question is
	 * answered by another request of the session. NULL: the channel itself. */
	struct cordon_mcp_channel *session;
	bool malformed;	       /* the request is refused whatever it asks for; HTTP says 400 */
	bool initialized;      /* legacy: the handshake was made */
	char version[16];      /* legacy: the version that both sides agreed on */
	json_t *capabilities;  /* legacy: the client's */
	json_t *client;	       /* legacy: clientInfo */
	uint64_t next_request; /* legacy: ids of requests that we send */
};

struct cordon_mcp_offer;

struct cordon_mcp_options {
	const struct cordon_mcp_offer *offer; /* tools, resources and prompts to serve; NULL: cordon's own */
	const char *session;		      /* serve only what the agent of this session may have; NULL: everything */
	const unsigned char *key; /* 32 bytes that authenticate approvals across restarts; NULL: made for this process */
	const char *toolset;	  /* serve only these: names of tools or their first words, with commas; NULL: manage */
	bool approved;		  /* the operator consented in advance to deletions and to settings that widen access */
};

/* Parses a message, whose values are bounded; else NULL, and where->text says why. */
json_t *cordon_mcp_parse(const char *text, size_t n, json_error_t *ret_where);

int cordon_mcp_new(const struct cordon_store *store, const struct cordon_mcp_options *options,
		   struct cordon_mcp **ret_mcp, struct cordon_error *err);
struct cordon_mcp *cordon_mcp_free(struct cordon_mcp *mcp);

/* Handles one message. It answers every message properly, whatever its bytes are, and a notification not at all. */
void cordon_mcp_message(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, const char *text, size_t n);
/* The same for a message that the transport has parsed; a NULL message is one that could not be, because of `why`. */
void cordon_mcp_take(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, json_t *message, const char *why);
/* Whether a message is of the modern era; `headers` may be NULL. */
bool cordon_mcp_is_modern(const json_t *message, const struct cordon_mcp_headers *headers);
/* Whether it is a version that this server speaks. */
bool cordon_mcp_speaks(const char *version);
/* Answers a message that was longer than CORDON_MCP_MESSAGE_MAX and was discarded. */
void cordon_mcp_too_long(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel);
/* The client has gone or the server stops: drops the calls of the channel, and answers its subscriptions where that is
 * still possible. With `cancel` the calls are cancelled (modern HTTP: a disconnect is a cancellation); without,
 * sessions go on. */
void cordon_mcp_close_channel(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, bool cancel);

/* Legacy HTTP: the client listens to the channel of its session now, so it is told when the list of resources changes. */
void cordon_mcp_listen_lists(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel);
/* Whether the channel has subscriptions. */
bool cordon_mcp_listens(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel);
/* Whether a call of the channel is not answered yet. */
bool cordon_mcp_is_calling(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel);

/* The descriptor is readable when there is work; the timeout is the number of milliseconds until there is, -1 for
 * never. */
int cordon_mcp_fd(const struct cordon_mcp *mcp);
int cordon_mcp_timeout(const struct cordon_mcp *mcp);
/* Returns whether a call is active that must be answered even after the end of the input: a start, which ends soon. A
 * transport goes on after the end of its input for as long as this is true. */
bool cordon_mcp_must_answer(const struct cordon_mcp *mcp);
void cordon_mcp_work(struct cordon_mcp *mcp);

/* Returns the answer to server/discover, for `cordon mcp --self-test`. A new reference. */
json_t *cordon_mcp_discover(struct cordon_mcp *mcp);

/* Serves two descriptors until the end of the input. It is a library function, so it prints nothing else. */
int cordon_mcp_stdio(struct cordon_mcp *mcp, int in_fd, int out_fd, struct cordon_error *err);

#endif
