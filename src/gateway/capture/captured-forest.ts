/**
 * Captured calls as a forest, from which samples are made. Only calls whose ids the engine has said, of prompt and output, are in it; the others are counted. A
 * call that sampled nothing (it was refused, or counted tokens) is nothing to train on and none of both.
 */
import { listOf, numberOf, recordOf, textOf } from '../../engines/shared/json.ts';
import type { CallMessage, CallStatus, ForestCall } from '../../sessions/forest-call.ts';
import { TokenForest } from '../../sessions/token-forest.ts';
import type { CallReplay } from '../../wire/samples/sample-lines.ts';
import type { ReadCall } from './read-calls.ts';

export interface CapturedForest {
  readonly forest: TokenForest;
  readonly callsWithoutIds: number;
  /** By call, what the engine said beside the ids for whoever trains on them. */
  readonly replay: ReadonlyMap<number, CallReplay>;
}

export async function forestOfCalls(calls: AsyncIterable<ReadCall>): Promise<CapturedForest> {
  const forest = new TokenForest({ budget: null });
  const replay = new Map<number, CallReplay>();
  let callsWithoutIds = 0;
  for await (const read of calls) {
    if (read.answer === null || read.purpose === 'count-tokens') continue;
    const call = forestCall(read);
    if (call === null) callsWithoutIds += 1;
    else {
      forest.add(call);
      const payloads = replayIn(read);
      if (payloads !== null) replay.set(call.call, payloads);
    }
  }
  return { forest, callsWithoutIds, replay };
}

/** null = its ids are not known. */
function forestCall(read: ReadCall): ForestCall | null {
  const { answer, call, purpose, client, repeats } = read;
  const { prompt_token_ids: promptIds, completion_token_ids: outputIds } = answer?.metrics ?? {};
  if (promptIds == null || outputIds == null) return null;
  const { logprobs, cached_tokens: cachedTokens, extra } = answer?.metrics ?? {};
  return {
    ...{ call, purpose, client, repeats, promptIds, outputIds, logprobs: logprobs ?? null },
    weightVersion: textOf(extra?.['weight_version']),
    status: statusOf(read),
    cachedTokens: cachedTokens ?? null,
    messages: messagesIn(read.request),
    answer: { text: textOf(answer?.message) ?? '', toolArguments: toolArguments(read) },
    time: timeOf(read),
  };
}

/** As the engine said them, wherever its kind puts them. */
function replayIn({ facts }: ReadCall): CallReplay | null {
  const choice = recordOf(facts['choice']);
  const meta = recordOf(choice?.['meta_info']);
  const found = ['routed_experts', 'indexer_topk', 'indexer_topk_num_layers'].flatMap((name) => {
    const value = meta?.[name] ?? choice?.[name] ?? null;
    return value === null ? [] : [[name, value] as const];
  });
  return found.length === 0 ? null : Object.fromEntries(found);
}

function statusOf({ end, answer }: ReadCall): CallStatus {
  const reason = answer?.metrics?.extra?.['finish_reason'];
  if (end !== 'complete' || reason === 'abort') return 'aborted';
  return reason === 'length' || reason === 'context' ? 'truncated' : 'completed';
}

function toolArguments({ facts }: ReadCall): readonly string[] {
  const calls = listOf(facts['sampled_tool_calls']) ?? [];
  return calls.map((call) => textOf(recordOf(call)?.['arguments']) ?? '');
}

function messagesIn(request: string): readonly CallMessage[] | null {
  try {
    const messages = listOf(recordOf(JSON.parse(request))?.['messages']) ?? [];
    return messages
      .map(recordOf)
      .filter((message) => message !== null)
      .map((message) => ({ ...message, role: textOf(message['role']) ?? '' }));
  } catch {
    return null;
  }
}

function timeOf({ answer, facts }: ReadCall): ForestCall['time'] {
  const endedMs = Date.parse(answer?.timestamp ?? '');
  const durationMs = numberOf(facts['duration_ms']);
  if (!Number.isFinite(endedMs) || durationMs === null) return null;
  return { sentMs: endedMs - durationMs, endedMs };
}
