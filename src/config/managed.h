/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc/cordon/managed.yaml: a fence that the owner of the machine puts around every policy of every user, root included. It
 * has the form of a policy file, with the keys that only narrow:
 *
 *     version: 1
 *     deny: [.env, "*.pem"]           # in every root
 *     protect: [CODEOWNERS]
 *     rw: [src, docs]                   # and ro, within: nothing else, whatever a policy grants; runs are strict then
 *     read_only: false
 *     mode: strict
 *     net: [api.example.com]            # or none
 *     share: ["/opt/data:ro"]           # of the host's directories only these, and what lies in them, may be shared
 *
 * INVARIANT: nothing that a user can set names another file or leaves it out. A file that can't be read, that others than root
 * could have written, or that has an error, refuses every run.
 */
#ifndef CORDON_CONFIG_MANAGED_H
#define CORDON_CONFIG_MANAGED_H

#include "config/policy_file.h"
#include "policy/policy.h"

#define CORDON_MANAGED_DIR "/etc/cordon"
#define CORDON_MANAGED_PATH CORDON_MANAGED_DIR "/managed.yaml"

/* *ret_file is NULL when there is none. */
int cordon_managed_load(struct cordon_policy_file **ret_file, struct cordon_errors *errors);
/* Puts the fence around a policy; NULL: there is none. */
int cordon_managed_fence(const struct cordon_policy_file *managed, struct cordon_policy *policy,
			 struct cordon_errors *errors);
/* Whether a directory of the host may be shared. */
int cordon_managed_share(const struct cordon_policy_file *managed, const char *source, bool read_only,
			 struct cordon_error *err);
/* Whether a host may be added to the list of a run. Reads the file. */
int cordon_managed_host(const struct cordon_net_rule *rule, struct cordon_error *err);

#endif
