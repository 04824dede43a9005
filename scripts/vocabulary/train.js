/**
 * Trains the vocabulary that is shipped as `assets/vocabulary/tokenizer.json`: byte-level BPE over this repository's own text at one commit
 * and the samples of `samples.js`. The same commit gives the same file, byte for byte.
 *
 *     node scripts/vocabulary/train.js [--commit COMMIT] [--merges N] [--out FILE]
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { repositoryDir } from '../setup/repository.js';
import { learnMerges } from './learn-merges.js';
import { samples } from './samples.js';
import { tokenizerDocument } from './tokenizer-document.js';

const { values } = parseArgs({
  options: {
    commit: { type: 'string', default: 'HEAD' },
    merges: { type: 'string', default: '12000' },
    out: { type: 'string', default: join(repositoryDir, 'assets/vocabulary/tokenizer.json') },
  },
});

/** @param {readonly string[]} argv */
const git = (argv) =>
  execFileSync('git', argv, { cwd: repositoryDir, encoding: 'utf8', maxBuffer: 1 << 28 });

const sources = git(['ls-tree', '-r', '-z', '--name-only', values.commit])
  .split('\0')
  .filter((name) => /\.(?:md|ts|js|json|toml|sh|py|txt)$|(?:^|\/)Dockerfile$/.test(name))
  .filter((name) => name !== 'package-lock.json' && !name.startsWith('assets/'));
const texts = sources.map((name) => git(['show', `${values.commit}:${name}`]));

const merges = learnMerges([...texts, ...samples], Number(values.merges));
const document = `${JSON.stringify(tokenizerDocument(merges))}\n`;
writeFileSync(values.out, document);
console.log(
  `${values.out}: ${merges.length} merges of ${sources.length} files, ${document.length} characters`,
);
