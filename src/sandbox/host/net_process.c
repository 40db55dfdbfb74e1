/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor starts and ends cordon-net. */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/io.h"
#include "base/program.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/net_process.h"
#include "sandbox/host/net_record.h"

#define FIRST_FD 100	 /* its descriptors begin here, above 0, 1 and 2 */
#define RULES_WAITING 64 /* the listeners of so many rules may wait in a socket for cordon-net */

/* The first of these variables that is set and not empty; or "". */
static const char *variable(const char *name, const char *other)
{
	const char *value = getenv(name);

	if (!value || !*value)
		value = getenv(other);
	return value ? value : "";
}

static json_t *credentials(const struct cordon_net_list *list, struct cordon_error *err)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < list->n_inject; i++) {
		const struct cordon_net_inject *inject = &list->inject[i];
		const char *value = getenv(inject->from_env);

		if (!value || !*value) {
			json_decref(array);
			cordon_fail(err, -ENOKEY, CORDON_KIND_CONFIG,
				    "the variable %s, which holds the credential for %s, is not set", inject->from_env,
				    inject->host);
			cordon_error_hint(err, "set it for cordon; the run itself never gets it");
			return NULL;
		}
		if (strpbrk(value, "\r\n")) {
			json_decref(array);
			cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
				    "the variable %s holds the end of a line, which no header can hold",
				    inject->from_env);
			return NULL;
		}
		json_array_append_new(array, json_pack("{s:s,s:i,s:s,s:s,s:s}", "host", inject->host, "port",
						       (int)inject->port, "header", inject->header, "prefix",
						       inject->prefix, "value", value));
	}
	if (!array)
		cordon_fail_errno(err, -ENOMEM, "cannot start cordon-net");
	return array;
}

/* The configuration goes into a file without a name: no other process sees the credentials, as it would on a command
 * line or in an environment. */
static int write_config(const struct cordon_net_list *list, bool learning, int fd, struct cordon_error *err)
{
	autobuf struct cordon_buf rules = CORDON_BUF(CORDON_NET_CONFIG_MAX);
	autofree char *text = NULL;
	json_t *inject = credentials(list, err), *config = NULL;
	int r;

	if (!inject)
		return -EINVAL;
	if (cordon_net_list_text(list, &rules) == 0)
		config = json_pack("{s:s,s:s,s:s,s:b,s:o}", "allow", rules.data ? rules.data : "", "proxy",
				   variable("https_proxy", "HTTPS_PROXY"), "no_proxy", variable("no_proxy", "NO_PROXY"),
				   "learning", learning, "inject", inject);
	else
		json_decref(inject);
	text = config ? json_dumps(config, JSON_COMPACT) : NULL;
	json_decref(config);
	if (!text)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
				   "the list of hosts, a proxy or a credential is no valid text, or there is no memory");
	r = cordon_write_all(fd, text, strlen(text));
	explicit_bzero(text, strlen(text));
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot start cordon-net") : 0;
}

int cordon_net_prepare(const struct cordon_plan *plan, bool learning, struct cordon_net_process *ret_process,
		       struct cordon_error *err)
{
	struct cordon_net_process process = CORDON_NET_PROCESS_NONE;
	int pair[2];
	int r;

	*ret_process = process;
	if (!plan->net)
		return 0;
	r = cordon_program_find("cordon-net", process.program, err);
	if (r < 0) {
		cordon_error_hint(err, "install it, or run without a network, or with the host's");
		return r;
	}
	process.at_once = plan->net->n_inject || plan->net->n > RULES_WAITING || *variable("https_proxy", "HTTPS_PROXY");
	process.config = memfd_create("cordon-net", MFD_CLOEXEC);
	process.wake = epoll_create1(EPOLL_CLOEXEC);
	if (process.config < 0 || process.wake < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot prepare cordon-net");
	} else {
		process.inside = pair[0];
		process.sockets = pair[1];
		r = write_config(plan->net, learning, process.config, err);
	}
	if (r < 0)
		cordon_net_stop(&process);
	*ret_process = process;
	return r;
}

_Noreturn static void become_net(const struct cordon_net_process *process, int ctl, pid_t parent)
{
	const int numbers[] = { process->config, process->sockets, ctl, process->meter, (int)parent };
	char texts[5][16], name[] = "cordon-net";
	char options[5][16] = { "--config-fd", "--sockets-fd", "--control-fd", "--meter-fd", "--parent" };
	char *argv[12] = { name }, *env[] = { NULL };
	size_t n = 1;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++) {
		int value = numbers[i];

		if (value < 0)
			continue; /* nothing is measured */
		if (i < 4)
			value = fcntl(numbers[i], F_DUPFD, FIRST_FD);
		if (value < 0)
			_exit(CORDON_EXIT_REFUSED);
		snprintf(texts[i], sizeof(texts[i]), "%d", value);
		argv[n++] = options[i];
		argv[n++] = texts[i];
	}
	execve(process->program, argv, env);
	_exit(CORDON_EXIT_REFUSED);
}

/* What only a cordon-net that is still to be started needs. When the sockets in it were not taken, this closes them. */
static void release_start(struct cordon_net_process *process)
{
	cordon_closep(&process->config);
	cordon_closep(&process->inside);
	cordon_closep(&process->sockets);
	cordon_closep(&process->wake);
}

int cordon_net_start(struct cordon_net_process *process, struct cordon_error *err)
{
	pid_t parent = getpid();
	int pair[2] = { -1, -1 };
	int r;

	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
	process->pid = r == 0 ? fork() : -1;
	if (process->pid == 0)
		become_net(process, pair[1], parent);
	if (r == 0 && process->pid < 0)
		r = -errno;
	cordon_closep(&pair[1]);
	release_start(process);
	if (r < 0) {
		cordon_closep(&pair[0]);
		return cordon_fail_errno(err, r, "cannot start cordon-net");
	}
	process->ctl = pair[0];
	fcntl(process->ctl, F_SETFL, O_NONBLOCK);
	return 0;
}

bool cordon_net_is_due(const struct cordon_net_process *process)
{
	struct pollfd used = { .fd = process->wake, .events = POLLIN };

	return process->wake >= 0 && poll(&used, 1, 0) == 1;
}

int cordon_net_stop(struct cordon_net_process *process)
{
	int status = 0;

	if (process->pid > 0) {
		/* It holds nothing that it would have to clean up, and it may have been stopped. */
		kill(process->pid, SIGKILL);
		while (wait4(process->pid, &status, 0, &process->usage) < 0 && errno == EINTR)
			;
	}
	release_start(process);
	cordon_closep(&process->ctl);
	process->pid = -1;
	return status;
}

int cordon_child_net(struct cordon_child *child, const char *list_text, struct cordon_error *err)
{
	size_t n = strlen(list_text);
	int r = child->net.wake >= 0 ? cordon_net_start(&child->net, err) : 0;

	if (r < 0)
		return r;
	if (child->net.ctl < 0)
		return cordon_fail(err, -ENOTCONN, CORDON_KIND_IO,
				   "this run has no list of hosts, or the helper that serves it has ended");
	/* The empty list is a message, too. */
	if (send(child->net.ctl, list_text, n + 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return cordon_fail_errno(err, -errno, "cannot change the list of hosts");
	return 0;
}
