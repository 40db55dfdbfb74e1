/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions: subscriptions/listen of the modern era, resources/subscribe and list_changed of the legacy era. */
#include "mcp/internal.h"

/* A legacy channel has one of these for all its subscriptions; it has no id. */
struct cordon_mcp_listen {
	struct cordon_mcp_listen *next;
	struct cordon_mcp_channel *channel;
	json_t *id; /* of the listen request; NULL for legacy */
	bool lists; /* reports changes of the list of resources */
	struct cordon_mcp_uri *uris;
	size_t n_uris;
};

static const struct cordon_mcp_uri projects = { .place = CORDON_MCP_PROJECTS };

static void drop(struct cordon_mcp *mcp, struct cordon_mcp_listen *listen)
{
	struct cordon_mcp_listen **link = &mcp->listens;

	while (*link != listen)
		link = &(*link)->next;
	*link = listen->next;
	mcp->n_listens--;
	for (size_t i = 0; i < listen->n_uris; i++)
		cordon_mcp_unwatch(mcp, &listen->uris[i]);
	if (listen->lists)
		cordon_mcp_unwatch(mcp, &projects);
	json_decref(listen->id);
	free(listen->uris);
	free(listen);
}

static struct cordon_mcp_listen *add(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, json_t *id)
{
	struct cordon_mcp_listen *listen = mcp->n_listens < CORDON_MCP_LISTENS_MAX ? calloc(1, sizeof(*listen)) : NULL;

	if (!listen)
		return NULL;
	listen->channel = channel;
	listen->id = json_incref(id);
	listen->next = mcp->listens;
	mcp->listens = listen;
	mcp->n_listens++;
	return listen;
}

static struct cordon_mcp_listen *find(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel,
				      const json_t *id)
{
	for (struct cordon_mcp_listen *listen = mcp->listens; listen; listen = listen->next)
		if (listen->channel == channel && (id ? listen->id && json_equal(listen->id, id) : !listen->id))
			return listen;
	return NULL;
}

/* Watches one resource for a subscription. Returns false when there is no such resource, or too many are watched. */
static bool watch(struct cordon_mcp *mcp, struct cordon_mcp_listen *listen, const char *text)
{
	struct cordon_mcp_uri uri, *grown;

	if (listen->n_uris == CORDON_MCP_LISTEN_URIS_MAX || mcp->offer->uri_parse(text, &uri) < 0 ||
	    !cordon_mcp_bound_resource(mcp, &uri) || !cordon_mcp_scope_resource(mcp, listen->channel, &uri))
		return false;
	grown = realloc(listen->uris, (listen->n_uris + 1) * sizeof(*grown));
	if (!grown)
		return false;
	listen->uris = grown;
	if (cordon_mcp_watch(mcp, &uri) < 0)
		return false;
	listen->uris[listen->n_uris++] = uri;
	return true;
}

bool cordon_mcp_listen_has(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id)
{
	return find(mcp, channel, id) != NULL;
}

bool cordon_mcp_listens(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel)
{
	const struct cordon_mcp_listen *listen = find(mcp, channel, NULL);

	return listen && listen->n_uris;
}

static json_t *subscription_meta(json_t *id)
{
	return json_pack("{s:O}", CORDON_META_SUBSCRIPTION, id);
}

/* Checks the types in the filter. The acknowledgement leaves out what is asked for and not available. */
static int check_filter(const json_t *filter, struct cordon_mcp_fault *fault)
{
	static const char *const flags[] = { "toolsListChanged", "promptsListChanged", "resourcesListChanged" };
	const json_t *uris = json_object_get(filter, "resourceSubscriptions");
	size_t i;
	json_t *item;

	if (!json_is_object(filter))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "notifications must be an object");
	for (i = 0; i < CORDON_ARRAY_SIZE(flags); i++) {
		item = json_object_get(filter, flags[i]);
		if (item && !json_is_boolean(item))
			return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "notifications.%s must be a boolean",
					       flags[i]);
	}
	if (uris && !json_is_array(uris))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
				       "notifications.resourceSubscriptions must be an array");
	if (json_array_size(uris) > CORDON_MCP_LISTEN_URIS_MAX)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
				       "at most %d resources can be listened to at once", CORDON_MCP_LISTEN_URIS_MAX);
	json_array_foreach(uris, i, item) {
		if (!json_is_string(item))
			return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
					       "notifications.resourceSubscriptions must hold strings");
	}
	return 0;
}

int cordon_mcp_listen(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const json_t *filter = json_object_get(request->params, "notifications");
	struct cordon_mcp_listen *listen;
	json_t *agreed, *uris, *uri;
	size_t i;
	int r = check_filter(filter, fault);

	(void)ret_result;
	if (r < 0)
		return r;
	listen = add(request->mcp, request->channel, request->id);
	if (!listen)
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "too many subscriptions");
	agreed = json_object();
	/* Tools and prompts never change here, so the server does not offer to report it. */
	if (cordon_json_true(filter, "resourcesListChanged") && cordon_mcp_watch(request->mcp, &projects) == 0) {
		listen->lists = true;
		json_object_set_new(agreed, "resourcesListChanged", json_true());
	}
	uris = json_array();
	json_array_foreach(json_object_get(filter, "resourceSubscriptions"), i, uri) {
		if (watch(request->mcp, listen, json_string_value(uri)))
			json_array_append(uris, uri);
	}
	if (json_array_size(uris))
		json_object_set(agreed, "resourceSubscriptions", uris);
	json_decref(uris);
	cordon_mcp_notify(request->channel, "notifications/subscriptions/acknowledged",
			  json_pack("{s:o, s:o}", "_meta", subscription_meta(request->id), "notifications", agreed));
	return CORDON_MCP_LATER;
}

/* Returns the legacy subscriptions of a channel. They are made with the first one, or when the handshake has ended. */
static struct cordon_mcp_listen *legacy(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel)
{
	struct cordon_mcp_listen *listen = find(mcp, channel, NULL);

	return listen ? listen : add(mcp, channel, NULL);
}

void cordon_mcp_listen_lists(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel)
{
	struct cordon_mcp_listen *listen = legacy(mcp, cordon_mcp_session(channel));

	if (listen && !listen->lists)
		listen->lists = cordon_mcp_watch(mcp, &projects) == 0;
}

int cordon_mcp_subscribe(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const char *text = cordon_json_string(request->params, "uri");
	struct cordon_mcp_listen *listen;

	if (!text)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "a uri is needed");
	listen = legacy(request->mcp, cordon_mcp_session(request->channel));
	if (!listen || !watch(request->mcp, listen, text)) {
		fault->data = json_pack("{s:s}", "uri", text);
		return cordon_mcp_fail(fault, CORDON_MCP_OLD_NOT_FOUND, "Resource not found");
	}
	*ret_result = json_object();
	return 0;
}

int cordon_mcp_unsubscribe(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	struct cordon_mcp_listen *listen = find(request->mcp, cordon_mcp_session(request->channel), NULL);
	const char *text = cordon_json_string(request->params, "uri");
	struct cordon_mcp_uri uri;

	if (!text)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "a uri is needed");
	if (listen && request->mcp->offer->uri_parse(text, &uri) == 0) {
		for (size_t i = 0; i < listen->n_uris; i++) {
			if (!cordon_mcp_uri_same(&listen->uris[i], &uri))
				continue;
			cordon_mcp_unwatch(request->mcp, &uri);
			listen->uris[i] = listen->uris[--listen->n_uris];
			break;
		}
	}
	*ret_result = json_object();
	return 0;
}

void cordon_mcp_listen_cancel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id)
{
	struct cordon_mcp_listen *listen = find(mcp, channel, id);

	if (listen)
		drop(mcp, listen);
}

/* When the server ends a subscription, one page of the specification demands notifications/cancelled and another a
 * result. Sending both satisfies either. */
void cordon_mcp_listens_close_channel(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel)
{
	struct cordon_mcp_listen *next;

	for (struct cordon_mcp_listen *listen = mcp->listens; listen; listen = next) {
		struct cordon_mcp_request request = { .mcp = mcp, .channel = channel, .id = listen->id, .modern = true };

		next = listen->next;
		if (listen->channel != channel)
			continue;
		if (listen->id) {
			cordon_mcp_notify(channel, "notifications/cancelled",
					  json_pack("{s:O, s:s}", "requestId", listen->id, "reason", "the server stops"));
			cordon_mcp_send_result(&request, json_pack("{s:o}", "_meta", subscription_meta(listen->id)));
		}
		drop(mcp, listen);
	}
}

static void notify(const struct cordon_mcp_listen *listen, const char *method, const char *uri)
{
	cordon_mcp_notify(listen->channel, method,
			  json_pack("{s:o*, s:s*}", "_meta", listen->id ? subscription_meta(listen->id) : NULL, "uri",
				    uri));
}

void cordon_mcp_listens_changed(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri)
{
	char text[CORDON_MCP_URI_SIZE];

	if (mcp->offer->uri_text(uri, text, sizeof(text)) < 0)
		return;
	for (const struct cordon_mcp_listen *listen = mcp->listens; listen; listen = listen->next) {
		if (listen->lists && uri->place == CORDON_MCP_PROJECTS)
			notify(listen, "notifications/resources/list_changed", NULL);
		for (size_t i = 0; i < listen->n_uris; i++)
			if (cordon_mcp_uri_same(&listen->uris[i], uri))
				notify(listen, "notifications/resources/updated", text);
	}
}
