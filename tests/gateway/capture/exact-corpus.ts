/**
 * Conversations of many rollouts through the gateway, a third in each dialect and half of the calls streamed, against a real `slipway engine` process that samples
 * text in unusual ids; then what the gateway captured is compared with what the engine says it sampled, id by id, log-probabilities by their 64 bits.
 */
import { hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/core/clock.ts';
import type { EngineKind } from '../../../src/engines/engine.ts';
import type { CallCapture, CallDialect } from '../../../src/gateway/capture/call-capture.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import {
  isWholeCapture,
  readCalls,
  type ReadCall,
} from '../../../src/gateway/capture/read-calls.ts';
import { startEngineProcess, type EngineLogLine } from '../../support/engine-process.ts';
import { markerPattern } from '../../support/policies/corpus-policy.ts';
import { seededRandom } from '../../support/random.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';
import type { RouteMode } from '../../../src/gateway/gateway-control.ts';
import type { MessageMatcher } from '../../../src/sessions/miles/message-matcher.ts';
import { startRelay, type RunningRelay } from '../relay-fixture.ts';
import { tokensMode } from '../tokens/tokens-fixture.ts';
import { callsInSamples, type CallInSamples } from '../samples/calls-in-samples.ts';
import { talk } from './talking-clients.ts';

export interface GatewayCorpusOptions {
  readonly rollouts: number;
  /** Each has 1 to this many. */
  readonly mostTurns: number;
  readonly seed: number;
  readonly concurrency: number;
  /** Who makes the ids of prompts. In the mode tokens every turn goes on from the ids of the one before it. */
  readonly mode?: RouteMode;
  /** Folder of the vocabulary, in the mode tokens; absent = Slipway's own. */
  readonly tokenizer?: string;
  /** In the mode tokens, what makes messages equal; for controls. */
  readonly matches?: MessageMatcher;
  /** What a call was is read from the samples of its rollout, which are made of the capture, and audited. */
  readonly readsSamples?: boolean;
  /** Takes the place of the capture; for controls. */
  readonly spoil?: (capture: CallCapture) => CallCapture;
  readonly onRollout?: (ended: number) => void;
}

export interface GatewayCorpusReport {
  readonly rollouts: number;
  readonly calls: Readonly<Record<CallDialect, number>>;
  readonly streamed: number;
  readonly tokens: number;
  readonly nonCanonical: number;
  /** Calls whose prompt begins with all ids of the call before. */
  readonly appended: number;
  /** Calls of which something differs between the engine's log and the capture. */
  readonly differing: number;
  /** One line each. */
  readonly problems: readonly string[];
}

const dialects = ['chat', 'responses', 'messages'] as const;
/** Both tell ids, each in its own places. */
const kinds = ['vllm', 'sglang'] as const satisfies readonly EngineKind[];
/** What only the capture asked for. */
const hidden = ['token_ids', '"logprob"', 'sglext', 'meta_info'];

/** A call as it is compared: its lists by their digests, which differ with any bit of them. */
interface Compared {
  readonly prompt: string;
  readonly sampled: string;
  readonly logprobs: string;
}

interface Kept extends Compared {
  readonly isAppended: boolean;
  readonly dialect: CallDialect;
  readonly isStreaming: boolean;
}

export async function runGatewayCorpus(
  options: GatewayCorpusOptions,
): Promise<GatewayCorpusReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-gateway-exactness-'));
  const agent = new Agent({ keepAlive: false });
  const log = path.join(root, 'engine.ndjson');
  const problems: string[] = [];
  const kept = new Map<string, Kept>();
  try {
    {
      await using engine = await startEngineProcess([
        ...['--policy', path.join(repositoryDir, 'tests/support/policies/gateway-policy.ts')],
        ...['--seed', String(options.seed), '--non-canonical', '0.3', '--log', log],
        ...(options.tokenizer === undefined ? [] : ['--tokenizer', options.tokenizer]),
      ]);
      const gateways = await Promise.all(
        kinds.map(async (engineKind) => {
          const files = new FileCapture({
            dir: path.join(root, engineKind),
            clock: systemClock,
            logger: { log: (level, message, fields) => problems.push(`${level} ${message} ${JSON.stringify(fields)}`) }, // prettier-ignore
          });
          const tokens = options.mode === 'tokens' ? await tokensMode(engineKind, options) : null;
          return await startRelay({ engineKind, tokens, capture: options.spoil?.(files) ?? files });
        }),
      );
      const run = { ...options, agent, gateways, upstream: engine.apiBase, problems, kept };
      let [next, ended] = [1, 0];
      const work = async (): Promise<void> => {
        while (next <= options.rollouts) {
          await runRollout(next++, run);
          options.onRollout?.((ended += 1));
        }
      };
      await Promise.all(Array.from({ length: options.concurrency }, work));
      for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
    }
    return await compare(log, { kept, problems, rollouts: options.rollouts });
  } finally {
    agent.destroy();
    await rm(root, { recursive: true, force: true });
  }
}

interface Run extends GatewayCorpusOptions {
  readonly agent: Agent;
  readonly gateways: readonly RunningRelay[];
  readonly upstream: string;
  readonly problems: string[];
  readonly kept: Map<string, Kept>;
}

async function runRollout(item: number, run: Run): Promise<void> {
  const { gateways, upstream, agent, problems, kept } = run;
  const say = (what: string): void => void problems.push(`item ${item}: ${what}`);
  const gateway = gateways[item % gateways.length];
  const dialect = dialects[item % dialects.length] ?? 'chat';
  if (gateway === undefined) throw new Error('there is no gateway');
  const turns = 1 + Math.floor(seededRandom(item * 7919 + run.seed)() * run.mostTurns);
  const id = `rollout-${item}`;
  const route = await gateway.route(id, upstream, null);
  const isStreaming = (turn: number): boolean => (Math.floor(item / 6) + turn) % 2 === 0;
  try {
    await talk(dialect, {
      ...{ ...route, agent, item, turns, isStreaming },
      onBody: (body) => {
        for (const word of hidden)
          if (body.includes(word)) say(`a client of ${dialect} sees ${word}`);
      },
    });
  } catch (error) {
    say(String(error));
  }
  await gateway.relay.revoke(id);
  const file = await gateway.relay.captured(id);
  if (file === null) {
    say('nothing was captured');
    return;
  }
  if (!(await isWholeCapture(file))) say('the capture does not say that it is whole');
  const inSamples =
    run.readsSamples === true
      ? await callsInSamples(file, { rolloutId: id, flip: item * 31 + run.seed })
      : null;
  inSamples?.problems.forEach(say);
  let count = 0;
  let before: readonly number[] = [];
  for await (const call of readCalls(file)) {
    count += 1;
    const text = typeof call.answer?.message === 'string' ? call.answer.message : '';
    const place = placeOf(text);
    if (place === null || call.end !== 'complete' || call.repeats !== null)
      say(`call ${call.call}: ${call.end ?? 'no end'}, ${text}`);
    else if (kept.has(place)) say(`call ${call.call} is kept twice`);
    else kept.set(place, keptCall(call, before, inSamples?.calls));
    before = idsOf(call);
  }
  if (count !== turns) say(`${count} calls were captured of ${turns}`);
  await gateway.relay.forget(id);
}

function keptCall(
  call: ReadCall,
  before: readonly number[],
  inSamples?: ReadonlyMap<number, CallInSamples>,
): Kept {
  const { dialect, isStreaming } = call;
  const { prompt, sampled, logprobs } =
    inSamples === undefined ? numbersOf(call) : (inSamples.get(call.call) ?? {});
  return {
    ...{ dialect, isStreaming, prompt: digest(prompt) },
    ...{ sampled: digest(sampled), logprobs: digest(logprobs) },
    isAppended: before.length > 0 && before.every((id, at) => id === prompt?.[at]),
  };
}

function numbersOf({ answer }: ReadCall): {
  readonly prompt: readonly number[] | null | undefined;
  readonly sampled: readonly number[] | null | undefined;
  readonly logprobs: readonly number[] | null | undefined;
} {
  const {
    prompt_token_ids: prompt,
    completion_token_ids: sampled,
    logprobs,
  } = answer?.metrics ?? {};
  return { prompt, sampled, logprobs };
}

function idsOf({ answer }: ReadCall): readonly number[] {
  const { prompt_token_ids: prompt, completion_token_ids: sampled } = answer?.metrics ?? {};
  return [...(prompt ?? []), ...(sampled ?? [])];
}

async function compare(
  log: string,
  found: {
    readonly kept: Map<string, Kept>;
    readonly problems: string[];
    readonly rollouts: number;
  },
): Promise<GatewayCorpusReport> {
  const { kept, problems, rollouts } = found;
  const calls = { chat: 0, responses: 0, messages: 0 };
  let [streamed, tokens, nonCanonical, appended, differing] = [0, 0, 0, 0, 0];
  const seen = new Set<string>();
  // Longer than a text may be: read line by line.
  for await (const text of createInterface({ input: createReadStream(log) })) {
    const line = JSON.parse(text) as EngineLogLine;
    tokens += line.output_ids.length;
    if (!line.canonical) nonCanonical += 1;
    const place = placeOf(line.text);
    const call = place === null ? undefined : kept.get(place);
    if (place === null || call === undefined || seen.has(place)) {
      problems.push(`${place ?? line.request_id}: sampled, and ${place !== null && seen.has(place) ? 'sampled before' : 'not captured'}`); // prettier-ignore
      continue;
    }
    seen.add(place);
    calls[call.dialect] += 1;
    if (call.isStreaming) streamed += 1;
    if (call.isAppended) appended += 1;
    const wrong = differences(call, line);
    if (wrong.length === 0) continue;
    differing += 1;
    problems.push(`${place}, ${call.dialect}: other ${wrong.join(' and ')} than the engine has`);
  }
  for (const place of kept.keys())
    if (!seen.has(place)) problems.push(`${place}: captured, and never sampled`);
  return { rollouts, calls, streamed, tokens, nonCanonical, appended, differing, problems };
}

function differences(call: Compared, line: EngineLogLine): readonly string[] {
  return [
    ...(call.prompt === digest(line.prompt_ids) ? [] : ['prompt ids']),
    ...(call.sampled === digest(line.output_ids) ? [] : ['sampled ids']),
    ...(call.logprobs === digest(line.logprobs) ? [] : ['log-probabilities']),
  ];
}

/** Of the 64 bits of every number; missing lists have one of their own. */
function digest(numbers: readonly number[] | null | undefined): string {
  if (numbers === null || numbers === undefined) return 'missing';
  return hash('sha1', Buffer.from(Float64Array.from(numbers).buffer));
}

/** `item 3 turn 4.`; null = the text names none. */
function placeOf(text: string): string | null {
  return markerPattern.exec(text)?.[0] ?? null;
}
