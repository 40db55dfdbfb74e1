/* SPDX-License-Identifier: Apache-2.0 */
/* Allowances of hosts and paths: judged, compared with settings, and added to them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "approval/allowance.h"
#include "base/json.h"
#include "base/path.h"
#include "config/net_setting.h"
#include "config/values.h"
#include "state/record.h"

#define RO ":ro"

static int make_host(const char *host, json_t **ret_allowance, struct cordon_error *err)
{
	struct cordon_net_rule rule;
	char text[CORDON_NET_RULE_SIZE];
	int r = cordon_net_rule_parse(host, strlen(host), &rule, err);

	if (r < 0)
		return r;
	cordon_net_rule_text(&rule, text);
	*ret_allowance = json_pack("{s:s}", "host", text);
	return *ret_allowance ? 0 : cordon_no_memory(err);
}

static int make_share(const char *path, bool write, json_t **ret_allowance, struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX];
	int r = cordon_text_judge("the path", path, CORDON_PATH_MAX - sizeof(RO), err);

	if (r < 0)
		return r;
	if (*path != '/' || cordon_path_clean(path, clean, sizeof(clean)) < 0 || !clean[1])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a path must be absolute, without .. and not /: %s",
				   path);
	if (strpbrk(clean, ":\\"))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a path with : or \\ can't be shared: %s", path);
	if (cordon_path_within(clean, CORDON_WORKSPACE_AT)) {
		r = cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
				"%s lies in the workspace, where the settings of the project decide", clean);
		cordon_error_hint(err, "what is protected there can't be granted; ask the project's owner");
		return r;
	}
	*ret_allowance = json_pack("{s:o}", "share", json_sprintf("%s%s", clean, write ? "" : RO));
	return *ret_allowance ? 0 : cordon_no_memory(err);
}

int cordon_allowance_make(const struct cordon_allowance *wanted, json_t **ret_allowance, struct cordon_error *err)
{
	if (!wanted->host == !wanted->path)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "say a host or a path, and not both");
	if (wanted->host)
		return make_host(wanted->host, ret_allowance, err);
	return make_share(wanted->path, wanted->write, ret_allowance, err);
}

const char *cordon_allowance_text(const json_t *allowance)
{
	const char *host = cordon_json_string(allowance, "host");
	const char *share = cordon_json_string(allowance, "share");

	return host ? host : share ? share : "";
}

static bool host_within(const char *host, const struct cordon_settings *settings)
{
	struct cordon_net_list list = { 0 };
	struct cordon_net_rule rule;
	bool found = false;

	if (cordon_net_rule_parse(host, strlen(host), &rule, NULL) < 0 || cordon_settings_net(settings, &list, NULL) < 0)
		return false;
	for (size_t i = 0; i < list.n; i++)
		found |= cordon_net_rule_within(&rule, &list.rules[i]);
	found |= !list.listed;
	cordon_net_list_done(&list);
	return found;
}

/* Whether a share shows all that another one would, with the same rights, at its own path. */
static bool share_within(const char *inner, const char *outer)
{
	struct cordon_share_value a = { 0 }, b = { 0 };
	bool within = cordon_share_parse(inner, &a, NULL) == 0 && cordon_share_parse(outer, &b, NULL) == 0 &&
		      !b.target && cordon_path_within(a.source, b.source) && (a.read_only || !b.read_only);

	cordon_share_done(&a);
	cordon_share_done(&b);
	return within;
}

bool cordon_allowance_within(const json_t *allowance, const struct cordon_settings *settings)
{
	const char *host = cordon_json_string(allowance, "host");
	size_t i;
	json_t *item;

	if (host)
		return host_within(host, settings);
	json_array_foreach(settings->shares, i, item) {
		if (share_within(cordon_allowance_text(allowance), json_string_value(item)))
			return true;
	}
	return false;
}

/* The setting `net` with one more host, a new reference. */
static json_t *with_host(json_t *net, const char *host)
{
	const char *word = json_string_value(net);
	json_t *copy, *allow;

	if (word && cordon_streq(word, CORDON_NET_WORD_PROFILE))
		return json_pack("[s, s]", CORDON_NET_WORD_PROFILE, host);
	if (word || !net) /* Of "host" everything is a part already; cordon_allowance_within() has said so. */
		return word && cordon_streq(word, CORDON_NET_WORD_HOST) ? json_incref(net) : json_pack("[s]", host);
	copy = json_deep_copy(net);
	allow = json_is_array(copy) ? copy : json_object_get(copy, "allow");
	if (copy && !allow)
		json_object_set_new(copy, "allow", json_pack("[s]", host));
	else
		json_array_append_new(allow, json_string(host));
	return copy;
}

/* The setting `shares` with one more; those that it covers are left out, because two may not contradict each other. */
static json_t *with_share(const json_t *shares, const char *share)
{
	json_t *list = json_array(), *item;
	size_t i;

	json_array_foreach(shares, i, item) {
		if (!share_within(json_string_value(item), share))
			json_array_append(list, item);
	}
	json_array_append_new(list, json_string(share));
	return list;
}

/* The one setting that the allowance changes, as an object. */
static int change_of(const json_t *allowance, const struct cordon_settings *settings, json_t **ret_change,
		     struct cordon_error *err)
{
	const char *host = cordon_json_string(allowance, "host");
	json_t *change = host ? json_pack("{s:o}", "net", with_host(settings->net, host))
			      : json_pack("{s:o}", "shares",
					  with_share(settings->shares, cordon_allowance_text(allowance)));

	if (!change)
		return cordon_no_memory(err);
	*ret_change = change;
	return 0;
}

int cordon_allowance_add(const json_t *allowance, struct cordon_settings *settings, struct cordon_error *err)
{
	json_auto_t *change = NULL;
	json_t **place = json_object_get(allowance, "host") ? &settings->net : &settings->shares;
	int r = cordon_allowance_within(allowance, settings) ? 0 : change_of(allowance, settings, &change, err);

	if (r < 0 || !change)
		return r;
	json_decref(*place);
	*place = json_incref(json_object_iter_value(json_object_iter(change)));
	return 0;
}

/* INVARIANT: a person allows the path that was read, not what a link leads to, which somebody may change afterwards. */
static int judge_links(const json_t *allowance, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	char real[PATH_MAX];
	int r = cordon_share_parse(cordon_allowance_text(allowance), &share, err);

	if (r == 0 && !realpath(share.source, real))
		r = cordon_fail_errno(err, -errno, "%s", share.source);
	if (r == 0 && !cordon_streq(real, share.source)) {
		r = cordon_fail(err, -ELOOP, CORDON_KIND_POLICY_DENIED, "%s leads to %s by a symbolic link",
				share.source, real);
		cordon_error_hint(err, "allow what it leads to, by its own path");
	}
	cordon_share_done(&share);
	return r;
}

int cordon_allowance_judge(const json_t *allowance, const struct cordon_settings *settings, struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record tried = { 0 };
	int r = cordon_settings_copy(&tried.settings, settings) < 0 ? cordon_no_memory(err) : 0;

	if (r == 0)
		r = cordon_allowance_add(allowance, &tried.settings, err);
	if (r == 0 && json_object_get(allowance, "share"))
		r = cordon_places_judge(&tried.settings, err);
	if (r == 0 && json_object_get(allowance, "share"))
		r = judge_links(allowance, err);
	return r;
}

int cordon_allowances_put(json_t **allowances, const json_t *allowance, struct cordon_error *err)
{
	size_t i;
	json_t *item;

	if (!*allowances && !(*allowances = json_array()))
		return cordon_no_memory(err);
	json_array_foreach(*allowances, i, item) {
		if (!cordon_streq(cordon_allowance_text(item), cordon_allowance_text(allowance)))
			continue;
		if (!cordon_json_true(allowance, "once"))
			json_object_del(item, "once");
		return 0;
	}
	if (json_array_size(*allowances) >= CORDON_ALLOWANCES_MAX)
		return cordon_fail(err, -ENOSPC, CORDON_KIND_LIMIT, "a session has at most %d allowances",
				   CORDON_ALLOWANCES_MAX);
	return json_array_append_new(*allowances, json_deep_copy(allowance)) < 0 ? cordon_no_memory(err) : 0;
}

/* A path that was removed since must not keep the session from starting. Whatever else stands there now does: the start
 * finds out that it is not what the person allowed. */
static bool is_gone(const json_t *allowance)
{
	struct cordon_share_value share = { 0 };
	bool gone = json_object_get(allowance, "share") &&
		    cordon_share_parse(cordon_allowance_text(allowance), &share, NULL) == 0 &&
		    access(share.source, F_OK) < 0 && errno == ENOENT;

	cordon_share_done(&share);
	return gone;
}

int cordon_allowance_confirm(const json_t *allowance, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	int r = json_object_get(allowance, "share") ? cordon_share_parse(cordon_allowance_text(allowance), &share, err)
						    : 0;

	if (r == 0 && share.source)
		r = cordon_place_confirm(share.source, err);
	cordon_share_done(&share);
	return r;
}

int cordon_allowances_apply(const json_t *allowances, bool only_lasting, struct cordon_settings *settings,
			    struct cordon_error *err)
{
	size_t i;
	json_t *item;
	int r = 0;

	json_array_foreach(allowances, i, item) {
		if (r == 0 && !is_gone(item) && !(only_lasting && cordon_json_true(item, "once")))
			r = cordon_allowance_add(item, settings, err);
	}
	return r;
}

void cordon_allowances_used(json_t *allowances)
{
	for (size_t i = json_array_size(allowances); i-- > 0;)
		if (cordon_json_true(json_array_get(allowances, i), "once"))
			json_array_remove(allowances, i);
}

/* What the allowance changes in the settings as they are now; nothing when they have it already. */
static int change_project(const void *allowance, const struct cordon_project_record *project, json_t **ret_changes,
			  struct cordon_error *err)
{
	if (!cordon_allowance_within(allowance, &project->settings))
		return change_of(allowance, &project->settings, ret_changes, err);
	*ret_changes = json_object();
	return *ret_changes ? 0 : cordon_no_memory(err);
}

int cordon_project_allow(const struct cordon_store *store, const char *id, const json_t *allowance,
			 struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	const struct cordon_settings_change change = { .make = change_project, .data = allowance };

	return cordon_project_change(store, id, &change, NULL, &project, NULL, err);
}
