/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file says about the network, under the key `net`: a word, a list of hosts, or a mapping with hosts and
 * credentials:
 *
 *     net: none                          # or host, or profile: the hosts of the run's profiles
 *     net: [api.example.com, profile]
 *     net:
 *       allow: [registry.example.com:443]
 *       inject:
 *         - {host: api.example.com, header: x-api-key, from_env: API_KEY, base_url_env: API_URL}
 */
#ifndef CORDON_CONFIG_NET_SETTING_H
#define CORDON_CONFIG_NET_SETTING_H

#include <jansson.h>

#include "config/reader.h"
#include "policy/net.h"

struct cordon_setting {
	const char *text;
	const char *where; /* "file:line:column" */
	size_t line, column;
};

struct cordon_setting_list {
	struct cordon_setting *items;
	size_t n;
};

/* The words that stand alone; `profile` may also stand in a list. */
#define CORDON_NET_WORD_HOST "host"
#define CORDON_NET_WORD_NONE "none"
#define CORDON_NET_WORD_PROFILE "profile"

/* All strings belong to the document. */
struct cordon_net_setting {
	const char *where; /* NULL: the file says nothing about the network */
	const char *word;  /* one of the words, or NULL: the lists count */
	struct cordon_setting_list allow;
	struct cordon_net_inject *inject;
	size_t n_inject;
};

/* Reads the value of `net` and reports every error in it. Returns 0 or -ENOMEM. */
int cordon_net_read(const struct cordon_reader *reader, const struct cordon_node *node, bool credentials,
		    struct cordon_net_setting *ret_setting);

/* The list of a setting. `profiles` is what the word `profile` stands for; NULL: an error. */
int cordon_net_setting_list(const struct cordon_net_setting *setting, const struct cordon_net_list *profiles,
			    struct cordon_net_list *ret_list, struct cordon_error *err);
/* The same for the text of an option: a word, or a comma list. Is added to what *list has. */
int cordon_net_option(const char *text, const char *where, const struct cordon_net_list *profiles,
		      struct cordon_net_list *list, struct cordon_error *err);

/* The list as a JSON value: "host", "none", an array of rules, or an object with `allow` and `inject`; NULL without
 * memory. */
json_t *cordon_net_list_json(const struct cordon_net_list *list);
/* The reverse. `key` is for messages, which name the entry; `profiles` as above. */
int cordon_net_list_from_json(const char *key, json_t *value, const struct cordon_net_list *profiles,
			      struct cordon_net_list *ret_list, struct cordon_error *err);
/* Whether a value is of this kind; the word `profile` may mean anything. */
int cordon_net_json_valid(const char *key, json_t *value, struct cordon_error *err);

#endif
