/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as a tree: what an agent may do with each file, the hosts that it may reach, and what else it sees of the
 * host. */
#include "run/tree.h"
#include "config/net_setting.h"
#include "page/internal.h"
#include "policy/shares.h"

struct tree {
	struct cordon_page *page;
	const char *link; /* of this page */
};

/* The name of a directory that is folded leads to the same page with this directory opened. */
static void name_html(const struct tree *t, const struct cordon_tree_entry *entry)
{
	struct cordon_html *html = &t->page->html;
	bool opens = entry->folded && entry->n != 0;

	if (opens) {
		cordon_html(html, "<a href=\"%s%spath=", t->link, strchr(t->link, '?') ? "&" : "?");
		cordon_html_url(html, entry->path);
		cordon_html(html, "#policy\">");
	}
	cordon_html(html, "<code>");
	cordon_page_name_text(t->page, entry->name);
	cordon_html(html, "%s</code>", entry->type == DT_DIR ? "/" : "");
	if (opens)
		cordon_html(html, "</a>");
}

static void folded_html(struct cordon_html *html, const struct cordon_tree_entry *entry)
{
	if (entry->mark == CORDON_MARK_DENIED && entry->uniform)
		return;
	if (entry->n < 0)
		cordon_html(html, " <span class=\"quiet\">cannot be read: %s", strerror(-entry->n));
	else
		cordon_html(html, " <span class=\"quiet\">%d%s %s", entry->n,
			    entry->n == CORDON_TREE_COUNT_MAX ? " or more" : "", entry->n == 1 ? "entry" : "entries");
	if (entry->except)
		cordon_html(html, ", except <code>%s</code>", entry->except);
	cordon_html(html, "%s</span>", entry->uniform ? "" : ", mixed");
}

static void entry_html(void *data, const struct cordon_tree_entry *entry)
{
	const struct tree *t = data;
	struct cordon_html *html = &t->page->html;

	cordon_html(html, "<li>");
	cordon_page_state(t->page, cordon_mark_name(entry->mark));
	cordon_html(html, " ");
	name_html(t, entry);
	if (entry->target) {
		cordon_html(html, " \u2192 ");
		cordon_page_name(t->page, entry->target);
	}
	if (entry->share)
		cordon_html(html, " <span class=\"quiet\">shows <code>%s</code> of the host</span>", entry->share);
	if (entry->folded)
		folded_html(html, entry);
	if (entry->type == DT_DIR && !entry->folded && !entry->share)
		cordon_html(html, "<ul>");
	else
		cordon_html(html, "</li>");
}

static void rest_html(void *data, const struct cordon_tree_rest *rest)
{
	const struct tree *t = data;
	struct cordon_html *html = &t->page->html;

	if (rest->error)
		cordon_html(html, "<li class=\"quiet\">cannot be read: %s</li>", strerror(-rest->error));
	if (rest->hidden || rest->cut) {
		cordon_html(html, "<li class=\"quiet\">%zu%s more (", rest->hidden, rest->cut ? "+" : "");
		for (size_t m = 0, said = 0; m < CORDON_MARK__MAX; m++)
			if (rest->by_mark[m])
				cordon_html(html, "%s%zu %s", said++ ? ", " : "", rest->by_mark[m],
					    cordon_mark_name((cordon_mark)m));
		cordon_html(html, ")</li>");
	}
	cordon_html(html, "</ul></li>");
}

static void words(struct cordon_page *page, const json_t *array)
{
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item)
		cordon_html(&page->html, "%s<code>%s</code>", i ? ", " : "", json_string_value(item));
}

void cordon_page_net(struct cordon_page *page, const json_t *net)
{
	const char *word = json_string_value(net);

	if (!net || (word && cordon_streq(word, CORDON_NET_WORD_HOST)))
		cordon_html(&page->html, "everything that this machine reaches");
	else if (word && cordon_streq(word, CORDON_NET_WORD_NONE))
		cordon_html(&page->html, "none");
	else if (word)
		cordon_html(&page->html, "%s", word);
	else if (json_array_size(json_is_object(net) ? json_object_get(net, "allow") : net))
		words(page, json_is_object(net) ? json_object_get(net, "allow") : net);
	else
		cordon_html(&page->html, "no host");
}

static void shares_html(struct cordon_page *page, const json_t *shares)
{
	size_t i;
	json_t *share;

	cordon_html(&page->html, "<ul>");
	json_array_foreach(shares, i, share)
		cordon_html(&page->html, "<li><code>%s</code> shows <code>%s</code>%s</li>",
			    cordon_json_text(share, "path"), cordon_json_text(share, "source"),
			    cordon_json_true(share, "read_only") ? ", read only" : "");
	cordon_html(&page->html, "</ul>");
}

static json_t *shares_json(const struct cordon_policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];

		json_array_append_new(array, json_pack("{s:s, s:s, s:b}", "path", share->home ? "~" : share->target,
						       "source", share->source, "read_only", share->read_only));
	}
	return array;
}

void cordon_page_policy(struct cordon_page *page, const struct cordon_page_policy *shown)
{
	const struct cordon_policy *policy = shown->policy;
	const char *path = cordon_page_arg(page, "path");
	struct tree t = { .page = page, .link = shown->link };
	json_auto_t *own_net = shown->net ? NULL : cordon_net_list_json(&policy->net);
	json_auto_t *own_shares = shown->shares ? NULL : shares_json(policy);
	const json_t *shares = shown->shares ? shown->shares : own_shares;
	struct cordon_tree_spec spec = { .policy = policy,
					 .path = path && *path ? path : ".",
					 .depth = CORDON_TREE_DEPTH,
					 .data = &t,
					 .entry = entry_html,
					 .end = rest_html };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	cordon_html(html, "<dl><dt>Root</dt><dd><code>%s</code></dd><dt>Mode</dt><dd>%s</dd>", policy->root.path,
		    cordon_mode_name(policy->mode));
	cordon_html(html, "<dt>Network</dt><dd>");
	cordon_page_net(page, shown->net ? shown->net : own_net);
	cordon_html(html, "</dd>");
	if (json_array_size(shares)) {
		cordon_html(html, "<dt>Shown of the host</dt><dd>");
		shares_html(page, shares);
		cordon_html(html, "</dd>");
	}
	cordon_html(html, "</dl>");
	if (shown->ask)
		cordon_html(html, "<p><a href=\"%s\">Search it, or ask why about a path or a host</a></p>", shown->ask);
	if (path && *path)
		cordon_html(html, "<p><a href=\"%s#policy\">The whole root</a></p>", shown->link);
	cordon_html(html, "<ul class=\"tree\">");
	if (cordon_tree_walk(&spec, &err) < 0)
		cordon_html(html, "<li class=\"quiet\">%s</li>", err.message);
	cordon_html(html, "</ul>");
}
