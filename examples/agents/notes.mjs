// SPDX-License-Identifier: Apache-2.0
// An agent in Node.js: reads the sources that its scope shows it, and writes docs/NOTES.md.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const base = process.env.AGENT_SCOPE_BASE;

function* files(directory) {
  for (const entry of readdirSync(join(base, directory), { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else if (entry.name.endsWith(".ts")) yield path;
  }
}

const notes = [];
for (const path of files("src")) {
  readFileSync(join(base, path), "utf8").split("\n").forEach((line, index) => {
    const note = /NOTE:?\s*(.*)/.exec(line);
    if (note) notes.push(`- ${path}:${index + 1}: ${note[1]}`);
  });
}
mkdirSync(join(base, "docs"), { recursive: true });
writeFileSync(join(base, "docs/NOTES.md"), notes.join("\n") + "\n");
console.log(`${notes.length} notes in docs/NOTES.md`);
