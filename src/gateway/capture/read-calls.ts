/** Reads captured calls back: each request with its answer, in the order in which the answers ended, and last those that have none. */
import { readSpill } from '../../trajectory/spill.ts';
import type { SampledCall } from '../../trajectory/token-ids.ts';
import type { AtifStep } from '../../wire/atif/atif.ts';
import type { CallDialect, CallEnd, CallPurpose } from './call-capture.ts';

export type { SampledCall } from '../../trajectory/token-ids.ts';

type JsonRecord = Readonly<Record<string, unknown>>;

export interface ReadCall {
  /** Counts from 1, in the order in which they were sent. */
  readonly call: number;
  readonly dialect: CallDialect;
  readonly purpose: CallPurpose;
  readonly isStreaming: boolean;
  /** `user-agent` of who called; null = it says none. */
  readonly client: string | null;
  /** The call whose question it asks again; null = none. */
  readonly repeats: number | null;
  /** What the ids of the answer are made of that the client got; null = it has none. */
  readonly answerId: string | null;
  /** The body as it went up. */
  readonly request: string;
  /** null = the server died before it was known. */
  readonly end: CallEnd | null;
  /** Ids and log-probabilities are in its `metrics`; null = nothing was sampled. */
  readonly answer: AtifStep | null;
  /** Of the end: status, problem, times, tokens of a call that counts. */
  readonly facts: JsonRecord;
}

/**
 * TRAJECTORY_INVALID for a file that is no capture. What was torn by the death of the server is left out. `onWhole` is called when the file says that nothing is
 * missing.
 */
export async function* readCalls(file: string, onWhole?: () => void): AsyncGenerator<ReadCall> {
  const open = new Map<unknown, AtifStep>();
  for await (const line of readSpill(file)) {
    if ('slipway_spill' in line) continue;
    const call = line.extra?.['call'];
    if (call === undefined) {
      if (line.extra?.['calls'] !== undefined) onWhole?.();
      continue; // the last one
    }
    const asked = open.get(call);
    if (asked === undefined) open.set(call, line);
    else {
      open.delete(call);
      yield readCall(asked, line);
    }
  }
  for (const asked of open.values()) yield readCall(asked, null);
}

/**
 * The turns of an agent that came to their end: what the steps of its own log can be. Of those that ask the same again, the agent went on with the last
 * one.
 */
export async function sampledCalls(file: string): Promise<readonly SampledCall[]> {
  const latest = new Map<number, { readonly call: number; readonly sampled: SampledCall | null }>();
  for await (const read of readCalls(file)) {
    const { call, purpose, repeats } = read;
    const first = repeats ?? call;
    if (purpose !== 'turn' || (latest.get(first)?.call ?? 0) > call) continue;
    latest.set(first, { call, sampled: sampledCall(read) });
  }
  return [...latest.values()].flatMap(({ sampled }) => sampled ?? []);
}

function sampledCall({ end, answerId, answer }: ReadCall): SampledCall | null {
  if (end !== 'complete' || answer === null) return null;
  return { answerId, answer, sampledText: textsIn(answer).join('\n') };
}

/** Of an answer all that was sampled, as it was. */
function textsIn({ message, reasoning_content: thought, extra }: AtifStep): readonly string[] {
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
  };
  [message, thought, extra?.['sampled_tool_calls']].forEach(collect);
  return texts;
}

/** Whether a capture says of itself that nothing of it is missing. */
export async function isWholeCapture(file: string): Promise<boolean> {
  let isWhole = false;
  for await (const line of readSpill(file))
    isWhole = !('slipway_spill' in line) && line.extra?.['calls'] !== undefined;
  return isWhole;
}

function readCall(asked: AtifStep, ended: AtifStep | null): ReadCall {
  const { call, dialect, purpose, streamed, client, repeats, request } = asked.extra ?? {};
  const facts = ended?.extra ?? {};
  const { end, answer_id: answerId } = facts;
  return {
    call: Number(call),
    // The writer of the file is ours, and its head says so.
    dialect: dialect as CallDialect,
    purpose: purpose as CallPurpose,
    isStreaming: streamed === true,
    client: typeof client === 'string' ? client : null,
    repeats: typeof repeats === 'number' ? repeats : null,
    answerId: typeof answerId === 'string' ? answerId : null,
    request: String(request),
    end: end === undefined ? null : (end as CallEnd),
    answer: ended?.source === 'agent' ? ended : null,
    facts,
  };
}
