/**
 * Upstream streams of the fixtures with faults put in, by a seed: chunks changed, left out and doubled, lines that are none, bytes that break off. Whatever comes,
 * the client's stream keeps the order of its dialect and has exactly one end; where that is a success, a text that the upstream sent is in it.
 */
import { loadCases } from '../golden.ts';
import { FuzzingBench } from './fuzzing-bench.ts';
import { judged, type ProvenDialect } from './judged-answer.ts';
import { mutated } from './mutations.ts';
import { RandomDraws } from './random-draws.ts';

export interface FuzzedStreams {
  /** By how the answer ended. */
  readonly endings: Record<string, number>;
  readonly problems: string[];
}

const proven: readonly ProvenDialect[] = ['messages', 'responses'];
const asked: Readonly<Record<ProvenDialect, object>> = {
  messages: { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'Go.' }] },
  responses: { model: 'm', input: 'Go.' },
};

export async function fuzzStreams(
  count: number,
  firstSeed: number,
  onDone: (done: number) => void = () => undefined,
): Promise<FuzzedStreams> {
  await using bench = await FuzzingBench.start();
  const report: FuzzedStreams = { endings: {}, problems: [] };
  const streams = ['messages', 'responses', 'chat'].flatMap(chunksOf);
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const draws = new RandomDraws(seed);
    const dialect = draws.pick(proven);
    const canary = `canary${seed}z`;
    const given = faulty(draws.pick(streams), draws, canary);
    bench.answer = given.text;
    try {
      const body = JSON.stringify({ ...asked[dialect], stream: true });
      const { kind, text } = judged(dialect, await bench.ask(dialect, body));
      report.endings[kind] = (report.endings[kind] ?? 0) + 1;
      if (kind === 'streamed' && given.isCanarySent && !text.includes(canary))
        throw new Error(`a text was lost: ${text}`);
    } catch (error) {
      report.problems.push(`seed ${seed}, ${dialect}, ${given.text}: ${String(error)}`);
    }
    onDone(seed - firstSeed + 1);
  }
  return report;
}

interface FaultyStream {
  readonly text: string;
  readonly isCanarySent: boolean;
}

function faulty(chunks: readonly unknown[], draws: RandomDraws, canary: string): FaultyStream {
  // Behind an end nothing is expected, so the text comes first.
  const at = Math.min(1, chunks.length);
  const word = { choices: [{ index: 0, delta: { content: canary }, finish_reason: null }] };
  const ending = draws.pick(['\n\n', '\r\n\r\n', '\n\n: alive\n\n']);
  const pieces: string[] = [];
  for (const [index, chunk] of chunks.entries()) {
    if (index === at) pieces.push(`data: ${JSON.stringify(word)}`);
    const fault = draws.below(14);
    if (fault === 0) continue;
    const value = fault === 1 ? mutated(chunk, draws, null) : chunk;
    const line = `data: ${JSON.stringify(value)}`;
    if (fault === 2) pieces.push(line.slice(0, draws.below(line.length)));
    else if (fault === 3) pieces.push(line, line);
    else if (fault === 4) pieces.push(draws.pick(strangeLines), line);
    else pieces.push(line);
  }
  if (at === chunks.length) pieces.push(`data: ${JSON.stringify(word)}`);
  if (draws.chance(0.8)) pieces.push('data: [DONE]');
  const text = pieces.join(ending) + ending;
  const isCut = draws.chance(0.15);
  const cut = isCut ? text.slice(0, draws.below(text.length)) : text;
  // A text that begins with a brace would be told to be a whole answer.
  return { text: `: begin\n\n${cut}`, isCanarySent: cut.includes(JSON.stringify(word)) };
}

const strangeLines = [
  ...['data:', 'data: null', 'data: []', 'data: {}', 'data: "x"', 'data: {"choices":null}'],
  ...['event: ping', 'id: 1', 'retry: 5', 'nonsense', ':', 'data: {"choices":[{}]}', '\u0000'],
  ...['data: {"choices":[{"delta":null}]}', 'data: {"error":{"message":"no","code":500}}'],
  'data: {"choices":[{"index":3,"delta":{"content":"of another choice"}}]}',
];

function chunksOf(folder: string): readonly (readonly unknown[])[] {
  return loadCases(folder).flatMap((each) => {
    const { chunks } = each as unknown as { chunks?: unknown };
    return Array.isArray(chunks)
      ? [(chunks as unknown[]).filter((chunk) => typeof chunk === 'object')]
      : [];
  });
}
