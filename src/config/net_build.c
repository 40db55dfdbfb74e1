/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of building a policy that is about the network. What the user asked for comes first (options, else the
 * settings of a project or an agent, else a policy file outside the root, else a profile that has a word for it). A
 * policy file inside the root, which an agent may have written, can only narrow that.
 */
#include "base/path.h"
#include "config/policy_build.h"

bool cordon_policy_file_inside(const char *path, const char *root)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED struct cordon_resolved found;
	char file[CORDON_PATH_MAX];

	cordon_resolve(&slash, path, &found);
	return found.place != CORDON_PLACE_INSIDE || cordon_path_join("/", found.path, file, sizeof(file)) < 0 ||
	       cordon_path_within(file, root) || cordon_path_within(path, root);
}

/* The hosts that the profiles list. */
static int profile_hosts(const struct cordon_policy_spec *spec, struct cordon_net_list *ret_list,
			 struct cordon_error *err)
{
	struct cordon_net_list all = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_profiles; i++) {
		const struct cordon_net_setting *net = &spec->profiles[i]->net;

		for (size_t k = 0; r == 0 && k < net->allow.n; k++)
			r = cordon_net_option(net->allow.items[k].text, net->allow.items[k].where, NULL, &all, err);
		for (size_t k = 0; r == 0 && k < net->n_inject; k++)
			r = cordon_net_list_inject(&all, &net->inject[k], err);
	}
	if (r < 0)
		cordon_net_list_done(&all);
	else
		*ret_list = all;
	return r;
}

/* What the options say; 1 when there are some. */
static int from_rules(const struct cordon_policy_spec *spec, const struct cordon_net_list *profiles,
		      struct cordon_net_list *list, struct cordon_error *err)
{
	const struct cordon_policy_rule *first = NULL;

	for (size_t i = 0; i < spec->n_rules; i++) {
		const struct cordon_policy_rule *rule = &spec->rules[i];
		int r;

		if (rule->kind != CORDON_RULE_NET)
			continue;
		if (first &&
		    (cordon_streq(rule->text, CORDON_NET_WORD_HOST) || cordon_streq(rule->text, CORDON_NET_WORD_NONE) ||
		     !list->listed || cordon_streq(first->text, CORDON_NET_WORD_NONE)))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s was given twice: %s and %s",
					   rule->where, first->text, rule->text);
		first = first ? first : rule;
		r = cordon_net_option(rule->text, rule->where, profiles, list, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "%s", rule->where);
	}
	return first != NULL;
}

/* Whether the hosts of the profiles belong to a list: not where somebody chose all hosts or none. */
static bool takes_profiles(const struct cordon_policy_spec *spec, const struct cordon_net_list *list, bool asked)
{
	for (size_t i = 0; i < spec->n_rules; i++)
		if (spec->rules[i].kind == CORDON_RULE_NET && cordon_streq(spec->rules[i].text, CORDON_NET_WORD_NONE))
			return false;
	return list->listed || !asked;
}

/* A profile may have a word for the network; the first one counts. */
static int from_profile_words(const struct cordon_policy_spec *spec, struct cordon_net_list *list,
			      struct cordon_error *err)
{
	for (size_t i = 0; i < spec->n_profiles; i++)
		if (spec->profiles[i]->net.word)
			return cordon_net_setting_list(&spec->profiles[i]->net, NULL, list, err);
	return 0;
}

int cordon_net_build(const struct cordon_policy_spec *spec, const char *root, struct cordon_net_list *ret_list,
		     struct cordon_error *err)
{
	const struct cordon_net_setting *file = spec->file && spec->file->net.where ? &spec->file->net : NULL;
	struct cordon_net_list profiles = { 0 }, list = { 0 }, narrower = { 0 };
	bool inside = file && (!spec->file_path || cordon_policy_file_inside(spec->file_path, root));
	int r = profile_hosts(spec, &profiles, err), asked = 0;

	if (r == 0)
		asked = r = from_rules(spec, &profiles, &list, err);
	if (r == 0 && spec->net && spec->net->where)
		asked = r = cordon_net_setting_list(spec->net, &profiles, &list, err) < 0 ? -EINVAL : 1;
	if (r == 0 && spec->net_record)
		asked = r = cordon_net_list_from_json("net", spec->net_record, &profiles, &list, err) < 0 ? -EINVAL : 1;
	if (r == 0 && file && !inside)
		asked = r = cordon_net_setting_list(file, &profiles, &list, err) < 0 ? -EINVAL : 1;
	if (r == 0 && !asked)
		r = from_profile_words(spec, &list, err);
	if (r >= 0 && spec->profile_net && takes_profiles(spec, &list, asked))
		r = cordon_net_option(CORDON_NET_WORD_PROFILE, CORDON_NET_WORD_PROFILE, &profiles, &list, err);
	if (r >= 0 && inside)
		r = cordon_net_setting_list(file, &profiles, &narrower, err);
	if (r >= 0)
		r = cordon_net_list_narrow(&list, &narrower, err);
	cordon_net_list_done(&profiles);
	cordon_net_list_done(&narrower);
	if (r < 0)
		cordon_net_list_done(&list);
	else
		*ret_list = list;
	return r < 0 ? r : 0;
}
