/* SPDX-License-Identifier: Apache-2.0 */
/* Expands templates, once. */
#include "flow/template.h"

static const char blanks[] = " \t";

bool cordon_template_next(const char *text, size_t len, size_t *at, struct cordon_template_piece *ret_piece,
			  bool *ret_bad)
{
	const char *from = text + *at, *open, *close;
	size_t left = len - *at;

	*ret_bad = false;
	if (!from || !left)
		return false;
	open = memmem(from, left, "{{", 2);
	if (open != from) {
		size_t n = open ? (size_t)(open - from) : left;

		*ret_piece = (struct cordon_template_piece){ .text = from, .n = n, .at = *at };
		*at += n;
		return true;
	}
	close = memmem(from, left, "}}", 2);
	*ret_bad = !close;
	if (!close)
		close = from + left;
	*ret_piece = (struct cordon_template_piece){
		.is_name = true, .text = from + 2, .n = close > from + 2 ? (size_t)(close - from) - 2 : 0, .at = *at
	};
	while (ret_piece->n && strchr(blanks, ret_piece->text[0])) {
		ret_piece->text++;
		ret_piece->n--;
	}
	while (ret_piece->n && strchr(blanks, ret_piece->text[ret_piece->n - 1]))
		ret_piece->n--;
	*at = *ret_bad ? len : (size_t)(close - text) + 2;
	return true;
}

int cordon_template_expand(const char *text, cordon_template_fn *value, void *data, struct cordon_buf *out,
			   struct cordon_error *err)
{
	struct cordon_template_piece piece;
	size_t at = 0;
	bool bad;
	int r = 0;

	while (r == 0 && cordon_template_next(text, strlen(text), &at, &piece, &bad)) {
		if (bad)
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "a template has {{ without }}");
		r = piece.is_name ? value(data, piece.text, piece.n, out) : cordon_buf_add(out, piece.text, piece.n);
		if (r == -ENOENT)
			return cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG, "there is no value {{%.*s}}",
					   (int)(piece.n > 80 ? 80 : piece.n), piece.text);
	}
	if (r == -E2BIG)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the text is larger than %zu bytes with its values",
				   out->max);
	return r < 0 ? cordon_fail_errno(err, r, "cannot expand a template") : 0;
}
