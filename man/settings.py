#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""settings.py TABLE TEXTS PAGE OUTPUT: writes a manual page with the settings of a run that TABLE (src/config/recipe_json.c) has.

TEXTS explains a setting once for all pages, below a comment with its name; a setting that pages explain by themselves is not in it. A page
says in a comment where these come: `settings WHERE`, or `names WHERE` for the names alone. WHERE is a command that has the options, or
`policy`, `limits` (of a policy) or `agent` for keys of a file.
"""
import json
import pathlib
import re
import sys


def name_of(row, where):
    """What a setting is called there, as an item of a list; None when it is not there."""
    if where == "agent":
        return row["agent"] and "." not in row["agent"] and f".It Ic {row['agent']} : Ar {row['type']}"
    if where in ("policy", "limits"):
        return row["key"] and row["limit"] == (where == "limits") and f".It Ic {row['key']}" + ("" if row["limit"] else f" : Ar {row['type']}")
    return where in row["commands"] and f".It Fl -{row['option']}" + (f" Ar {row['meta']}" if row["meta"] else "")


def main():
    table, texts, page, output = map(pathlib.Path, sys.argv[1:])
    explained = dict(re.findall(r'^\.\\" (\S+)\n((?:(?!\.\\").*\n)+)', texts.read_text(encoding="ascii"), re.MULTILINE))
    rows = [row for row in json.loads(table.read_text(encoding="utf-8")) if row["option"] in explained]

    def items(found):
        whole, where = found[1] == "settings", found[2]
        named = [(name_of(row, where), explained[row["option"]] if whole else "") for row in rows]
        return "".join(f"{name}\n{text}" for name, text in named if name)

    output.write_text(re.sub(r'^\.\\" (settings|names) (\w+)\n', items, page.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    main()
