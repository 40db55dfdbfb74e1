/* SPDX-License-Identifier: Apache-2.0 */
/* The section of a prompt that tells an agent about its folder workspace. It informs; the sandbox holds the boundary. */
#ifndef CORDON_CONFIG_PROMPT_SECTION_H
#define CORDON_CONFIG_PROMPT_SECTION_H

#include "base/buf.h"
#include "policy/policy.h"

/* What the section says about the fileScope of the story. */
typedef enum cordon_section_scope {
	CORDON_SECTION_SCOPE_INFERRED,
	CORDON_SECTION_SCOPE_WRITTEN, /* by a person */
} cordon_section_scope;

struct cordon_prompt_section {
	cordon_mode mode;
	const char *list;	    /* the folders, joined by commas */
	const char *const *folders; /* as written */
	size_t n_folders;
	cordon_section_scope scope;
};

int cordon_prompt_section(const struct cordon_prompt_section *section, struct cordon_buf *ret_text);
/* Appends a name, which is untrusted text: it gets no line of its own and can't end the code span that it stands in. */
int cordon_prompt_name(struct cordon_buf *buf, const char *name);

#endif
