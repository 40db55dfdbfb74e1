/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor measures the memory of a whole run. */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/listing.h"
#include "base/time.h"
#include "sandbox/host/memory.h"

#define NEAR_MS 25 /* between looks when more than half of the limit is used */
#define FAR_MS 100 /* and otherwise */
#define LONGEST_MS 2000
#define COST_SHARE 20 /* a look takes at most about this part of the time */
#define YOUNG_MS 1000
#define KIB 1024
#define BLOCK 512 /* of st_blocks */

struct process {
	char number[16]; /* in the /proc that we read */
	pid_t pid, parent;
	bool counts; /* belongs to the run */
	uint64_t size, anonymous, shared, swap;
};

/* A memfd that a process has open. */
struct object {
	ino_t ino;
	uint64_t bytes;
};

/* What a process is called here and in the run's pid namespace. */
struct number {
	pid_t host, inside;
};

struct cordon_memory {
	uint64_t limit;
	pid_t first;
	pid_t top; /* 0: what /proc shows is the run */
	int fds[CORDON_MEMORY__MAX];
	dev_t shm_dev; /* of memfds, System V segments and shared mappings without a file */
	uint64_t due;
	struct process *processes; /* as the last look found them, in order of pid, as /proc lists them */
	size_t n_processes, cap_processes;
	struct object *objects; /* in order of the number, each once */
	size_t n_objects, cap_objects;
	bool numbers_known; /* in this look */
	struct number *numbers;
	size_t n_numbers, cap_numbers;
};

struct cordon_memory *cordon_memory_new(uint64_t limit, pid_t first, bool whole)
{
	struct cordon_memory *memory = calloc(1, sizeof(*memory));
	autofd int shm = memfd_create("cordon", MFD_CLOEXEC);
	struct stat st;

	if (!memory)
		return NULL;
	memory->limit = limit;
	memory->first = first;
	memory->top = whole ? 0 : first;
	for (size_t i = 0; i < CORDON_MEMORY__MAX; i++)
		memory->fds[i] = -1;
	if (shm >= 0 && fstat(shm, &st) == 0)
		memory->shm_dev = st.st_dev;
	if (memory->top)
		cordon_memory_take(memory, CORDON_MEMORY_PROC, open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return memory;
}

struct cordon_memory *cordon_memory_free(struct cordon_memory *memory)
{
	if (memory) {
		for (size_t i = 0; i < CORDON_MEMORY__MAX; i++)
			cordon_closep(&memory->fds[i]);
		free(memory->processes);
		free(memory->objects);
		free(memory->numbers);
		free(memory);
	}
	return NULL;
}

void cordon_memory_take(struct cordon_memory *memory, enum cordon_memory_fd which, int fd)
{
	cordon_closep(&memory->fds[which]);
	memory->fds[which] = fd;
	if (which == CORDON_MEMORY_PROC)
		memory->due = (uint64_t)cordon_time_monotonic() + NEAR_MS;
}

uint64_t cordon_memory_due(const struct cordon_memory *memory)
{
	return memory ? memory->due : 0;
}

/* Makes room for one more item. */
static bool grow(void **items, size_t n, size_t *cap, size_t size)
{
	size_t bigger = *cap ? 2 * *cap : 64;
	void *moved;

	if (n < *cap)
		return true;
	moved = reallocarray(*items, bigger, size);
	if (!moved)
		return false;
	*items = moved;
	*cap = bigger;
	return true;
}

/* ---- the upper bound ---- */

/* The number behind "Name:" in the lines of a status file; 0 when there is none. */
static uint64_t field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, name, n) == 0)
			return strtoull(text + n, NULL, 10);
	}
	return 0;
}

static bool read_status(int dir, struct process *ret)
{
	autofd int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	CORDON_UNCLEARED char text[8192];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	ret->parent = (pid_t)field(text, "PPid:");
	ret->size = field(text, "VmSize:") * KIB;
	ret->anonymous = field(text, "RssAnon:") * KIB;
	ret->shared = field(text, "RssShmem:") * KIB;
	ret->swap = field(text, "VmSwap:") * KIB;
	return true;
}

/* Finds the memfds that a process has open. A process that closed its /proc files to us shows only what it mapped. */
static void find_objects(struct cordon_memory *memory, int dir)
{
	autofd int list = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;

	if (list < 0)
		return;
	cordon_listing_init(&listing, list);
	while ((entry = cordon_listing_next(&listing))) {
		char target[7];
		struct stat st;

		/* We look at nothing else: to look at a file may wait for its file system. */
		if (readlinkat(list, entry->d_name, target, sizeof(target)) != (ssize_t)sizeof(target) ||
		    memcmp(target, "/memfd:", sizeof(target)) != 0 || fstatat(list, entry->d_name, &st, 0) < 0 ||
		    st.st_dev != memory->shm_dev ||
		    !grow((void **)&memory->objects, memory->n_objects, &memory->cap_objects, sizeof(*memory->objects)))
			continue;
		memory->objects[memory->n_objects++] = (struct object){ st.st_ino, (uint64_t)st.st_blocks * BLOCK };
	}
}

static int compare_objects(const void *a, const void *b)
{
	ino_t left = ((const struct object *)a)->ino, right = ((const struct object *)b)->ino;

	return left < right ? -1 : left > right;
}

/* Sorts the memfds, drops those that were found twice, and returns their sum. */
static uint64_t sum_objects(struct cordon_memory *memory)
{
	struct object *objects = memory->objects;
	uint64_t sum = 0;
	size_t n = 0;

	if (memory->n_objects)
		qsort(objects, memory->n_objects, sizeof(*objects), compare_objects);
	for (size_t i = 0; i < memory->n_objects; i++) {
		if (n && objects[n - 1].ino == objects[i].ino)
			continue;
		objects[n++] = objects[i];
		sum += objects[i].bytes;
	}
	memory->n_objects = n;
	return sum;
}

/* Without a pid namespace: marks the processes below `top`, generation by generation. */
static void find_descendants(struct cordon_memory *memory)
{
	bool found = true;

	while (found) {
		found = false;
		for (size_t i = 0; i < memory->n_processes; i++) {
			struct process *p = &memory->processes[i];

			for (size_t k = 0; !p->counts && k < memory->n_processes; k++)
				if (memory->processes[k].counts && memory->processes[k].pid == p->parent)
					found = p->counts = true;
		}
	}
}

static int open_process(const struct cordon_memory *memory, const struct process *p)
{
	return openat(memory->fds[CORDON_MEMORY_PROC], p->number, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void find_processes(struct cordon_memory *memory)
{
	autofd int list = openat(memory->fds[CORDON_MEMORY_PROC], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;

	memory->n_processes = 0;
	if (list < 0)
		return;
	cordon_listing_init(&listing, list);
	while ((entry = cordon_listing_next(&listing))) {
		autofd int dir = -1;
		struct process *p;
		uint64_t pid;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    cordon_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0 ||
		    !grow((void **)&memory->processes, memory->n_processes, &memory->cap_processes,
			  sizeof(*memory->processes)))
			continue;
		p = &memory->processes[memory->n_processes];
		*p = (struct process){ .pid = (pid_t)pid, .counts = !memory->top || (pid_t)pid == memory->top };
		snprintf(p->number, sizeof(p->number), "%d", (int)pid);
		dir = open_process(memory, p);
		if (dir >= 0 && read_status(dir, p))
			memory->n_processes++;
	}
	if (memory->top)
		find_descendants(memory);
}

/* The sum of all System V segments of the namespace: the last two columns are what is in memory and what is swapped. */
static uint64_t sum_segments(const struct cordon_memory *memory)
{
	int fd = memory->fds[CORDON_MEMORY_SHM] < 0 ? -1 : fcntl(memory->fds[CORDON_MEMORY_SHM], F_DUPFD_CLOEXEC, 3);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	autofree char *line = NULL;
	uint64_t sum = 0;
	size_t cap = 0;

	if (!file) {
		cordon_closep(&fd);
		return 0;
	}
	rewind(file);
	while (getline(&line, &cap, file) > 0) {
		const char *end = line + strlen(line);

		for (int column = 0; column < 2; column++) {
			while (end > line && (end[-1] == ' ' || end[-1] == '\n'))
				end--;
			while (end > line && end[-1] >= '0' && end[-1] <= '9')
				end--;
			sum += strtoull(end, NULL, 10); /* the names of the columns count as 0 */
		}
	}
	fclose(file);
	return sum;
}

static uint64_t sum_files(int own)
{
	struct statfs fs;

	return own < 0 || fstatfs(own, &fs) < 0 ? 0 : (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* ---- the exact sum ---- */

struct mapping {
	bool shared; /* MAP_SHARED */
	bool file;   /* has an inode, which memory without a file may have, too */
	bool shm;    /* the inode is one of memory without a file */
	bool known;  /* it is counted as a memfd or a System V segment */
	uint64_t pss, swap, anonymous;
};

static uint64_t weigh(const struct mapping *m)
{
	if (!m->file || (m->shared && m->shm && !m->known))
		return m->pss + m->swap;
	if (m->shared)
		return 0; /* a file: of the private file systems, which are counted as a whole, or of a disk */
	/* What the process changed in its copy of a file. */
	return (m->anonymous < m->pss ? m->anonymous : m->pss) + m->swap;
}

static bool is_object(const struct cordon_memory *memory, ino_t ino)
{
	const struct object key = { .ino = ino };

	return memory->n_objects &&
	       bsearch(&key, memory->objects, memory->n_objects, sizeof(key), compare_objects) != NULL;
}

/* Parses the first line of a mapping: "7f00-7f01 rw-s 00000000 00:01 1234  /memfd:name (deleted)". */
static struct mapping read_mapping(const struct cordon_memory *memory, const char *line)
{
	char perms[5] = "";
	unsigned int dev_major = 0, dev_minor = 0;
	unsigned long ino = 0;
	int name = 0;
	struct mapping m = { 0 };

	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it. */
	if (sscanf(line, "%*x-%*x %4s %*x %x:%x %lu %n", perms, &dev_major, &dev_minor, &ino, &name) < 4)
		return m;
	m.shared = perms[3] == 's';
	m.file = ino != 0;
	m.shm = m.file && makedev(dev_major, dev_minor) == memory->shm_dev;
	m.known = m.shm && ((name && strncmp(line + name, "/SYSV", 5) == 0) || is_object(memory, ino));
	return m;
}

/* What one process has in memory and swap; its part of what it shares with others. */
static uint64_t weigh_process(const struct cordon_memory *memory, const struct process *p)
{
	autofd int dir = open_process(memory, p);
	int fd = dir < 0 ? -1 : openat(dir, "smaps", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct mapping m = { .shared = true, .file = true }; /* weighs nothing */
	autofree char *line = NULL;
	uint64_t sum = 0;
	bool any = false;
	size_t cap = 0;

	if (!file)
		cordon_closep(&fd);
	while (file && getline(&line, &cap, file) > 0) {
		any = true;
		if (line[0] < 'A' || line[0] > 'Z') {
			sum += weigh(&m);
			m = read_mapping(memory, line);
		} else if (strncmp(line, "Pss:", 4) == 0) {
			m.pss = strtoull(line + 4, NULL, 10) * KIB;
		} else if (strncmp(line, "SwapPss:", 8) == 0) {
			m.swap = strtoull(line + 8, NULL, 10) * KIB;
		} else if (strncmp(line, "Anonymous:", 10) == 0) {
			m.anonymous = strtoull(line + 10, NULL, 10) * KIB;
		}
	}
	if (file)
		fclose(file);
	/* It has ended, or executes a file that we may not read: then the kernel shows only the sums. */
	return any ? sum + weigh(&m) : dir < 0 ? 0 : p->anonymous + p->swap;
}

/* Whether the process started less than a second ago. */
static bool is_young(const struct cordon_memory *memory, const struct process *p)
{
	autofd int dir = open_process(memory, p);
	autofd int fd = dir < 0 ? -1 : openat(dir, "stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at;
	struct timespec now;
	uint64_t started;

	if (n <= 0)
		return true; /* it has ended meanwhile */
	text[n] = '\0';
	/* The 22nd field, in ticks since the start of the machine; the second one ends with the last ')'. */
	at = strrchr(text, ')');
	for (int i = 2; at && i < 22; i++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	if (!at)
		return false;
	started = strtoull(at, NULL, 10) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 < started + YOUNG_MS;
}

/* Adds the children of one thread of the host's process `pid` to the list that translate() walks. */
static void add_children(struct cordon_memory *memory, const char *task, int list)
{
	char path[64];
	autofd int fd = -1;
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "%.16s/children", task);
	fd = openat(list, path, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file)
		return;
	cordon_steal_fd(&fd);
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it. */
	while (fscanf(file, "%d", &pid) == 1 &&
	       grow((void **)&memory->numbers, memory->n_numbers, &memory->cap_numbers, sizeof(*memory->numbers)))
		memory->numbers[memory->n_numbers++] = (struct number){ .host = (pid_t)pid };
	fclose(file);
}

/* The number that the process has in the run's pid namespace: the last one of a line "NSpid: 4711 12". */
static pid_t number_inside(int dir)
{
	autofd int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	CORDON_UNCLEARED char text[8192];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *line;
	char *end = NULL;
	long last = 0;

	text[n < 0 ? 0 : n] = '\0';
	line = strstr(text, "\nNSpid:");
	for (line = line ? line + 7 : NULL; line; line = end) {
		long value = strtol(line, &end, 10);

		if (end == line || value <= 0)
			break;
		last = value;
		if (*end == '\n')
			break;
	}
	return (pid_t)last;
}

/* Finds the host's numbers of all processes of the run, from parents to children: only kcmp() needs them. */
static void translate(struct cordon_memory *memory)
{
	memory->numbers_known = true;
	memory->n_numbers = 0;
	if (!grow((void **)&memory->numbers, 0, &memory->cap_numbers, sizeof(*memory->numbers)))
		return;
	memory->numbers[memory->n_numbers++] = (struct number){ .host = memory->first };
	for (size_t i = 0; i < memory->n_numbers; i++) {
		CORDON_UNCLEARED struct cordon_listing listing;
		const struct dirent64 *entry;
		autofd int dir = -1;
		autofd int list = -1;
		char path[32];

		snprintf(path, sizeof(path), "/proc/%d", (int)memory->numbers[i].host);
		dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		list = dir < 0 ? -1 : openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (list < 0)
			continue;
		memory->numbers[i].inside = number_inside(dir);
		cordon_listing_init(&listing, list);
		while ((entry = cordon_listing_next(&listing)))
			add_children(memory, entry->d_name, list);
	}
}

static pid_t number_of(struct cordon_memory *memory, const struct process *p)
{
	if (memory->top)
		return p->pid;
	if (!memory->numbers_known)
		translate(memory);
	for (size_t i = 0; i < memory->n_numbers; i++)
		if (memory->numbers[i].inside == p->pid)
			return memory->numbers[i].host;
	return 0;
}

static int compare_processes(const void *a, const void *b)
{
	return ((const struct process *)a)->pid - ((const struct process *)b)->pid;
}

/*
 * Between vfork() and exec a child has its parent's memory, not a copy of it, and the kernel shows the same numbers for
 * both. They must not count twice. Where the kernel does not tell whether it is so, a young process of the size of its
 * parent is taken for such a child; then a copy that fork() made counts only a second later.
 */
static bool borrows_memory(struct cordon_memory *memory, const struct process *p)
{
	const struct process key = { .pid = p->parent };
	const struct process *parent = bsearch(&key, memory->processes, memory->n_processes, sizeof(key),
					       compare_processes);
	pid_t mine, its;
	uint64_t apart;
	long same;

	if (!parent || parent->size != p->size)
		return false;
	apart = parent->anonymous > p->anonymous ? parent->anonymous - p->anonymous : p->anonymous - parent->anonymous;
	if (apart > p->anonymous / 16)
		return false;
	mine = number_of(memory, p);
	its = number_of(memory, parent);
	same = mine && its ? syscall(SYS_kcmp, mine, its, KCMP_VM, 0, 0) : -1;
	return same < 0 ? is_young(memory, p) : same == 0;
}

/* `sum` and the memory of the processes, as far as it takes to exceed the limit. */
static uint64_t weigh_all(struct cordon_memory *memory, uint64_t sum)
{
	memory->numbers_known = false;
	for (size_t i = 0; i < memory->n_processes && sum <= memory->limit; i++) {
		const struct process *p = &memory->processes[i];

		if (p->counts && p->size && !borrows_memory(memory, p))
			sum += weigh_process(memory, p);
	}
	return sum;
}

uint64_t cordon_memory_look(struct cordon_memory *memory, int own)
{
	uint64_t begun = (uint64_t)cordon_time_monotonic(), ended, pause;
	uint64_t together, used;

	find_processes(memory);
	memory->n_objects = 0;
	for (size_t i = 0; i < memory->n_processes; i++) {
		autofd int dir = memory->processes[i].counts ? open_process(memory, &memory->processes[i]) : -1;

		if (dir >= 0)
			find_objects(memory, dir);
	}
	together = sum_objects(memory) + sum_segments(memory) + sum_files(own);
	used = together;
	for (size_t i = 0; i < memory->n_processes; i++) {
		const struct process *p = &memory->processes[i];

		used += p->counts ? p->anonymous + p->shared + p->swap : 0;
	}
	pause = used > memory->limit / 2 ? NEAR_MS : FAR_MS;
	if (used > memory->limit)
		used = weigh_all(memory, together);
	ended = (uint64_t)cordon_time_monotonic();
	if (pause < COST_SHARE * (ended - begun))
		pause = COST_SHARE * (ended - begun);
	memory->due = ended + (pause < LONGEST_MS ? pause : LONGEST_MS);
	return used;
}
