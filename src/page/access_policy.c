/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy says: why for any path or host, names that are searched for, and the tree. All answers are those of the one decision function. */
#include "base/time.h"
#include "page/access.h"
#include "policy/asker.h"
#include "run/tree.h"
#include "store/store.h"

#define FOUND_SHOWN 200
#define FIND_ENTRIES 200000
#define FIND_MS 2000

static const char *arg(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);

	return text ? text : "";
}

/* ---- why ---- */

static void fact(struct cordon_page *page, const char *label, const char *text)
{
	cordon_html(&page->html, "<dt>%s</dt><dd><code>%s</code></dd>", label, text);
}

static void answer(struct cordon_page *page, const struct cordon_why *why, const char *asked)
{
	const struct cordon_decision *d = &why->asker.decision;
	struct cordon_html *html = &page->html;

	cordon_html(html, "<div id=\"answer\" class=\"live\"><p>");
	cordon_page_state(page, cordon_verdict_name(d->verdict));
	cordon_html(html, " %s ", cordon_asker_op(&why->asker));
	cordon_page_name(page, asked);
	cordon_html(html, "</p><dl>");
	if (why->asker.connect)
		fact(page, "Means", d->resolved);
	else if (d->reason != CORDON_REASON_UNRESOLVABLE)
		fact(page, why->asker.resolved.exists ? "Leads to" : "Leads to (does not exist yet)",
		     *d->resolved ? d->resolved : ".");
	if (d->rule)
		fact(page, "Rule", d->rule);
	if (d->rule_where)
		fact(page, "From", d->rule_where);
	if (d->fence)
		fact(page, "Fence", d->fence);
	/* Both are escaped already; they are not code. */
	cordon_html(html, "<dt>Because</dt><dd>%s</dd>", why->because.data);
	if (why->remedy.len)
		cordon_html(html, "<dt>To change it</dt><dd>%s</dd>", why->remedy.data);
	cordon_html(html, "</dl></div>");
}

static int ask(const struct cordon_page_chosen *chosen, const char *op, const char *asked, struct cordon_why *ret_why,
	       struct cordon_error *err)
{
	char below[CORDON_PATH_MAX];
	int r;

	/* An agent of a project may be quoted as it is. */
	if (chosen->in_workspace && *asked == '/' && !cordon_op_connects(op) &&
	    cordon_workspace_below(asked, true, "", below, sizeof(below)) == 0)
		asked = *below ? below : ".";
	r = cordon_policy_why(chosen->policy, op, asked, ret_why, err);
	if (r == 0 && ret_why->asker.connect && chosen->no_hosts)
		return cordon_fail(err, -ENODATA, CORDON_KIND_USAGE,
				   "the record of this run does not say which hosts it could reach");
	return r;
}

static void why_section(struct cordon_page *page, const struct cordon_page_chosen *chosen)
{
	static const char *const ops[][2] = { { "", "write or connect, whichever fits" },
					      { "read", "read" },
					      { "write", "write" },
					      { "connect", "connect" } };
	const char *asked = arg(page, "ask"), *op = arg(page, "op");
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };
	struct cordon_why why = { 0 };

	cordon_html(html, "<section id=\"why\"><h2>Why</h2><form method=\"get\" action=\"/access/policy#why\">");
	cordon_page_chosen_fields(page);
	cordon_html(html,
		    "<label>Path, or host and port <input type=\"text\" name=\"ask\" value=\"%s\" placeholder=\"src/main.c, example.com:443\">"
		    "</label><label>To <select name=\"op\">",
		    asked);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(ops); i++)
		cordon_html(html,
			    cordon_streq(ops[i][0], op) ? "<option value=\"%s\" selected>%s</option>"
							: "<option value=\"%s\">%s</option>",
			    ops[i][0], ops[i][1]);
	cordon_html(html, "</select></label><button class=\"main\">Ask</button></form>");
	if (*asked &&
	    ask(chosen, cordon_streq(op, "read") || cordon_streq(op, "write") || cordon_op_connects(op) ? op : NULL,
		asked, &why, &err) == 0)
		answer(page, &why, asked);
	else if (*asked)
		cordon_html(html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	cordon_why_done(&why);
	cordon_html(html, "</section>");
}

/* ---- search ---- */

struct finding {
	struct cordon_page *page;
	const struct cordon_page_chosen *chosen;
	size_t n;
};

static bool found(void *data, const struct cordon_tree_entry *entry)
{
	struct finding *f = data;
	struct cordon_html *html = &f->page->html;

	cordon_html(html, "<li>");
	cordon_page_state(f->page, cordon_mark_name(entry->mark));
	cordon_html(html, " <a href=\"%s&ask=", f->chosen->link.out.data);
	cordon_html_url(html, entry->path);
	cordon_html(html, "#why\">");
	cordon_page_name(f->page, entry->path);
	cordon_html(html, "</a>");
	if (entry->target) {
		cordon_html(html, " \u2192 ");
		cordon_page_name(f->page, entry->target);
	}
	cordon_html(html, "</li>");
	return ++f->n < FOUND_SHOWN;
}

static void find_section(struct cordon_page *page, const struct cordon_page_chosen *chosen)
{
	struct finding finding = { .page = page, .chosen = chosen };
	const struct cordon_tree_search search = { .policy = chosen->policy,
						   .text = arg(page, "find"),
						   .entries = FIND_ENTRIES,
						   .deadline = cordon_time_monotonic() + FIND_MS,
						   .data = &finding,
						   .found = found };
	struct cordon_tree_searched searched = { 0 };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	cordon_html(
		html,
		"<section id=\"find\"><h2>Search</h2><form method=\"get\" action=\"/access/policy#find\" role=\"search\">");
	cordon_page_chosen_fields(page);
	cordon_html(html,
		    "<label>Names with <input type=\"search\" name=\"find\" value=\"%s\"></label><button>Search</button></form>",
		    search.text);
	if (*search.text) {
		cordon_html(html, "<ul class=\"tree\">");
		if (cordon_tree_find(&search, &searched, &err) < 0)
			cordon_html(html, "<li class=\"alert\">%s</li>", err.message);
		cordon_html(html, "</ul><p class=\"quiet\">%zu found, among %zu names%s.</p>", finding.n,
			    searched.entries, searched.more ? "; there are more names that were not looked at" : "");
	}
	cordon_html(html, "</section>");
}

/* ---- the page ---- */

void cordon_page_access_policy(struct cordon_page *page)
{
	struct cordon_page_chosen chosen CORDON_CLEANUP(cordon_page_chosen_done) = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_html *html = &page->html;

	if (!cordon_page_chooses(page)) {
		cordon_page_begin(page, "What a policy says", NULL);
		cordon_page_chooser(page);
		return;
	}
	if (cordon_page_choose(page, &chosen, &err) < 0) {
		cordon_page_fail_error(page, &err);
		return;
	}
	cordon_page_begin(page, "What a policy says", NULL);
	cordon_html(html, "<p>%s. <a href=\"/access/policy\">Choose another</a></p>", chosen.title);
	cordon_page_flush(page);
	why_section(page, &chosen);
	find_section(page, &chosen);
	cordon_html(html, "<section id=\"policy\"><h2>Tree</h2>");
	cordon_page_policy(page, &(struct cordon_page_policy){ .policy = chosen.policy,
							       .link = chosen.link.out.data,
							       .net = chosen.net,
							       .shares = chosen.shares });
	cordon_html(html, "</section>");
}
