/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: made with its store, called when something is due, freed by its transport. */
#include <limits.h>
#include <malloc.h>
#include <sodium.h>
#include <sys/epoll.h>

#include "base/secret.h"
#include "base/time.h"
#include "mcp/internal.h"

/* A child is forked for much of the work (apart.c). With fast bins, the first large request for memory there would sort out, and so copy,
 * all that the server has. */
static void prepare_memory(void)
{
	(void)mallopt(M_MXFAST, 0);
}

int cordon_mcp_new(const struct cordon_store *store, const struct cordon_mcp_options *options,
		   struct cordon_mcp **ret_mcp, struct cordon_error *err)
{
	struct cordon_mcp *mcp = calloc(1, sizeof(*mcp));
	struct cordon_audit_ids nobody = { 0 };
	int r;

	if (!mcp)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	prepare_memory();
	cordon_settings_name();
	mcp->store = store;
	mcp->options = *options;
	mcp->offer = options->offer ? options->offer : &cordon_mcp_own_offer;
	if (sodium_init() < 0) {
		free(mcp);
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium can't be used");
	}
	mcp->epoll_fd = -1;
	mcp->notice_due = INT64_MAX;
	mcp->key = cordon_secret_new(CORDON_MCP_KEY_SIZE);
	if (!mcp->key) {
		r = cordon_fail_errno(err, -errno, "no memory for a key");
		cordon_mcp_free(mcp);
		return r;
	}
	if (options->key)
		memcpy(mcp->key, options->key, CORDON_MCP_KEY_SIZE);
	else
		randombytes_buf(mcp->key, CORDON_MCP_KEY_SIZE);
	r = cordon_mcp_toolset_check(mcp, err);
	if (r < 0) {
		cordon_mcp_free(mcp);
		return r;
	}
	mcp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mcp->epoll_fd < 0) {
		r = cordon_fail_errno(err, -errno, "epoll_create1");
		cordon_mcp_free(mcp);
		return r;
	}
	r = cordon_mcp_watcher_new(mcp);
	if (r < 0)
		r = cordon_fail_errno(err, r, "inotify");
	else
		r = cordon_audit_open(&store->home, &nobody, &mcp->audit, err);
	if (r < 0) {
		cordon_mcp_free(mcp);
		return r;
	}
	*ret_mcp = mcp;
	return 0;
}

struct cordon_mcp *cordon_mcp_free(struct cordon_mcp *mcp)
{
	if (!mcp)
		return NULL;
	cordon_mcp_watcher_free(mcp);
	cordon_closep(&mcp->epoll_fd);
	cordon_audit_close(mcp->audit);
	json_decref(mcp->schemas);
	cordon_mcp_apart_free(mcp);
	cordon_secret_free(mcp->key, CORDON_MCP_KEY_SIZE);
	free(mcp);
	return NULL;
}

int cordon_mcp_fd(const struct cordon_mcp *mcp)
{
	return mcp->epoll_fd;
}

int cordon_mcp_timeout(const struct cordon_mcp *mcp)
{
	int64_t due = cordon_mcp_watcher_due(mcp);
	int64_t now = cordon_time_monotonic();

	if (mcp->notice_due < due)
		due = mcp->notice_due;
	if (cordon_mcp_apart_due(mcp, now) < due)
		due = cordon_mcp_apart_due(mcp, now);
	for (const struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
		if (call->due < due)
			due = call->due;
	if (due == INT64_MAX)
		return -1;
	if (due <= now)
		return 0;
	return due - now > INT_MAX ? INT_MAX : (int)(due - now);
}

bool cordon_mcp_must_answer(const struct cordon_mcp *mcp)
{
	for (const struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
		if (call->kept)
			return true;
	return false;
}

void cordon_mcp_work(struct cordon_mcp *mcp)
{
	int64_t now = cordon_time_monotonic();

	cordon_mcp_watcher_work(mcp, now);
	cordon_mcp_calls_work(mcp, now);
	cordon_approval_notice_work(mcp->store, now, &mcp->notice_due);
	cordon_mcp_apart_reap(mcp);
}

void cordon_mcp_close_channel(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, bool cancel)
{
	cordon_mcp_calls_close_channel(mcp, channel, cancel);
	cordon_mcp_listens_close_channel(mcp, channel);
	json_decref(channel->capabilities);
	json_decref(channel->client);
	channel->capabilities = NULL;
	channel->client = NULL;
}
