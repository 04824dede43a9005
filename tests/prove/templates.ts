/**
 * Must show: what our families render, text and ids, equals what the Python packages render, for random conversations with tools, system turns, thoughts or none,
 * unicode and floats. Controls: one changed character, and one changed id, are found. COUNT and SEED choose the conversations, ONLY a family;
 * GOLDEN=write writes the goldens of `npm test` from the same packages.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { provideTemplatePeers } from '../../scripts/setup/template-peers.js';
import { parityRows, renderings, type ParityRow } from '../sessions/template-parity.ts';
import { writeGoldens } from '../sessions/template-goldens.ts';
import {
  checkpointDir,
  renderInPython,
  type ReferenceAnswer,
} from '../support/template-reference.ts';

const count = Number(process.env['COUNT'] ?? '2000');
const seed = Number(process.env['SEED'] ?? '1');
const only = process.env['ONLY'];
/** Conversations that are held at once. */
const batch = 500;

let failures = 0;
function report(what: string, measured: string, isMet: boolean): void {
  if (!isMet) failures++;
  console.log(`${isMet ? 'met   ' : 'MISSED'} ${what}: ${measured}`);
}

const isEqual = (ours: Pick<ReferenceAnswer, 'text' | 'ids'>, theirs: ReferenceAnswer): boolean =>
  ours.text === theirs.text && JSON.stringify(ours.ids) === JSON.stringify(theirs.ids);

async function compare(row: ParityRow, ownTemplate: string): Promise<void> {
  let equal = 0;
  let refused = 0;
  let ids = 0;
  const different: number[] = [];
  let areControlsFound = true;
  for (let start = 0; start < count; start += batch) {
    const size = Math.min(batch, count - start);
    const ours = await renderings(row, { seed: seed + start, count: size, ownTemplate });
    const theirs = await renderInPython(ours.map(({ job }) => job));
    for (const [index, one] of ours.entries()) {
      const answer = theirs[index];
      if (answer === undefined) throw new Error('Python gave too few answers');
      if (answer.error !== null && one.error !== null) refused += 1;
      else if (answer.error === null && one.error === null && isEqual(one, answer)) {
        equal += 1;
        ids += answer.ids?.length ?? 0;
        const { text } = one;
        const changed = text === null ? null : `${text.slice(0, -1)}\u0001`;
        if (isEqual({ ...one, text: changed }, answer)) areControlsFound = false;
        if (one.ids !== null && isEqual({ ...one, ids: one.ids.with(-1, 0) }, answer))
          areControlsFound = false;
      } else different.push(start + index);
    }
  }
  const name = `${row.family} (${row.against}${row.isTextOnly === true ? ', text only' : ''})`;
  const measured = `${equal} equal with ${ids} ids, ${refused} refused by both, ${different.length} different`;
  report(name, measured, equal + refused === count && equal > count / 2 && areControlsFound);
  if (different.length > 0) console.log(`       first: ${different.slice(0, 5).join(', ')}`);
}

console.log(`packages: ${await provideTemplatePeers()}`);
const scratch = await mkdtemp(path.join(os.tmpdir(), 'slipway-templates-'));
try {
  const rows = parityRows.filter(({ family }) => only === undefined || family === only);
  for (const row of rows) await compare(row, await templateFileOf(row.checkpoint));
  if (process.env['GOLDEN'] === 'write') await writeGoldens();
} finally {
  await rm(scratch, { recursive: true });
}
console.log(failures === 0 ? 'all met' : `${failures} missed`);
process.exitCode = failures === 0 ? 0 : 1;

/** The checkpoint's own template as a file, whichever way the checkpoint carries it. */
async function templateFileOf(checkpoint: string): Promise<string> {
  const dir = checkpointDir(checkpoint);
  const config = JSON.parse(await readFile(path.join(dir, 'tokenizer_config.json'), 'utf8')) as {
    readonly chat_template?: string;
  };
  const file = path.join(dir, 'chat_template.jinja');
  if (config.chat_template === undefined) return file;
  const copy = path.join(scratch, `${checkpoint}.jinja`);
  await writeFile(copy, config.chat_template);
  return copy;
}
