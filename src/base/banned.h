/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that no code of cordon may call: unbounded copies, silent truncation, hidden state, shells. */
#ifndef CORDON_BASE_BANNED_H
#define CORDON_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CORDON_BANNED(function) sorry_##function##_is_banned_here

#undef strcpy
#define strcpy(...) CORDON_BANNED(strcpy)
#undef strcat
#define strcat(...) CORDON_BANNED(strcat)
#undef strncpy
#define strncpy(...) CORDON_BANNED(strncpy)
#undef strncat
#define strncat(...) CORDON_BANNED(strncat)
#undef stpcpy
#define stpcpy(...) CORDON_BANNED(stpcpy)
#undef sprintf
#define sprintf(...) CORDON_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) CORDON_BANNED(vsprintf)
#undef gets
#define gets(...) CORDON_BANNED(gets)
#undef strtok
#define strtok(...) CORDON_BANNED(strtok)
#undef strtok_r
#define strtok_r(...) CORDON_BANNED(strtok_r)
#undef mktemp
#define mktemp(...) CORDON_BANNED(mktemp)
#undef tmpnam
#define tmpnam(...) CORDON_BANNED(tmpnam)
#undef tempnam
#define tempnam(...) CORDON_BANNED(tempnam)
#undef system
#define system(...) CORDON_BANNED(system)
#undef popen
#define popen(...) CORDON_BANNED(popen)
#undef atoi
#define atoi(...) CORDON_BANNED(atoi)
#undef atol
#define atol(...) CORDON_BANNED(atol)
#undef atoll
#define atoll(...) CORDON_BANNED(atoll)
#undef gmtime
#define gmtime(...) CORDON_BANNED(gmtime)
#undef localtime
#define localtime(...) CORDON_BANNED(localtime)
#undef ctime
#define ctime(...) CORDON_BANNED(ctime)
#undef asctime
#define asctime(...) CORDON_BANNED(asctime)

#endif
