/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about the changes of a view share. */
#ifndef CORDON_PAGE_CHANGES_H
#define CORDON_PAGE_CHANGES_H

#include "page/internal.h"
#include "view/pick.h"
#include "view/show.h"

/* changes.c: opens the view that the path names, or answers with a page about the failure and returns false. */
bool cordon_page_view_open(struct cordon_page *page, struct cordon_view *ret_view);

#endif
