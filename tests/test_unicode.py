# SPDX-License-Identifier: Apache-2.0
"""The table of characters that nobody sees, compared with what Python knows of Unicode."""
import re
import unicodedata

from support import TOP

RANGES = [(int(first, 16), int(last, 16)) for first, last in re.findall(r"\{ (0x[0-9a-f]+), (0x[0-9a-f]+) \}", (TOP / "src/base/invisible.h").read_text())]


def listed(point):
    return any(first <= point <= last for first, last in RANGES)


def test_every_control_and_format_character_is_listed():
    assert RANGES == sorted(RANGES) and all(first <= last for first, last in RANGES)
    for point in range(0x110000):
        if unicodedata.category(chr(point)) in ("Cc", "Cf", "Zl", "Zp"):
            assert listed(point), hex(point)


def test_what_is_seen_is_not_listed():
    """Letters, digits, punctuation and symbols, but for those that Unicode wants ignored, and the blank of Braille."""
    ignored = {0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800}
    for point in range(0x110000):
        if unicodedata.category(chr(point))[0] in "LNPS" and point not in ignored:
            assert not listed(point), hex(point)
    assert all(map(listed, ignored)) and all(map(listed, (0x2060, 0xAD, 0xFE0F, 0x206A, 0x34F, 0x17B4, 0xE0100)))
