/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, which are part of the executable: style sheet, script, icon. */
#include "page/assets.h"
#include "page/internal.h"

static const unsigned char style[] = CORDON_ASSET_STYLE_CSS;
static const unsigned char script[] = CORDON_ASSET_SCRIPT_JS;
static const unsigned char icon[] = CORDON_ASSET_ICON_SVG;

const char *cordon_page_assets_version(void)
{
	return CORDON_ASSETS_VERSION;
}

int cordon_page_asset(const char *path, const char **ret_bytes, size_t *ret_size, const char **ret_type)
{
	static const struct {
		const char *path, *type;
		const unsigned char *bytes;
		size_t size;
	} assets[] = {
		{ "/page/style.css", "text/css; charset=utf-8", style, sizeof(style) },
		{ "/page/script.js", "text/javascript; charset=utf-8", script, sizeof(script) },
		{ "/page/icon.svg", "image/svg+xml", icon, sizeof(icon) },
	};

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(assets); i++) {
		if (!cordon_streq(assets[i].path, path))
			continue;
		*ret_bytes = (const char *)assets[i].bytes;
		*ret_size = assets[i].size;
		*ret_type = assets[i].type;
		return 0;
	}
	return -ENOENT;
}
