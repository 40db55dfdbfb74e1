/* SPDX-License-Identifier: Apache-2.0 */
/* The name a process shows in /proc. A process inside a sandbox must not tell the supervisor's command line. */
#ifndef CORDON_BASE_TITLE_H
#define CORDON_BASE_TITLE_H

/* main() says where its arguments lie. */
void cordon_title_init(int argc, char **argv);
/* Overwrites them, the environment behind them and the name of the thread. Async-signal-safe. The strings of argv and
 * environ are gone afterwards. */
void cordon_title_set(const char *title);

#endif
