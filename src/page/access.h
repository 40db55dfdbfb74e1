/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages about access share. */
#ifndef CORDON_PAGE_ACCESS_H
#define CORDON_PAGE_ACCESS_H

#include "config/settings_file.h"
#include "page/internal.h"

/* What is wrong with the settings; nothing when nothing is. */
void cordon_page_settings_errors(struct cordon_page *page, const struct cordon_errors *errors);
/* What an orchestrator may do with an area: "none", "read", "read and write", and whether that crosses domains. */
void cordon_page_access_word(struct cordon_page *page, const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area);

#endif
