/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of the process cordon-net: takes descriptors and configuration from the supervisor, gives up what it
 * does not need, and serves the network of the run until the supervisor is gone. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/exit.h"
#include "base/io.h"
#include "base/json.h"
#include "base/time.h"
#include "net/helper.h"
#include "sandbox/host/metrics.h"

#define EVENTS 64
#define TICK_MS 1000
#define RESERVED_FDS 256 /* for listeners, DNS and pipes; a connection takes two, and pipes while it is busy */

struct net net = { .epoll = -1, .ctl = -1, .sockets = -1 };

struct later {
	struct later *next;
	void *memory;
};
static struct later *later;
static struct source *again[NET_CONNS_MAX + NET_DNS_CONNS_MAX];
static size_t n_again;

int net_watch_new(int fd, void (*on)(struct source *source, uint32_t events))
{
	struct source *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	*source = (struct source){ .on = on, .fd = fd };
	r = net_watch(source, EPOLLIN);
	if (r < 0)
		free(source);
	return r;
}

int net_watch(struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(net.epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void net_change(struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	(void)epoll_ctl(net.epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void net_unwatch(struct source *source)
{
	if (source->fd >= 0)
		(void)epoll_ctl(net.epoll, EPOLL_CTL_DEL, source->fd, NULL);
	cordon_closep(&source->fd);
	for (size_t i = 0; i < n_again; i++)
		if (again[i] == source)
			again[i] = NULL;
}

void net_free_later(void *memory)
{
	struct later *entry = malloc(sizeof(*entry));

	/* Without memory for the entry, what it names is not freed; it is small, and this hardly ever happens. */
	if (!entry)
		return;
	*entry = (struct later){ later, memory };
	later = entry;
}

void net_again(struct source *source)
{
	for (size_t i = 0; i < n_again; i++)
		if (again[i] == source)
			return;
	if (n_again < CORDON_ARRAY_SIZE(again))
		again[n_again++] = source;
}

static void free_now(void)
{
	while (later) {
		struct later *entry = later;

		later = entry->next;
		free(entry->memory);
		free(entry);
	}
}

static void serve_again(void)
{
	size_t n = n_again;

	/* Handlers may release sources, also those that are still to come, and add some for the next turn. */
	for (size_t i = 0; i < n; i++) {
		struct source *source = again[i];

		again[i] = NULL;
		if (source)
			source->on(source, 0);
	}
	n_again -= n;
	for (size_t i = 0; i < n_again; i++)
		again[i] = again[n + i];
}

/* The supervisor sends a new list, or the run is over. */
static void on_control(struct source *source, uint32_t events)
{
	static char text[CORDON_NET_CONFIG_MAX];
	struct cordon_net_list list = { 0 };
	ssize_t n = recv(source->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		net_sockets_drain();
		net_reports_end();
		_exit(0);
	}
	text[n] = '\0';
	if (cordon_net_list_parse(&list, text, NULL, NULL) < 0)
		return; /* the supervisor has parsed it before */
	/* Credentials stay as they were. */
	list.inject = net.list.inject;
	list.n_inject = net.list.n_inject;
	net.list.inject = NULL;
	net.list.n_inject = 0;
	cordon_net_list_done(&net.list);
	net.list = list;
	net_conns_apply();
	net_names_apply();
	net_listen_apply();
}

static int64_t tick(int64_t last)
{
	if (net.now - last < TICK_MS)
		return last;
	net_conns_tick();
	net_dns_tick();
	net_reports_tick();
	return net.now;
}

_Noreturn static void loop(void)
{
	struct epoll_event events[EVENTS];
	int64_t last = cordon_time_monotonic();

	for (;;) {
		int wait = n_again ? 0 : net_resolve_wait(net.n_conns ? TICK_MS : -1);
		int n = epoll_wait(net.epoll, events, EVENTS, wait);

		net.now = cordon_time_monotonic();
		for (int i = 0; i < n; i++) {
			struct source *source = events[i].data.ptr;

			/* An earlier handler of this turn may have closed it. */
			if (source->fd >= 0)
				source->on(source, events[i].events);
		}
		serve_again();
		net_resolve_tick();
		last = tick(last);
		free_now();
	}
}

static int read_credentials(const json_t *array)
{
	size_t n = json_array_size(array);

	net.credentials = calloc(n + 1, sizeof(*net.credentials));
	if (!net.credentials)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *object = json_array_get(array, i);
		struct credential *c = &net.credentials[i];
		autofree char *prefix = strdup(cordon_json_text(object, "prefix")),
			      *value = strdup(cordon_json_text(object, "value"));

		c->host = strdup(cordon_json_text(object, "host"));
		c->header = strdup(cordon_json_text(object, "header"));
		c->port = (uint16_t)cordon_json_integer(object, "port");
		if (!prefix || !value || !c->host || !c->header || asprintf(&c->value, "%s%s", prefix, value) < 0)
			return -ENOMEM;
		explicit_bzero(value, strlen(value));
	}
	net.n_credentials = n;
	return 0;
}

static int read_config(int fd, struct cordon_buf *ret_proxy)
{
	autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_NET_CONFIG_MAX);
	json_t *config;
	int r;

	r = cordon_read_fd(fd, "the configuration", &text, NULL);
	if (r < 0)
		return r;
	config = json_loadb(text.data, text.len, 0, NULL);
	explicit_bzero(text.data, text.len);
	r = config ? read_credentials(json_object_get(config, "inject")) : -EBADMSG;
	if (r == 0) {
		const char *allow = cordon_json_string(config, "allow");

		r = cordon_net_list_parse(&net.list, allow ? allow : "", NULL, NULL);
		net.proxy.except = strdup(cordon_json_text(config, "no_proxy"));
		net.learning = cordon_json_true(config, "learning");
		if (r == 0)
			r = cordon_buf_adds(ret_proxy, cordon_json_string(config, "proxy"));
	}
	json_decref(config);
	return r;
}

/* A run that measures gives us memory for a meter. */
static int map_meter(int fd)
{
	struct cordon_meter *meters;

	if (fd < 0)
		return 0;
	meters = mmap(NULL, CORDON_METER__MAX * sizeof(*meters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (meters == MAP_FAILED)
		return -errno;
	net.meter = &meters[CORDON_METER_NET];
	return 0;
}

static void set_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		files.rlim_max = 1024;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	net.max_conns = files.rlim_cur > RESERVED_FDS ? (files.rlim_cur - RESERVED_FDS) / 4 : 16;
	if (net.max_conns > NET_CONNS_MAX)
		net.max_conns = NET_CONNS_MAX;
}

static int begin(int config, int meter, pid_t parent, const char **ret_what)
{
	static struct source control = { .on = on_control };
	autobuf struct cordon_buf proxy = CORDON_BUF(4096);
	int r;

	*ret_what = "read the configuration";
	r = read_config(config, &proxy);
	close(config);
	if (r < 0)
		return r;
	*ret_what = "map the meter";
	if ((r = map_meter(meter)) < 0)
		return r;
	*ret_what = "use the proxy that https_proxy names; it must be http://host:port";
	if ((r = net_proxy_parse(proxy.data ? proxy.data : "")) < 0)
		return r;
	set_limits();
	*ret_what = "wait for events";
	net.now = cordon_time_monotonic();
	net.epoll = epoll_create1(EPOLL_CLOEXEC);
	control.fd = net.ctl;
	if (net.epoll < 0 || (r = net_watch(&control, EPOLLIN)) < 0)
		return -errno;
	if ((r = net_resolve_begin(ret_what)) < 0)
		return r;
	if ((r = net_inject_begin(ret_what)) < 0)
		return r;
	net_host_begin();
	if ((r = net_confine(parent, ret_what)) < 0)
		return r;
	*ret_what = "take the sockets of the run";
	return net_sockets_begin();
}

static int parse_number(const char *s)
{
	uint64_t value;

	return cordon_parse_u64(s, 0, INT32_MAX, &value) < 0 ? -1 : (int)value;
}

int main(int argc, char **argv)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	const char *what = "";
	int config = -1, meter = -1, parent = 0, r;

	for (int i = 1; i + 1 < argc; i += 2) {
		int value = parse_number(argv[i + 1]);

		if (cordon_streq(argv[i], "--config-fd"))
			config = value;
		else if (cordon_streq(argv[i], "--sockets-fd"))
			net.sockets = value;
		else if (cordon_streq(argv[i], "--control-fd"))
			net.ctl = value;
		else if (cordon_streq(argv[i], "--meter-fd"))
			meter = value;
		else if (cordon_streq(argv[i], "--parent"))
			parent = value;
	}
	if (config < 0 || net.sockets < 0 || net.ctl < 0 || parent <= 0) {
		static const char text[] = "cordon-net: started by cordon alone, for a run with a list of hosts\n";

		(void)cordon_write_all(STDERR_FILENO, text, sizeof(text) - 1);
		return CORDON_EXIT_USAGE;
	}
	cordon_close_except((const int[]){ config, net.sockets, net.ctl, meter }, 4);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	r = begin(config, meter, parent, &what);
	if (r < 0) {
		net_report_failed(what, r);
		return CORDON_EXIT_REFUSED;
	}
	loop();
}
