/* SPDX-License-Identifier: Apache-2.0 */
/* Merges what a view and the host changed in one and the same text. */
#include "view/merge.h"

#include "view/base.h"
#include "view/lines.h"

/* Whether git's blob is not what the view began with. Both have a change that git does not know: the file was not clean
 * when the view began. Or the host has git's own text, and may have taken back what it had changed before. */
static bool is_doubtful(const struct cordon_buf *base, const struct cordon_buf *host, bool common)
{
	return common || (host->len == base->len &&
			  memcmp(host->data ? host->data : "", base->data ? base->data : "", base->len) == 0);
}

static int merge_texts(const struct cordon_buf *base, const struct cordon_buf *host, const struct cordon_buf *view,
		       struct cordon_buf *ret_merged, bool *ret_common)
{
	autotext struct cordon_text b = { 0 }, h = { 0 }, v = { 0 };
	int r = cordon_text_init(&b, base->data, base->len);

	if (r == 0)
		r = cordon_text_init(&h, host->data, host->len);
	if (r == 0)
		r = cordon_text_init(&v, view->data, view->len);
	return r == 0 ? cordon_lines_merge(&b, &h, &v, ret_merged, ret_common) : r;
}

int cordon_merge_change(const struct cordon_view *view, const struct cordon_delta *delta,
			const struct cordon_delta_change *change, struct cordon_buf *ret_merged, const char **ret_why,
			struct cordon_error *err)
{
	autobuf struct cordon_buf base = CORDON_BUF(CORDON_TEXT_BYTES_MAX), host = CORDON_BUF(CORDON_TEXT_BYTES_MAX);
	autobuf struct cordon_buf ours = CORDON_BUF(CORDON_TEXT_BYTES_MAX);
	bool certain = false, common = false;
	int r;

	*ret_why = "the host changed it, too";
	if (!S_ISREG(change->old.mode) || !S_ISREG(change->new.mode))
		return 0;
	if (cordon_delta_read(delta, change, true, &host, NULL) < 0 ||
	    cordon_delta_read(delta, change, false, &ours, NULL) < 0 || !cordon_text_is(host.data, host.len) ||
	    !cordon_text_is(ours.data, ours.len))
		return 0;
	if (cordon_base_read(view, delta, change, &base, &certain) < 0 || !cordon_text_is(base.data, base.len)) {
		*ret_why = "the host changed it, too, and what it was before is not known";
		return 0;
	}
	r = merge_texts(&base, &host, &ours, ret_merged, &common);
	if (r == -EEXIST) {
		*ret_why = "the host changed the same lines";
		return 0;
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot merge %s", change->path);
	*ret_why = !certain && is_doubtful(&base, &host, common)
			   ? "the host changed it, too, and it had changes that git did not know"
			   : NULL;
	return 0;
}
