/** Times a turn (the new text is encoded, its call joins the forest) and the encoding of the whole history, at some lengths. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { median } from '../samples.ts';
import { SessionCalls } from './session-calls.ts';

export interface TurnsResult {
  readonly turnMs: Readonly<Record<string, number>>;
  readonly againMs: Readonly<Record<string, number>>;
}

const { at } = JSON.parse(process.argv[2] ?? '') as { readonly at: readonly number[] };
const perTurn = 500;
/** Turns around a length whose median is its cost. */
const around = 9;

const vocabulary = await loadVocabulary(null);
const encode = (text: string): number[] => vocabulary.encode(text, { parsesSpecial: false });
const docs = path.join(import.meta.dirname, '../../docs');
const prose = readdirSync(docs)
  .filter((name) => name.endsWith('.md'))
  .map((name) => readFileSync(path.join(docs, name), 'utf8'))
  .join('\n');
const bytesPerTurn = Math.round((prose.length / encode(prose).length) * (perTurn / 2));

const forest = new TokenForest({ budget: null });
const calls = new SessionCalls(1);
const times: number[] = [];
const texts: string[] = [];
const turnMs: Record<string, number> = {};
const againMs: Record<string, number> = {};
let parent = null;
for (let turn = 1; turn <= Math.max(...at) + around; turn += 1) {
  const begin = (turn * 7919) % (prose.length - bytesPerTurn);
  const text = `${turn} ${prose.slice(begin, begin + bytesPerTurn)}`;
  const answer = `${turn} ${prose.slice(begin + 1_000, begin + 1_000 + bytesPerTurn)}`;
  const began = performance.now();
  const ids = Int32Array.from(encode(text));
  const encodedMs = performance.now() - began;
  // What the engine samples is not the session's work.
  const call = calls.next({ text, ids }, perTurn / 2);
  const joined = performance.now();
  parent = forest.extend({ parent, trimmed: 0 }, call);
  times.push(encodedMs + performance.now() - joined);
  texts.push(text, answer);
  if (at.includes(turn)) {
    const history = texts.join('\n');
    const from = performance.now();
    encode(history);
    againMs[String(turn)] = performance.now() - from;
  }
  if (at.includes(turn - around)) turnMs[String(turn - around)] = median(times.slice(-2 * around));
}
const result: TurnsResult = { turnMs, againMs };
console.log(JSON.stringify(result));
