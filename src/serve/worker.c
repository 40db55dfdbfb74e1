/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the child processes that make pages, and takes their answers. */
#include "serve/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/io.h"
#include "serve/internal.h"

#define OUT_FULL ((size_t)256 << 10) /* what the exchange may hold before the pipe has to wait */

/* ---- in the child ---- */

struct sender {
	int fd;
	pid_t browser;
	bool begun;
};

static void send_head(struct sender *sender, const struct cordon_page_answer *answer)
{
	struct cordon_worker_head head = { .status = answer->status, .browser = sender->browser };

	if (sender->begun)
		return;
	sender->begun = true;
	cordon_copy(head.type, sizeof(head.type), answer->type, strlen(answer->type));
	memcpy(head.location, answer->location, sizeof(head.location));
	memcpy(head.file, answer->file, sizeof(head.file));
	cordon_write_all(sender->fd, &head, sizeof(head));
}

static void send_part(void *data, const struct cordon_page_answer *answer, const char *bytes, size_t n)
{
	struct sender *sender = data;

	send_head(sender, answer);
	cordon_write_all(sender->fd, bytes, n);
}

_Noreturn static void work(const struct cordon_exchange *exchange, struct cordon_page_request *request, int fd)
{
	struct sender sender = { .fd = fd, .browser = exchange->server->browser };
	struct cordon_page_answer answer;

	request->send = send_part;
	request->data = &sender; /* cppcheck-suppress autoVariables ; this function does not return */
	/* INVARIANT: who logged in outside of sandboxes is not served inside one. A browser sends the cookie to every
	 * server at the address of the page, and an agent may start one on another port. */
	if (exchange->page->inode && exchange->page->login.outside &&
	    !cordon_peer_outside(exchange->page->inode, &sender.browser))
		cordon_page_refuse(MHD_HTTP_FORBIDDEN, "This login belongs to a browser outside of sandboxes", &answer);
	else
		cordon_page_serve(request, &answer);
	send_head(&sender, &answer);
	if (answer.body.len)
		cordon_write_all(fd, answer.body.data, answer.body.len);
	_exit(0);
}

/* ---- in the server ---- */

/* Actions that hang, and have no end, must not keep a person from seeing the page. */
static size_t count(const struct cordon_server *server, bool acts)
{
	size_t n = 0;

	for (const struct cordon_worker *worker = server->workers; worker; worker = worker->next)
		n += worker->acts == acts;
	return n;
}

int cordon_worker_start(struct cordon_exchange *exchange, const char *method, const char *path, const char *query)
{
	struct cordon_server *server = exchange->server;
	struct cordon_page_request request = {
		.store = server->store,
		.method = method,
		.path = path,
		.query = query,
		.body = exchange->body.data ? exchange->body.data : "",
		.body_size = exchange->body.len,
		.who = exchange->client->name,
		.token = exchange->page->login.token,
	};
	struct cordon_worker *worker;
	int fds[2], r;

	if (count(server, cordon_streq(method, "POST")) >= CORDON_WORKERS_MAX)
		return -EAGAIN;
	worker = calloc(1, sizeof(*worker));
	if (!worker)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		r = -errno;
		free(worker);
		return r;
	}
	worker->pid = cordon_store_fork(server->store, fds[1], cordon_streq(method, "GET"));
	if (worker->pid == 0)
		work(exchange, &request, fds[1]);
	r = worker->pid < 0 ? (int)worker->pid : 0;
	close(fds[1]);
	worker->fd = fds[0];
	if (r == 0 && fcntl(worker->fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		close(worker->fd);
		free(worker);
		return r;
	}
	worker->acts = cordon_streq(method, "POST");
	worker->exchange = exchange;
	exchange->page->worker = worker;
	worker->next = server->workers;
	server->workers = worker;
	cordon_worker_more(worker);
	return 0;
}

static void watch(struct cordon_server *server, struct cordon_worker *worker, bool on)
{
	if (worker->watched == on)
		return;
	worker->watched = on;
	cordon_server_watch_worker(server, worker->fd, on);
}

/* The child has ended, or will in an instant: it closes its end of the pipe by exiting. */
static void end(struct cordon_server *server, struct cordon_worker *worker)
{
	struct cordon_worker **link = &server->workers;
	bool whole = worker->got == sizeof(worker->head);
	int status = 0;

	watch(server, worker, false);
	close(worker->fd);
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	while (*link != worker)
		link = &(*link)->next;
	*link = worker->next;
	if (worker->exchange) {
		worker->exchange->page->worker = NULL;
		cordon_exchange_page_end(worker->exchange, whole,
					 whole && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	free(worker);
}

static struct cordon_worker *find(const struct cordon_server *server, int fd)
{
	for (struct cordon_worker *worker = server->workers; worker; worker = worker->next)
		if (worker->fd == fd)
			return worker;
	return NULL;
}

/* Returns what read() returns. */
static ssize_t read_some(struct cordon_worker *worker)
{
	CORDON_UNCLEARED char bytes[65536];
	ssize_t n;

	if (worker->got < sizeof(worker->head)) {
		n = read(worker->fd, (char *)&worker->head + worker->got, sizeof(worker->head) - worker->got);
		if (n > 0 && (worker->got += (size_t)n) == sizeof(worker->head) && worker->exchange)
			cordon_exchange_page_begin(worker->exchange, &worker->head);
		return n;
	}
	n = read(worker->fd, bytes, sizeof(bytes));
	/* Without a reader the rest is thrown away, so that the child does not wait for ever. */
	if (n > 0 && worker->exchange)
		cordon_exchange_page_add(worker->exchange, bytes, (size_t)n);
	return n;
}

void cordon_worker_read(struct cordon_server *server, int fd)
{
	struct cordon_worker *worker = find(server, fd);
	ssize_t n;

	if (!worker)
		return;
	do {
		n = read_some(worker);
		if (n > 0 && worker->exchange && worker->exchange->out.len - worker->exchange->sent >= OUT_FULL) {
			watch(server, worker, false); /* cordon_worker_more() goes on */
			return;
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n == 0 || errno != EAGAIN)
		end(server, worker);
}

void cordon_worker_more(struct cordon_worker *worker)
{
	watch(worker->exchange->server, worker, true);
}

void cordon_worker_leave(struct cordon_worker *worker)
{
	struct cordon_server *server = worker->exchange->server;

	worker->exchange->page->worker = NULL;
	worker->exchange = NULL;
	if (!worker->acts)
		kill(worker->pid, SIGKILL); /* a child of ours that nobody has waited for yet */
	watch(server, worker, true);
}

void cordon_workers_free(struct cordon_server *server)
{
	struct cordon_worker *worker;

	while ((worker = server->workers)) {
		server->workers = worker->next;
		close(worker->fd);
		free(worker);
	}
}
