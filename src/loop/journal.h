/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events in the journal of a loop. The same objects are what an observer gets and what `cordon loop --json` prints.
 *
 *     {"seq":1,"time":"...","event":"begin","crew":"<uuid>","stories":12,"workers":4,
 *      "loop":"<id>","pid":1,"root":"/...","prds":["/..."]}        a loop begins, or goes on
 *     {"event":"call","n":1,"prd":"prd.json","story":"US-001","attempt":1,"view":"<uuid>","job":0}   an agent is about to start
 *     {"event":"check","n":1,"story":"US-001","job":1}         it has ended, and its result is checked
 *     {"event":"failed","n":1,"story":"US-001","counts":true,"note":"..."}     the call came to nothing
 *     {"event":"accepted","n":1,"story":"US-001","view":"<uuid>","commit":"..."}   its result is to be brought over
 *     {"event":"landing","calls":[1,2],"view":"<uuid>"}        these results are being brought over, in this order
 *     {"event":"passed","calls":[1,2],"stories":[...]}         they are in the host's tree, and the PRD says so
 *     {"event":"parked","story":"US-001","reason":"..."}
 *     {"event":"retry","story":"US-001","uid":1000}            a person gave it its attempts back
 *     {"event":"done"}                                         the loop has ended, and the next one begins anew
 */
#ifndef CORDON_LOOP_JOURNAL_H
#define CORDON_LOOP_JOURNAL_H

#include "state/journal.h"

#endif
