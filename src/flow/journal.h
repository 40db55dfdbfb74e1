/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events in the journal of a run.
 *
 *     {"seq":1,"time":"...","event":"engine","crew":"<uuid>","pid":123}   an engine begins
 *     {"event":"attempt","n":1,"step":"plan","attempt":1,"job":"plan.1","areas":["docs"],"view":"<uuid>"}   an agent is about to start
 *     {"event":"end","n":1,"result":"complete"|"failed","outputs":{},"files":[],"dir":"dev:ino","view":"<uuid>",...}   it has ended
 *     {"event":"wait","step":"check"}                          a person has to decide
 *     {"event":"answer","decision":"approve","note":"..."}     the person has decided
 *     {"event":"done","state":"succeeded","reason":""}         the run has ended
 */
#ifndef CORDON_FLOW_JOURNAL_H
#define CORDON_FLOW_JOURNAL_H

#include "state/journal.h"

#endif
