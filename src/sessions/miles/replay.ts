/**
 * What an engine says beside its tokens so that a trainer computes them once more as they were computed: the experts that each layer chose (`routed_experts`), and the
 * positions that a sparse attention looked at (`indexer_topk`). Both are base64 of little-endian 32-bit integers, a row for each token of a call but the last, and become
 * tensors of [tokens − 1, layers, k].
 *
 * A call says the rows of all its tokens; the sample has those of its last call. Additional replay is for engines that are paused in place: each call then says only the
 * rows that are new, from `routed_experts_start_len` on, and the rows of a sample are put together of its calls.
 */
import type { ReplayTensor } from '../../wire/samples/miles-container.ts';
import { isObject } from './message-matcher.ts';
import { refusal } from './session-error.ts';

export interface ReplayRules {
  /** Layers of the model that choose experts; null = nobody replays them. */
  readonly routedLayers: number | null;
  readonly hasIndexer: boolean;
  /** Routed experts come as new rows only. */
  readonly isAdditional: boolean;
}

export const noReplay: ReplayRules = { routedLayers: null, hasIndexer: false, isAdditional: false };

/** A call of a sample. */
export interface ReplayedTurn {
  /** Of the whole path, its output as it was sampled. */
  readonly promptEnd: number;
  readonly outputIds: { readonly length: number };
  readonly reply: { readonly text: string };
  /** The first row that it was to say; null = it was not asked to leave any out. */
  readonly replayStart: number | null;
}

interface Payloads {
  readonly routedExperts: string | null;
  readonly indexerTopk: string | null;
  readonly indexerLayers: unknown;
}

/** Members of a request, behind a path of `pathLength` ids. */
export function replayFields(
  rules: ReplayRules,
  pathLength: number,
): Readonly<Record<string, unknown>> {
  return {
    ...(rules.routedLayers !== null && { return_routed_experts: true }),
    ...(rules.hasIndexer && { return_indexer_topk: true }),
    ...(isAdditional(rules) && { routed_experts_start_len: Math.max(0, pathLength - 1) }),
  };
}

export function isAdditional({ routedLayers, isAdditional: wanted }: ReplayRules): boolean {
  return routedLayers !== null && wanted;
}

/** How many of the turns, in order, can make up one sample: behind one that says something none comes that does not. */
export function replayedTurns(turns: readonly ReplayedTurn[], rules: ReplayRules): number {
  const wanted = { ...rules, routedLayers: isAdditional(rules) ? null : rules.routedLayers };
  const says = turns.map((turn) => {
    const { routedExperts, indexerTopk } = payloadsOf(turn, wanted);
    return { routed: routedExperts !== null, indexer: indexerTopk !== null };
  });
  const lacking = says.findIndex((own, at) => {
    const before = says[at - 1];
    return (
      before !== undefined && ((before.routed && !own.routed) || (before.indexer && !own.indexer))
    );
  });
  return lacking < 0 ? turns.length : lacking;
}

/** Of a sample of so many tokens. SESSION_SAMPLES_FAILED for payloads that are not about these turns. */
export function replayTensors(
  turns: readonly ReplayedTurn[],
  { tokens, rules }: { readonly tokens: number; readonly rules: ReplayRules },
): { readonly routedExperts: ReplayTensor | null; readonly indexerTopk: ReplayTensor | null } {
  const last = turns.at(-1);
  if (last === undefined) return { routedExperts: null, indexerTopk: null };
  const { routedExperts, indexerTopk, indexerLayers } = payloadsOf(last, rules);
  const rows = rowsOf(last);
  const { routedLayers } = rules;
  return {
    routedExperts:
      routedLayers === null
        ? null
        : isAdditional(rules)
          ? joined(turns, { layers: routedLayers, tokens, rules })
          : routedExperts === null
            ? null
            : tensor(integers(routedExperts, 'routed_experts'), {
                layers: routedLayers,
                rows,
                tokens,
              }),
    indexerTopk:
      indexerTopk === null
        ? null
        : tensor(integers(indexerTopk, 'indexer_topk'), {
            ...{ layers: layersOfIndexer(indexerLayers), rows, tokens },
          }),
  };
}

/** Rows of additional replay: each call begins where the one before it ended, and says what its tokens need. */
function joined(
  turns: readonly ReplayedTurn[],
  {
    layers,
    tokens,
    rules,
  }: { readonly layers: number; readonly tokens: number; readonly rules: ReplayRules },
): ReplayTensor | null {
  const payloads = turns.map((turn) => payloadsOf(turn, rules).routedExperts);
  if (payloads.every((payload) => payload === null)) return null;
  const parts: Int32Array[] = [];
  let covered = 0;
  let perRow: number | null = null;
  for (const [at, turn] of turns.entries()) {
    if (turn.replayStart === null) throw broken(at, 'its request named no start of its rows');
    if (turn.replayStart !== covered)
      throw broken(at, `its rows begin at ${turn.replayStart}, ${covered} are there`);
    const expected = rowsOf(turn) - covered;
    const part = integers(payloads[at] ?? '', 'routed_experts');
    if (expected <= 0 && part.length === 0) continue;
    const own = part.length / expected;
    if (part.length === 0 || expected <= 0 || !Number.isInteger(own / layers))
      throw broken(at, `${part.length} numbers for ${expected} rows of ${layers} layers`);
    if (perRow !== null && perRow !== own)
      throw broken(at, `${own / layers} experts to a layer, ${perRow / layers} before`);
    perRow = own;
    covered += expected;
    parts.push(part);
  }
  const values = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    values.set(part, offset);
    offset += part.length;
  }
  return tensor(values, { layers, rows: covered, tokens });
}

function tensor(
  values: Int32Array,
  {
    layers,
    rows,
    tokens,
  }: { readonly layers: number; readonly rows: number; readonly tokens: number },
): ReplayTensor {
  const k = values.length / rows / layers;
  if (rows < tokens - 1 || !Number.isInteger(k) || k < 1)
    throw wrong(
      `${values.length} numbers of a replay payload are not ${rows} rows of ${layers} layers`,
    );
  return { shape: [tokens - 1, layers, k], values: values.slice(0, (tokens - 1) * layers * k) };
}

/** Of what an engine was not asked for nothing is read. */
function payloadsOf({ reply }: ReplayedTurn, { routedLayers, hasIndexer }: ReplayRules): Payloads {
  const none: Payloads = { routedExperts: null, indexerTopk: null, indexerLayers: null };
  if (routedLayers === null && !hasIndexer) return none;
  const { choices } = JSON.parse(reply.text) as { readonly choices: readonly unknown[] };
  const [choice] = choices;
  const meta = isObject(choice) ? choice['meta_info'] : null;
  if (!isObject(meta)) return none;
  return {
    routedExperts: routedLayers === null ? null : payload(meta['routed_experts']),
    indexerTopk: hasIndexer ? payload(meta['indexer_topk']) : null,
    indexerLayers: meta['indexer_topk_num_layers'],
  };
}

function payload(value: unknown): string | null {
  if ((value ?? null) === null) return null;
  if (typeof value === 'string') return value;
  throw wrong('a replay payload is no text');
}

function integers(payload: string, name: string): Int32Array {
  const bytes = Buffer.from(payload, 'base64');
  const width = Int32Array.BYTES_PER_ELEMENT;
  if (bytes.length % width !== 0) throw wrong(`${name} is not made of 32-bit integers`);
  const values = new Int32Array(bytes.length / width);
  for (const at of values.keys()) values[at] = bytes.readInt32LE(at * width);
  return values;
}

function layersOfIndexer(layers: unknown): number {
  if (typeof layers === 'number' && Number.isInteger(layers) && layers > 0) return layers;
  throw wrong('indexer_topk came without indexer_topk_num_layers');
}

const rowsOf = ({ promptEnd, outputIds }: ReplayedTurn): number => promptEnd + outputIds.length - 1;

const wrong = (message: string): Error =>
  refusal('SESSION_SAMPLES_FAILED', `sample assembly failed: ${message}`);

const broken = (turn: number, message: string): Error => wrong(`turn ${turn}: ${message}`);
