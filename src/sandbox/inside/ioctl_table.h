/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ioctl requests that an agent may make; every other one gets ENOTTY, which is what programs get where a request is
 * not known. Part of seccomp_gen.c.
 *
 * A request is on the list if ordinary programs need it, and if it changes nothing but the caller's own descriptor,
 * terminal or the content of a file that it may write. Not on the list are requests that make or remove names (those
 * of btrfs, bcachefs and ocfs2), change the attributes of a file (FS_IOC_SETFLAGS: immutable, case folding), type into a
 * terminal (TIOCSTI, TIOCLINUX), open a namespace (SIOCGSKNS, NS_GET_PARENT, PIDFD_GET_NET_NAMESPACE), and those of
 * devices, because a run has none but terminals and /dev/random. docs/ioctl.md says of each request what it is for;
 * tests/attacks/test_ioctl.py compares the two.
 */
#ifndef CORDON_SANDBOX_INSIDE_IOCTL_TABLE_H
#define CORDON_SANDBOX_INSIDE_IOCTL_TABLE_H

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stdint.h>

/* Newer than the headers that we build with. */
#ifndef FS_IOC_GETFSUUID
#define FS_IOC_GETFSUUID 0x80111500U
#endif
#ifndef FS_IOC_GETFSSYSFSPATH
#define FS_IOC_GETFSSYSFSPATH 0x80811501U
#endif
#define NOTIF_SET_FLAGS 0x40082104U /* SECCOMP_IOCTL_NOTIF_SET_FLAGS of 6.6 */

static const uint32_t ioctl_requests[] = {
	/* Settings of a terminal. */
	TCGETS,
	TCSETS,
	TCSETSW,
	TCSETSF,
	TCGETA,
	TCSETA,
	TCSETAW,
	TCSETAF,
	TCGETS2,
	TCSETS2,
	TCSETSW2,
	TCSETSF2,
	TIOCGWINSZ,
	TIOCSWINSZ,
	TIOCGETD,
	TIOCGDEV,
	/* What waits in a terminal. */
	TCSBRK,
	TCSBRKP,
	TCXONC,
	TCFLSH,
	TIOCOUTQ,
	/* Sessions and job control. */
	TIOCSCTTY,
	TIOCNOTTY,
	TIOCGPGRP,
	TIOCSPGRP,
	TIOCGSID,
	/* Pseudo-terminals. */
	TIOCGPTN,
	TIOCSPTLCK,
	TIOCGPTLCK,
	TIOCGPTPEER,
	TIOCPKT,
	TIOCGPKT,
	/* Any descriptor. */
	FIONREAD,
	FIONBIO,
	FIOASYNC,
	FIOCLEX,
	FIONCLEX,
	FIOQSIZE,
	/* Files: sharing blocks needs the right to write the target; the others only look. */
	FICLONE,
	FICLONERANGE,
	FIDEDUPERANGE,
	FS_IOC_FIEMAP,
	FIGETBSZ,
	FS_IOC_GETFLAGS,
	FS_IOC_GETVERSION,
	FS_IOC_FSGETXATTR,
	FS_IOC_GETFSLABEL,
	FS_IOC_GETFSUUID,
	FS_IOC_GETFSSYSFSPATH,
	/* Sockets. */
	FIOSETOWN,
	FIOGETOWN,
	SIOCSPGRP,
	SIOCGPGRP,
	SIOCATMARK,
	SIOCOUTQNSD,
	SIOCGSTAMP_OLD,
	SIOCGSTAMPNS_OLD,
	SIOCGSTAMP_NEW,
	SIOCGSTAMPNS_NEW,
	/* Looking at the interfaces of the network. */
	SIOCGIFNAME,
	SIOCGIFCONF,
	SIOCGIFFLAGS,
	SIOCGIFADDR,
	SIOCGIFDSTADDR,
	SIOCGIFBRDADDR,
	SIOCGIFNETMASK,
	SIOCGIFMETRIC,
	SIOCGIFMTU,
	SIOCGIFHWADDR,
	SIOCGIFINDEX,
	SIOCGIFTXQLEN,
	SIOCGIFMAP,
	/* /dev/random and /dev/urandom. */
	RNDGETENTCNT,
};

/* What the hand may ask for besides: the requests of a seccomp listener. */
static const uint32_t hand_requests[] = {
	SECCOMP_IOCTL_NOTIF_RECV,  SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_IOCTL_NOTIF_ID_VALID,
	SECCOMP_IOCTL_NOTIF_ADDFD, NOTIF_SET_FLAGS,
};

#endif
