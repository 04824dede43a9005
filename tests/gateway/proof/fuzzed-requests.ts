/**
 * Requests of the fixtures with faults put in, by a seed, over HTTP. Each holds a text that occurs nowhere else: where the request is not refused it has arrived
 * upstream. A fault is never the gateway's, and what comes back is always in the shape of the dialect.
 */
import { loadCases } from '../golden.ts';
import { FuzzingBench } from './fuzzing-bench.ts';
import { judged, type ProvenDialect } from './judged-answer.ts';
import { mutated, pathsIn, valueAt, withValue } from './mutations.ts';
import { RandomDraws } from './random-draws.ts';

type Json = Record<string, unknown>;

export interface FuzzedRequests {
  answered: number;
  refused: number;
  readonly problems: string[];
}

const proven: readonly ProvenDialect[] = ['messages', 'responses'];
/** Where a dialect has words that the model reads. */
const roots: Readonly<Record<ProvenDialect, readonly string[]>> = {
  messages: ['messages', 'system'],
  responses: ['input', 'instructions'],
};
const wordFields = ['text', 'content', 'output', 'arguments', 'input', 'instructions', 'system'];

const wholeAnswer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
const streamedAnswer = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Yes.' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .join('');

export async function fuzzRequests(
  count: number,
  firstSeed: number,
  onDone: (done: number) => void = () => undefined,
): Promise<FuzzedRequests> {
  await using bench = await FuzzingBench.start();
  const report: FuzzedRequests = { answered: 0, refused: 0, problems: [] };
  const bodies = proven.flatMap((dialect) => bodiesOf(dialect).map((body) => ({ dialect, body })));
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const draws = new RandomDraws(seed);
    const { dialect, body } = draws.pick(bodies);
    const given = faulty(dialect, body, draws, `canary${seed}z`);
    bench.answer = given.isStreaming ? streamedAnswer : wholeAnswer;
    try {
      const { kind } = judged(dialect, await bench.ask(dialect, given.text));
      if (kind === 'refused') report.refused += 1;
      else {
        report.answered += 1;
        const sent = bench.upstream.received.map(({ body: got }) => got.toString()).join('\n');
        if (given.canary !== null && !sent.includes(given.canary))
          throw new Error(`a text was lost: ${sent}`);
      }
    } catch (error) {
      report.problems.push(`seed ${seed}, ${dialect}, ${given.text}: ${String(error)}`);
    }
    onDone(seed - firstSeed + 1);
  }
  return report;
}

interface FaultyRequest {
  readonly text: string;
  /** null = the request is not JSON any more, or had no words. */
  readonly canary: string | null;
  readonly isStreaming: boolean;
}

function faulty(
  dialect: ProvenDialect,
  body: Json,
  draws: RandomDraws,
  canary: string,
): FaultyRequest {
  const places = pathsIn(body).filter(
    (path) =>
      roots[dialect].includes(String(path[0])) &&
      wordFields.includes(String(path.at(-1))) &&
      typeof valueAt(body, path) === 'string' &&
      !isElsewhere(body, path),
  );
  const place = places.length === 0 ? null : draws.pick(places);
  const isStreaming = draws.chance(0.5);
  const words = place === null ? body : (withValue(body, place, canary) as Json);
  const made = draws.chance(0.1) ? words : (mutated(words, draws, place) as Json);
  // It is what decides which of the two answers the upstream gives.
  const text = JSON.stringify({ ...made, stream: isStreaming });
  if (draws.chance(0.9)) return { text, canary: place === null ? null : canary, isStreaming };
  const at = draws.below(text.length);
  const cut = draws.chance(0.5) ? text.slice(0, at) : `${text.slice(0, at)}\u0001${text.slice(at)}`;
  return { text: cut, canary: null, isStreaming };
}

/** Not read by the model: data of files, and the summary of a thought that is there itself; arguments are JSON of their own. */
function isElsewhere(body: Json, path: readonly (string | number)[]): boolean {
  const parent = valueAt(body, path.slice(0, -1)) as Json;
  return (
    ['source', 'tools', 'summary'].some((name) => path.includes(name)) ||
    parent['type'] === 'function_call'
  );
}

function bodiesOf(dialect: ProvenDialect): readonly Json[] {
  return loadCases(dialect).flatMap((each) => {
    const { body } = each as unknown as { readonly body?: Json };
    const isRequest = each.direction !== 'error' && typeof body === 'object';
    return isRequest && !Array.isArray(body) ? [body] : [];
  });
}
