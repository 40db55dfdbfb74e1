/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that run an agent. */
#include <stdio.h>

#include "base/path.h"
#include "cli/run_options.h"

static int append(struct cordon_run_list *list, const char *text, struct cordon_error *err)
{
	char **bigger = realloc(list->items, (list->n + 1) * sizeof(*bigger));

	if (bigger)
		list->items = bigger;
	if (!bigger || !(list->items[list->n] = strdup(text)))
		return cordon_fail_errno(err, -ENOMEM, "options");
	list->n++;
	return 0;
}

static int append_share(struct cordon_run_options *options, const struct cordon_share_value *share,
			struct cordon_error *err)
{
	struct cordon_share_value *bigger = realloc(options->shares, (options->n_shares + 1) * sizeof(*bigger));

	if (!bigger)
		return cordon_fail_errno(err, -ENOMEM, "options");
	options->shares = bigger;
	options->shares[options->n_shares++] = *share;
	return 0;
}

static int set_env(struct cordon_run_options *options, const char *arg, struct cordon_error *err)
{
	size_t n = strcspn(arg, "=");
	int r = cordon_env_name_check(arg, n, err);

	if (r < 0)
		return r;
	if (!arg[n])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "%s has no value; use NAME=VALUE, or --keep-env NAME", arg);
	return append(&options->env, arg, err);
}

int cordon_run_absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX];

	if (path[0] == '/')
		return cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) < 0
			       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path)
			       : 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return cordon_fail_errno(err, -errno, "cannot tell the current directory");
	return cordon_path_join(cwd, path, ret, CORDON_PATH_MAX) < 0 ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path)
								     : 0;
}

static int set_share(struct cordon_run_options *options, const char *arg, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	char source[CORDON_PATH_MAX];
	int r = cordon_share_parse(arg, &share, err);

	if (r < 0)
		return r;
	r = cordon_run_absolute(share.source, source, err);
	if (r == 0) {
		free(share.source);
		share.source = strdup(source);
		r = share.source ? append_share(options, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	if (r < 0)
		cordon_share_done(&share);
	return r;
}

static int set_value(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err)
{
	switch (key) {
	case CORDON_RUN_NET:
		options->net_given = true;
		return cordon_net_parse(arg, &options->net, err);
	case CORDON_RUN_TIMEOUT:
		return cordon_timeout_parse(arg, &options->timeout_ms, err);
	case CORDON_RUN_GRACE:
		return cordon_timeout_parse(arg, &options->grace_ms, err);
	case CORDON_RUN_MEMORY:
		return cordon_memory_parse(arg, &options->memory, err);
	case CORDON_RUN_TMP_SIZE:
		return cordon_memory_parse(arg, &options->tmp_size, err);
	case CORDON_RUN_PIDS:
		return cordon_pids_parse(arg, &options->pids, err);
	case CORDON_RUN_CPUS:
		return cordon_cpus_parse(arg, &options->cpus, err);
	case CORDON_RUN_ENV:
		return set_env(options, arg, err);
	case CORDON_RUN_KEEP_ENV:
		return cordon_env_name_check(arg, strlen(arg), err) < 0 ? -EINVAL : append(&options->keep_env, arg, err);
	default:
		return set_share(options, arg, err);
	}
}

int cordon_run_options_set(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err)
{
	int r;

	if (cordon_scope_owns(key))
		return cordon_scope_set(&options->scope, key, arg, err);
	switch (key) {
	case CORDON_RUN_AT:
		options->at = arg;
		return 0;
	case CORDON_RUN_HOME:
		options->home = arg;
		return 0;
	case CORDON_RUN_LENS:
		options->lens_given = true;
		return cordon_lens_parse(arg, &options->lens, err);
	case CORDON_RUN_BEST_EFFORT:
		options->best_effort = true;
		return 0;
	default:
		break;
	}
	r = set_value(options, key, arg, err);
	if (r < 0)
		for (const struct cordon_option *o = options->table; o->name; o++)
			if (o->key == key)
				return cordon_error_prefix(err, r, "--%s", o->name);
	return r;
}

void cordon_run_options_done(struct cordon_run_options *options)
{
	for (size_t i = 0; i < options->env.n; i++)
		free(options->env.items[i]);
	for (size_t i = 0; i < options->keep_env.n; i++)
		free(options->keep_env.items[i]);
	for (size_t i = 0; i < options->n_shares; i++)
		cordon_share_done(&options->shares[i]);
	free(options->env.items);
	free(options->keep_env.items);
	free(options->shares);
	cordon_scope_done(&options->scope);
}

int cordon_run_options_merge(struct cordon_run_options *options, struct cordon_error *err)
{
	const struct cordon_policy_file *file = options->scope.file;
	struct cordon_run_options merged = { 0 };
	int r = 0;

	if (!file)
		return 0;
	for (size_t i = 0; r == 0 && i < file->n_env; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 20);

		r = cordon_buf_addf(&text, "%s=%s", file->env[i].name, file->env[i].value);
		r = r < 0 ? cordon_fail_errno(err, r, "%s", file->env[i].where) : append(&merged.env, text.data, err);
	}
	for (size_t i = 0; r == 0 && i < options->env.n; i++)
		r = append(&merged.env, options->env.items[i], err);
	for (size_t i = 0; i < options->env.n; i++)
		free(options->env.items[i]);
	free(options->env.items);
	options->env = merged.env;
	for (size_t i = 0; r == 0 && i < file->keep_env.n; i++)
		r = append(&options->keep_env, file->keep_env.items[i].text, err);
	for (size_t i = 0; r == 0 && i < file->n_shares; i++) {
		struct cordon_share_value share = { .read_only = file->shares[i].share.read_only };

		share.source = strdup(file->shares[i].share.source);
		share.target = file->shares[i].share.target ? strdup(file->shares[i].share.target) : NULL;
		r = share.source ? append_share(options, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	options->at = options->at ? options->at : file->at.text;
	options->home = options->home ? options->home : file->home.text;
	options->lens = options->lens_given ? options->lens : file->lens;
	options->net = options->net_given ? options->net : file->net;
	options->timeout_ms = options->timeout_ms ? options->timeout_ms : file->limits.timeout_ms;
	options->memory = options->memory ? options->memory : file->limits.memory_bytes;
	options->pids = options->pids ? options->pids : file->limits.pids;
	options->cpus = options->cpus ? options->cpus : file->limits.cpu_millis;
	options->tmp_size = options->tmp_size ? options->tmp_size : file->limits.tmp_bytes;
	options->best_effort |= file->best_effort;
	return r;
}
