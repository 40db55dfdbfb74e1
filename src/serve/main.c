/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon-serve KEY=VALUE...: the HTTP server. `cordon serve` has the options and executes it; people do not. Keys are
 * listen, any, host, toolset, metrics-labels and page.
 */
#include <sodium.h>
#include <stdio.h>

#include "base/exit.h"
#include "base/text.h"
#include "serve/serve.h"

static int fail(const struct cordon_error *err)
{
	char message[sizeof(err->message)];

	cordon_text_escape_fixed(message, sizeof(message), err->message, strlen(err->message));
	fprintf(stderr, "cordon: %s\n", message);
	if (*err->hint)
		fprintf(stderr, "  hint: %s\n", err->hint);
	return err->kind == CORDON_KIND_USAGE ? CORDON_EXIT_USAGE : CORDON_EXIT_NO;
}

static void listening(void *data, const char *address, bool anybody)
{
	(void)data;
	fprintf(stderr, "[SERVE] listening on %s\n", address);
	if (anybody)
		fputs("[SERVE] others can reach this address without encryption: put a front with TLS before it\n",
		      stderr);
}

static void say(void *data, const char *text)
{
	char shown[1024];

	(void)data;
	cordon_text_escape_fixed(shown, sizeof(shown), text, strlen(text));
	fprintf(stderr, "[SERVE] %s\n", shown);
}

/* Adds a value to a list of the options. */
static int append(const char **list, size_t *n, size_t max, const char *value, struct cordon_error *err)
{
	if (*n == max)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "too many of these: %s", value);
	list[(*n)++] = value;
	return 0;
}

static int read_argument(const char *text, struct cordon_serve_options *serve, struct cordon_mcp_options *mcp,
			 struct cordon_error *err)
{
	const char *value = strchr(text, '=');

	if (value && strncmp(text, "listen=", 7) == 0)
		return append(serve->listen, &serve->n_listen, CORDON_SERVE_LISTENERS_MAX, value + 1, err);
	if (value && strncmp(text, "any=", 4) == 0)
		return append(serve->any, &serve->n_any, CORDON_SERVE_LISTENERS_MAX, value + 1, err);
	if (value && strncmp(text, "host=", 5) == 0)
		return append(serve->hosts, &serve->n_hosts, CORDON_SERVE_HOSTS_MAX, value + 1, err);
	if (value && strncmp(text, "toolset=", 8) == 0) {
		mcp->toolset = value + 1;
		return 0;
	}
	if (cordon_streq(text, "metrics-labels=1")) {
		serve->metrics_labels = true;
		return 0;
	}
	if (cordon_streq(text, "page=1")) {
		serve->page = true;
		return 0;
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "cordon-serve is started by 'cordon serve'");
}

int main(int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct cordon_serve_options serve = { .listening = listening, .say = say };
	unsigned char key[CORDON_SERVE_KEY_SIZE];
	struct cordon_mcp_options options = { .key = key };
	struct cordon_error err = { 0 };
	struct cordon_mcp *mcp = NULL;
	int r = 0;

	for (int i = 1; r == 0 && i < argc; i++)
		r = read_argument(argv[i], &serve, &options, &err);
	if (r == 0 && sodium_init() < 0)
		r = cordon_fail(&err, -EIO, CORDON_KIND_INTERNAL, "libsodium can't be used");
	if (r == 0)
		r = cordon_store_open(&store, &err);
	if (r == 0)
		r = cordon_serve_key(&store, key, &err);
	if (r == 0)
		r = cordon_mcp_new(&store, &options, &mcp, &err);
	sodium_memzero(key, sizeof(key));
	if (r == 0)
		r = cordon_serve(mcp, &store, &serve, &err);
	cordon_mcp_free(mcp);
	return r < 0 ? fail(&err) : CORDON_EXIT_OK;
}
