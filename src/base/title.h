/* SPDX-License-Identifier: Apache-2.0 */
/* The name that a process shows in /proc. A process inside a sandbox must not show the supervisor's command line. */
#ifndef CORDON_BASE_TITLE_H
#define CORDON_BASE_TITLE_H

/* Called by main(), to set where its arguments are in memory. */
void cordon_title_init(int argc, char **argv);
/* Overwrites the arguments, the environment behind them and the name of the thread. Async-signal-safe. The strings
 * of argv and environ are lost. */
void cordon_title_set(const char *title);

#endif
