# SPDX-License-Identifier: Apache-2.0
"""Does random things to the contents of one file, under several descriptors, a mapping and two names, and compares each answer with what a plain
array of bytes says. Prints the seed and how many operations agreed, or what did not. `exerciser.py SEED OPERATIONS`, in a directory that it may write."""
import ctypes, mmap, os, random, sys

SIZE = 200_000  # the file is at most so large
libc = ctypes.CDLL(None, use_errno=True)
seed, operations = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
told = []


def check(what, got, wanted):
    if got != wanted:
        first = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted))) if isinstance(got, bytes) else ""
        sizes = f"{len(got)} {len(wanted)} first at {first}" if isinstance(got, bytes) else f"{got!r} {wanted!r}"
        sys.exit(f"seed {seed}, after {len(told)} operations: {what}: {sizes}; the last ones: {told[-12:]}")


def place():
    """An offset and a length; often at the borders of pages."""
    at = rng.choice([rng.randrange(SIZE), rng.randrange(SIZE // 4096) * 4096, max(0, rng.randrange(SIZE // 4096) * 4096 - 1)])
    return at, rng.choice([1, rng.randrange(1, 100), 4096, rng.randrange(1, 30_000)])


class File:
    def __init__(self):
        self.name, self.other = "file", "other"
        self.is_two = False
        self.fds = [os.open(self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL), os.open(self.name, os.O_RDWR)]
        self.appends = os.open(self.name, os.O_WRONLY | os.O_APPEND)
        self.data = bytearray()

    def fd(self):
        return rng.choice(self.fds)

    def put(self, at, text):
        if len(self.data) < at:
            self.data.extend(bytes(at - len(self.data)))
        self.data[at : at + len(text)] = text

    def read(self):
        at, n = place()
        check("read", os.pread(self.fd(), n, at), bytes(self.data[at : at + n]))

    def write(self):
        at, n = place()
        text = rng.randbytes(n)
        check("write", os.pwrite(self.fd(), text, at), n)
        self.put(at, text)

    def append(self):
        text = rng.randbytes(rng.randrange(1, 3000))
        if len(self.data) + len(text) <= SIZE + 30_000:
            check("append", os.write(self.appends, text), len(text))
            self.data.extend(text)

    def truncate(self):
        n = rng.choice([0, rng.randrange(SIZE), max(0, len(self.data) - rng.randrange(5000)), len(self.data) + rng.randrange(5000)])
        os.ftruncate(self.fd(), n) if rng.random() < 0.5 else os.truncate(self.name, n)
        self.data = self.data[:n] + bytes(max(0, n - len(self.data)))

    def punch(self):
        """Makes a hole, or zeroes, without a change of the size; some file systems have neither."""
        at, n = place()
        mode = rng.choice([0x02 | 0x01, 0x10 | 0x01])
        if libc.fallocate(self.fd(), mode, ctypes.c_long(at), ctypes.c_long(n)) == 0:
            n = max(0, min(n, len(self.data) - at))
            self.data[at : at + n] = bytes(n)

    def allocate(self):
        at, n = place()
        if libc.fallocate(self.fd(), 0, ctypes.c_long(at), ctypes.c_long(n)) == 0:
            self.data.extend(bytes(max(0, at + n - len(self.data))))

    def map_read(self):
        if self.data:
            with mmap.mmap(self.fd(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as m:
                at, n = place()
                check("mapping", m[at : at + n], bytes(self.data[at : at + n]))

    def map_write(self):
        if self.data:
            with mmap.mmap(self.fd(), 0) as m:
                check("size of a mapping", len(m), len(self.data))
                at, n = rng.randrange(len(m)), rng.randrange(1, 9000)
                text = rng.randbytes(min(n, len(m) - at))
                m[at : at + len(text)] = text
                if rng.random() < 0.5:
                    m.flush()
            self.put(at, text)

    def copy(self):
        """Within the file; the two parts do not overlap."""
        at, n = place()
        n = min(n, max(0, len(self.data) - at))
        to = at + n + rng.randrange(5000)
        if n == 0 or to + n > SIZE + 60_000:
            return
        done = 0
        while done < n:
            step = os.copy_file_range(self.fds[0], self.fds[1], n - done, at + done, to + done)
            check("copy_file_range gives nothing", step > 0, True)
            done += step
        self.put(to, bytes(self.data[at : at + n]))

    def reopen(self):
        which = rng.randrange(2)
        os.close(self.fds[which])
        self.fds[which] = os.open(self.name, os.O_RDWR)

    def rename(self):
        """To another name, to which it is brought back at once or later; or a second name comes and goes."""
        if self.is_two:
            os.unlink(self.other)
        elif rng.random() < 0.5:
            os.rename(self.name, self.other)
            self.name, self.other = self.other, self.name
            return
        else:
            os.link(self.name, self.other)
        self.is_two = not self.is_two

    def sync(self):
        rng.choice([os.fsync, os.fdatasync])(self.fd())

    def seek(self):
        fd = self.fd()
        check("the end", os.lseek(fd, 0, os.SEEK_END), len(self.data))

    def whole(self):
        with open(self.other if self.is_two and rng.random() < 0.5 else self.name, "rb") as stream:
            check("the whole file", stream.read(), bytes(self.data))

    def size(self):
        check("size", os.stat(self.name).st_size, len(self.data))
        check("size of a descriptor", os.fstat(self.fd()).st_size, len(self.data))
        check("links", os.stat(self.name).st_nlink, 2 if self.is_two else 1)


WAYS = [(File.read, 6), (File.write, 6), (File.append, 2), (File.truncate, 2), (File.punch, 2), (File.allocate, 1), (File.map_read, 3), (File.map_write, 3),
        (File.copy, 2), (File.reopen, 2), (File.rename, 1), (File.sync, 1), (File.seek, 1), (File.whole, 1), (File.size, 2)]  # fmt: skip
file = File()
for _ in range(operations):
    way = rng.choices([w for w, _ in WAYS], [n for _, n in WAYS])[0]
    way(file)
    told.append(way.__name__)
file.whole()
file.size()
print(f"seed {seed}: {operations} operations agree")
