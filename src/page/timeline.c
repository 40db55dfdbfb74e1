/* SPDX-License-Identifier: Apache-2.0 */
/* Events per interval. Bars begin at whole multiples of their width, so that the same event stands in the same bar
 * tomorrow. */
#include "page/timeline.h"

#include "base/time.h"

#define PICTURE_WIDTH 720.0
#define PICTURE_HEIGHT 96.0
#define BARS_MIN 30
#define MARK 6.0 /* room above the bars for the marks of refusals */

/* Each is a whole multiple of the one before, so that bars can be joined. */
static const struct {
	int64_t seconds;
	const char *text;
} widths[] = {
	{ 1, "1 second" },	  { 5, "5 seconds" },	 { 15, "15 seconds" }, { 60, "1 minute" },
	{ 300, "5 minutes" },	  { 900, "15 minutes" }, { 3600, "1 hour" },   { 10800, "3 hours" },
	{ 43200, "12 hours" },	  { 86400, "1 day" },	 { 604800, "1 week" }, { 2419200, "4 weeks" },
	{ 29030400, "48 weeks" },
};

/* Division that rounds down, also before 1970. */
static int64_t part_of(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t bar_at(const struct cordon_timeline *line, int64_t time)
{
	return part_of(part_of(time, 1000), widths[line->width].seconds);
}

void cordon_timeline_init(struct cordon_timeline *line, int64_t end)
{
	*line = (struct cordon_timeline){ 0 };
	line->newest = line->oldest = bar_at(line, end);
}

/* Joins bars to the next width. */
static void widen(struct cordon_timeline *line)
{
	int64_t factor = widths[line->width + 1].seconds / widths[line->width].seconds;
	int64_t newest = part_of(line->newest, factor);

	for (int64_t i = 0; i < CORDON_TIMELINE_BARS; i++) {
		int64_t to = newest - part_of(line->newest - i, factor);
		uint64_t all = line->all[i], refused = line->refused[i];

		line->all[i] = line->refused[i] = 0;
		line->all[to] += all;
		line->refused[to] += refused;
	}
	line->newest = newest;
	line->oldest = part_of(line->oldest, factor);
	line->width++;
}

void cordon_timeline_reach(struct cordon_timeline *line, int64_t time)
{
	int64_t bar;

	while (line->newest - (bar = bar_at(line, time)) >= CORDON_TIMELINE_BARS &&
	       line->width + 1 < CORDON_ARRAY_SIZE(widths))
		widen(line);
	if (bar < line->oldest)
		line->oldest = bar;
	if (line->newest - line->oldest >= CORDON_TIMELINE_BARS)
		line->oldest = line->newest - CORDON_TIMELINE_BARS + 1;
}

void cordon_timeline_add(struct cordon_timeline *line, int64_t time, bool refused)
{
	int64_t i;

	cordon_timeline_reach(line, time);
	i = line->newest - bar_at(line, time);
	i = i < 0 ? 0 : i >= CORDON_TIMELINE_BARS ? CORDON_TIMELINE_BARS - 1 : i;
	line->all[i]++;
	line->refused[i] += refused;
}

/* The first bar that is shown. A few events do not fill the picture. */
static int64_t first(const struct cordon_timeline *line)
{
	int64_t latest = line->newest - BARS_MIN + 1;

	return line->oldest < latest ? line->oldest : latest;
}

size_t cordon_timeline_bars(const struct cordon_timeline *line)
{
	return (size_t)(line->newest - first(line)) + 1;
}

int64_t cordon_timeline_time(const struct cordon_timeline *line, size_t bar)
{
	return (first(line) + (int64_t)bar) * widths[line->width].seconds * 1000;
}

const char *cordon_timeline_width(const struct cordon_timeline *line)
{
	return widths[line->width].text;
}

uint64_t cordon_timeline_all(const struct cordon_timeline *line, size_t bar)
{
	return line->all[cordon_timeline_bars(line) - 1 - bar];
}

uint64_t cordon_timeline_refused(const struct cordon_timeline *line, size_t bar)
{
	return line->refused[cordon_timeline_bars(line) - 1 - bar];
}

/* What there is at least a little of is seen. */
static double height_of(uint64_t n, uint64_t most)
{
	double height = (PICTURE_HEIGHT - MARK) * (double)n / (double)most;

	return n && height < 2 ? 2 : height;
}

/* One bar: all events, what was refused in front of them, and a mark above, because many people cannot tell the colours
 * from each other. */
static void draw_bar(struct cordon_html *html, const struct cordon_timeline *line, size_t bar, uint64_t most)
{
	uint64_t all = cordon_timeline_all(line, bar), refused = cordon_timeline_refused(line, bar);
	double step = PICTURE_WIDTH / (double)cordon_timeline_bars(line), width = step > 3 ? step - 1 : step;
	double x = step * (double)bar, height = height_of(all, most), bad = height_of(refused, most);
	char when[CORDON_TIME_SIZE];

	if (!all)
		return;
	cordon_time_format(cordon_timeline_time(line, bar), when);
	cordon_html(html, "<g><title>%s: %llu, of which %llu refused</title>", when, (unsigned long long)all,
		    (unsigned long long)refused);
	cordon_html(html, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x,
		    PICTURE_HEIGHT - height, width, height);
	if (refused) {
		cordon_html(html, "<rect class=\"bar bad\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x,
			    PICTURE_HEIGHT - bad, width, bad);
		cordon_html(html, "<rect class=\"bar bad\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"3\"/>", x, width);
	}
	cordon_html(html, "</g>");
}

void cordon_timeline_svg(struct cordon_page *page, const struct cordon_timeline *line, const char *title)
{
	struct cordon_html *html = &page->html;
	uint64_t most = 1;

	for (size_t i = 0; i < cordon_timeline_bars(line); i++)
		most = cordon_timeline_all(line, i) > most ? cordon_timeline_all(line, i) : most;
	cordon_html(html,
		    "<svg class=\"chart\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\"><title>%s</title>",
		    (int)PICTURE_WIDTH, (int)PICTURE_HEIGHT, title);
	cordon_html(html, "<desc>Each bar is %s. The highest has %llu. A mark at the top shows refusals in it.</desc>",
		    cordon_timeline_width(line), (unsigned long long)most);
	for (size_t i = 0; i < cordon_timeline_bars(line); i++)
		draw_bar(html, line, i, most);
	cordon_html(html, "<path class=\"axis\" d=\"M0 %d H%d\"/></svg>", (int)PICTURE_HEIGHT, (int)PICTURE_WIDTH);
}
