#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py HEADER TABLE FILE...: writes a C header with the schemas of the tools, from the files of schemas/.

A file has, for each tool, `input`, the JSON Schema of its arguments, and `result`: the properties of its result, and those that a
success always has (`required`). What tools share has a name, which holds in all files:

- `$parts` are groups of properties. `"$include": NAME` puts one among the properties of a tool. `"$bare": NAME` does so without its
  defaults, which a model would fill in when it changes something and so reset what it was not asked to change, and without its
  descriptions, because every model pays for each byte of the list of tools.
- `"$table": ""` adds the settings of a run that projects have, from TABLE (src/config/recipe_json.c), and `"$table": "limits"` those
  below that, whose names say enough. The description is the help of the option, unless one of its own follows.
- `$results` are whole results, which a tool names instead of its own.

The header has CORDON_INPUT_TOOL, CORDON_OUTPUT_TOOL and CORDON_ALWAYS_TOOL as strings, and CORDON_DEFAULT_TOOL_ARGUMENT for each
default that is a number.
"""
import json
import pathlib
import sys


def gather(documents, kind):
    """The named things of all documents."""
    found = {}
    for document in documents:
        for name, value in document.pop(kind, {}).items():
            if name in found:
                sys.exit(f"two {kind} are called {name}")
            found[name] = value
    return found


def bare(properties):
    kept = {name: {key: value for key, value in schema.items() if key not in ("default", "description")} for name, schema in properties.items()}
    for schema in kept.values():
        if "properties" in schema:
            schema["properties"] = bare(schema["properties"])
    return kept


def expand(properties, parts):
    """The properties with what they include, in the order in which it is included."""
    whole = {}
    for name, schema in properties.items():
        if name == "$include":
            whole.update(parts[schema])
        elif name == "$bare":
            whole.update(bare(parts[schema]))
        else:
            whole[name] = schema
    return whole


def literal(value):
    text = json.dumps(value, separators=(",", ":"))
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def add_settings(properties, table):
    """Replaces `$table` by the settings that it stands for."""
    whole = {}
    for name, schema in properties.items():
        if name == "$table":
            for row in (row for row in table if row["project"]):
                below, _, key = row["project"].rpartition(".")
                if below == schema:
                    whole[key] = {**row["schema"], **({} if below else {"description": row["help"]})}
            continue
        whole[name] = {**whole.get(name, {}), **schema}
        if "properties" in schema:
            whole[name]["properties"] = add_settings(schema["properties"], table)
    return whole


def lines_of(tool, described, parts, results):
    arguments = {**described["input"], "properties": expand(described["input"]["properties"], parts)}
    result = described["result"] if isinstance(described["result"], dict) else results[described["result"]]
    output = expand(result["properties"], parts)
    for required, properties in ((arguments.get("required", []), arguments["properties"]), (result["required"], output)):
        if not set(required) <= set(properties):
            sys.exit(f"{tool}: a required property is not described")
    yield f"#define CORDON_INPUT_{tool.upper()} {literal(arguments)}"
    yield f"#define CORDON_OUTPUT_{tool.upper()} {literal(output)}"
    yield f"#define CORDON_ALWAYS_{tool.upper()} {literal(result['required'])}"
    for name, schema in arguments["properties"].items():
        if isinstance(schema.get("default"), int) and schema["type"] == "integer":
            yield f"#define CORDON_DEFAULT_{tool.upper()}_{name.upper()} ({schema['default']})"


def main():
    header, table, *files = map(pathlib.Path, sys.argv[1:])
    rows = json.loads(table.read_text(encoding="utf-8"))
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    parts, results = gather(documents, "$parts"), gather(documents, "$results")
    parts = {name: add_settings(properties, rows) for name, properties in parts.items()}
    lines = ["/* Made by src/mcp/embed.py. */"]
    for document in documents:
        for tool, described in document.items():
            lines += lines_of(tool, described, parts, results)
    header.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
