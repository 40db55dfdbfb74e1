// SPDX-License-Identifier: Apache-2.0
// The peer of `cordon check-file --stdin`: answers a list of paths with picomatch, and times itself.
//
//     node picomatch.mjs DIR ROOT FOLDERS text|resolve <LIST
//
// DIR holds node_modules. "text" looks at the text of a path only, which is what picomatch does and what no link
// respects; "resolve" first asks the file system where the path leads, as an honest check must. Answers go to stdout,
// the seconds that matching and answering took to stderr, without the start of Node and the reading of the list.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [dir, root, folders, how] = process.argv.slice(2);
const picomatch = createRequire(path.join(path.resolve(dir), 'package.json'))('picomatch');
const matches = picomatch(folders.split(',').map((folder) => `${folder}/**`), { dot: true });
const list = fs.readFileSync(0, 'utf8').split('\n').slice(0, -1);

// Where a path leads, missing tails allowed.
function resolve(file) {
  const absolute = path.resolve(root, file);
  const tail = [];
  for (let at = absolute; ; at = path.dirname(at)) {
    try {
      return path.relative(root, path.join(fs.realpathSync.native(at), ...tail));
    } catch (error) {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') return '..';
      tail.unshift(path.basename(at));
    }
  }
}

const began = process.hrtime.bigint();
const answers = list.map((file) => `${matches(how === 'resolve' ? resolve(file) : file) ? 'inside' : 'outside'} ${file}`);
fs.writeSync(1, `${answers.join('\n')}\n`);
process.stderr.write(`${Number(process.hrtime.bigint() - began) / 1e9}\n`);
