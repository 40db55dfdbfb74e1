/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages about access share. */
#ifndef CORDON_PAGE_ACCESS_H
#define CORDON_PAGE_ACCESS_H

#include "config/settings_file.h"
#include "page/internal.h"
#include "policy/policy.h"

/* What is wrong with the settings; nothing when nothing is. */
void cordon_page_settings_errors(struct cordon_page *page, const struct cordon_errors *errors);
/* What an orchestrator may do with an area: "none", "read", "read and write", and whether that crosses domains. */
void cordon_page_access_word(struct cordon_page *page, const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area);

/* A policy that somebody asks about. */
struct cordon_page_chosen {
	struct cordon_policy *policy;
	char title[512];
	struct cordon_html link; /* the address of the page about it, as text of an attribute is not yet */
	json_t *net, *shares;	 /* of a record whose policy does not have them; else NULL */
	bool in_workspace;	 /* paths may be named as an agent of a project sees them */
	bool no_hosts;		 /* the record does not say which hosts could be reached */
};

/* access_choose.c: whether the address names a policy; then the policy. The caller frees it, also after a failure. */
bool cordon_page_chooses(const struct cordon_page *page);
int cordon_page_choose(struct cordon_page *page, struct cordon_page_chosen *ret_chosen, struct cordon_error *err);
void cordon_page_chosen_done(struct cordon_page_chosen *chosen);
/* The fields of a form that goes on with the policy that is shown. */
void cordon_page_chosen_fields(struct cordon_page *page);
/* The forms in which a policy is chosen. */
void cordon_page_chooser(struct cordon_page *page);

#endif
