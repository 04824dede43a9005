/**
 * Fields that make an engine tell ids and log-probabilities. They join a request whose upstream is known to be such an engine; which of them the client did not
 * ask for itself is remembered, so that it does not see what comes of them.
 */
import type { EngineKind } from '../../engines/engine.ts';
import { sglextFields } from '../../engines/shared/chat-request.ts';
import { recordOf, type JsonRecord } from '../../engines/shared/json.ts';
import type { WantedOfEngine } from './call-capture.ts';

export interface Asking {
  /** `chat` = nothing is known of the upstream. */
  readonly kind: EngineKind;
  readonly isStreaming: boolean;
  /** Absent = no samples are made. */
  readonly wanted?: WantedOfEngine | undefined;
}

/** Empty where the kind offers nothing, and nobody wants samples. */
export function askedFields({ kind, isStreaming, wanted }: Asking): JsonRecord {
  return {
    ...fieldsOf(kind, { isStreaming, isWanted: wanted?.ids === true }),
    ...(wanted?.routedExperts === true && { return_routed_experts: true }),
    ...(wanted?.indexerTopk === true && { return_indexer_topk: true }),
  };
}

function fieldsOf(
  kind: EngineKind,
  { isStreaming, isWanted }: { readonly isStreaming: boolean; readonly isWanted: boolean },
): JsonRecord {
  switch (kind) {
    case 'chat':
      // What is not known is told by the engine, and left out then.
      return isWanted ? { logprobs: true, return_token_ids: true, ...sglextFields } : {};
    case 'vllm':
      return { logprobs: true, return_token_ids: true };
    case 'sglang':
      // A stream that asks for either of the last two is refused.
      return {
        ...{ logprobs: true, ...sglextFields },
        ...(!isStreaming && { return_token_ids: true, return_meta_info: true }),
      };
  }
}

/** What of an answer the client did not ask for. */
export interface HiddenFields {
  readonly logprobs: boolean;
  readonly tokenIds: boolean;
  readonly metaInfo: boolean;
  readonly sglext: boolean;
  /** Names of payloads, wherever they stand. */
  readonly replay: readonly string[];
  /** Of a stream: a whole answer always has it. */
  readonly usage: boolean;
}

export interface AskedBody {
  /** Members that the body gets, in the place of its own; empty = it goes as it came. */
  readonly fields: JsonRecord;
  /** null = the client asked for all that may come. */
  readonly hidden: HiddenFields | null;
}

/** `given`: the request as the client sent it. */
export function askFor(
  { kind, wanted }: Omit<Asking, 'isStreaming'>,
  given: JsonRecord,
): AskedBody {
  const isStreaming = given['stream'] === true;
  const asked = askedFields({ kind, isStreaming, wanted });
  const missing = Object.fromEntries(
    Object.entries(asked).filter(([name]) => given[name] !== true),
  );
  const options = recordOf(given['stream_options']);
  const asksUsage =
    isStreaming && Object.keys(asked).length > 0 && options?.['include_usage'] !== true;
  const fields = {
    ...missing,
    ...(asksUsage && { stream_options: { ...options, include_usage: true } }),
  };
  if (Object.keys(fields).length === 0) return { fields, hidden: null };
  const isAdded = (...names: readonly string[]): boolean =>
    names.some((name) => Object.hasOwn(missing, name)) &&
    names.every((name) => given[name] !== true);
  return {
    fields,
    hidden: {
      logprobs: isAdded('logprobs'),
      tokenIds: isAdded('return_token_ids'),
      metaInfo: isAdded('return_meta_info'),
      sglext: isAdded('return_input_ids_in_sglext', 'return_output_ids_in_sglext'),
      replay: [
        ...(isAdded('return_routed_experts') ? ['routed_experts'] : []),
        ...(isAdded('return_indexer_topk') ? ['indexer_topk'] : []),
      ],
      usage: asksUsage,
    },
  };
}
