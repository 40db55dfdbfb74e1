#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py HEADER FILE...: writes a C header with the bytes of the page's files, and a version that changes with them."""
import hashlib
import pathlib
import sys

header, *files = map(pathlib.Path, sys.argv[1:])
contents = {path.name: path.read_bytes() for path in files}
digest = hashlib.sha256(b"\0".join(contents.values())).hexdigest()[:16]
lines = ["/* Made by src/page/embed.py. */", f'#define CORDON_ASSETS_VERSION "{digest}"']
for name, data in contents.items():
    lines.append(f"#define CORDON_ASSET_{name.upper().replace('.', '_')} {{ " + ", ".join(map(str, data)) + " }")
header.write_text("\n".join(lines) + "\n", encoding="ascii")
