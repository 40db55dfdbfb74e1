/* SPDX-License-Identifier: Apache-2.0 */
/* Allowing a session a host or a path that it does not have: a page that asks, and what its form does. */
#include <stdio.h>

#include "page/internal.h"
#include "page/session.h"

/* Empty fields are not given. */
static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static bool writes(const char *access)
{
	return access && cordon_streq(access, "write");
}

/* Whether what the address asks about can be allowed at all. */
static void judge_html(struct cordon_page *page, const struct cordon_allowance *allowance)
{
	struct cordon_session_allowed allowed;
	struct cordon_error err = { 0 };

	if (!allowance->host && !allowance->path)
		return;
	if (cordon_session_may_allow(page->store, page->id, allowance, false, NULL, &allowed, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">This can not be allowed: %s.</p>",
			    err.message);
	else if (allowed.already)
		cordon_html(&page->html, "<p class=\"done\">The session has <code>%s</code>%s.</p>", allowed.text,
			    allowed.now ? " already" : " from its next start on");
}

void cordon_page_session_allow(struct cordon_page *page, const struct cordon_session_record *session)
{
	const struct cordon_allowance allowance = { .host = given(cordon_page_arg(page, "host")),
						    .path = given(cordon_page_arg(page, "path")),
						    .write = writes(cordon_page_arg(page, "access")) };
	struct cordon_html *html = &page->html;
	char title[48], path[CORDON_ID_SIZE + 16];

	snprintf(title, sizeof(title), "Allow session %.8s more", session->id);
	snprintf(path, sizeof(path), "/session/%s", session->id);
	cordon_page_begin(page, title, NULL);
	cordon_html(html,
		    "<p class=\"warn\">This widens what the agent can do. A host can be allowed at once if the session runs "
		    "with a list of hosts. A sandbox that runs can't be widened by paths: a path counts from the "
		    "next start of the session on.</p>");
	judge_html(page, &allowance);
	cordon_page_form(page, path, "allow");
	cordon_html(html,
		    "<label>Host, as example.org or example.org:443<input type=\"text\" name=\"host\" value=\"%s\" "
		    "autocomplete=\"off\" spellcheck=\"false\" size=\"40\"></label>",
		    allowance.host);
	cordon_html(html,
		    "<label>Or a path of this machine<input type=\"text\" name=\"path\" value=\"%s\" "
		    "autocomplete=\"off\" spellcheck=\"false\" size=\"40\"></label>",
		    allowance.path);
	cordon_html(html, "<label>Access to the path<select name=\"access\"><option value=\"read\">read</option>"
			  "<option value=\"write\"");
	if (allowance.write)
		cordon_html(html, " selected");
	cordon_html(html,
		    ">read and write</option></select></label>"
		    "<label>For how long<select name=\"span\"><option value=\"once\">one run of this session</option>"
		    "<option value=\"session\">this session, also when it is resumed</option>"
		    "<option value=\"policy\">all sessions of its project from now on: written into its settings</option>"
		    "</select></label><button class=\"danger\">Allow it</button></form>"
		    "<p><a href=\"%s\">Back to the session</a></p>",
		    path);
}

int cordon_page_session_do_allow(struct cordon_page *page, const char **ret_done, struct cordon_error *err)
{
	const struct cordon_allowance allowance = { .host = given(cordon_page_field(page, "host")),
						    .path = given(cordon_page_field(page, "path")),
						    .write = writes(cordon_page_field(page, "access")) };
	const char *span_text = cordon_page_field(page, "span");
	struct cordon_session_allowed allowed;
	cordon_approval_span span;
	int r = cordon_approval_span_parse(span_text ? span_text : "", &span, err);

	if (r == 0 && !allowance.host == !allowance.path)
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "Say a host or a path, one of them");
	if (r == 0)
		r = cordon_session_allow(page->store, page->id, &allowance, span, NULL, &allowed, err);
	if (r == 0)
		*ret_done = allowed.already ? "allowed-before"
			    : allowed.now   ? "session-allowed"
					    : "session-allowed-later";
	return r;
}
