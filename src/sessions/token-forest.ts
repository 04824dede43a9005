/**
 * The engine calls of one rollout as an append-only forest, keyed by token ids. A node is one call and holds only what it adds to the path of its parent; nothing
 * is ever changed or taken back. A call joins the deepest earlier call all of whose ids, prompt and output, stand at the front of its prompt. One that
 * breaks with its history is a branch with a label and a reason, which is counted; no id is ever repaired.
 *
 * Comparing costs one pass over the prompt as it came. Whoever builds prompts itself knows the parent, and `extend` costs nothing but the new ids.
 */
import { CallEvidence, CallWords } from './call-evidence.ts';
import type { ForestCall } from './forest-call.ts';
import { isResident, type ForestNode } from './forest-node.ts';
import { labelEdge } from './label-edge.ts';
import { callDigest, nextLink } from './node-digest.ts';
import type { SpillFile, Spillable, TokenBudget } from './token-budget.ts';
import {
  bytesOf,
  equalIds,
  hashIds,
  idBytes,
  packIds,
  packLogprobs,
  sizeOf,
  type SpilledArrays,
  type TokenArrays,
} from './token-delta.ts';

export interface TokenForestOptions {
  /** null = everything stays in memory. */
  readonly budget: TokenBudget | null;
  /** How many ids at the end of a turn the family's template may let go when the next comes. */
  readonly maxTrim?: number;
}

/** Where a call joins whose prompt the caller has built. */
export interface KnownPlace {
  /** null = it opens a conversation. */
  readonly parent: ForestNode | null;
  /** How many ids of the parent's end its prompt lets go. */
  readonly trimmed: number;
}

interface Place {
  readonly parent: ForestNode | null;
  readonly kept: number;
}

export class TokenForest implements Spillable {
  readonly #budget: TokenBudget | null;
  readonly #maxTrim: number;
  readonly #nodes: ForestNode[] = [];
  readonly #roots: ForestNode[] = [];
  readonly #evidence = new CallEvidence();
  readonly #counts = new Map<string, number>();
  #program: string | null = null;
  #link: string | null = null;
  #resident: ForestNode[] = [];
  #residentBytes = 0;
  #file: SpillFile | null = null;

  constructor({ budget, maxTrim = 0 }: TokenForestOptions) {
    this.#budget = budget;
    this.#maxTrim = maxTrim;
  }

  /** In the order in which they ended. */
  get nodes(): readonly ForestNode[] {
    return this.#nodes;
  }

  /** The end of the hash chain; null = no call yet. */
  get link(): string | null {
    return this.#link;
  }

  /** How many calls came in which way: `append`, or label and reason, such as `edit ids-changed`. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  get residentBytes(): number {
    return this.#residentBytes;
  }

  /** A call with all ids of its prompt. */
  add(call: ForestCall): ForestNode {
    const prompt = packIds(call.promptIds);
    const place = this.#attach(prompt);
    const words = new CallWords(call.messages ?? []);
    return this.#commit({ ...place, call, words, promptIds: prompt.slice(place.kept) });
  }

  /** A call that goes on from a known place: `promptIds` are those behind it. Messages up to the parent's are taken to be the parent's. */
  extend(place: KnownPlace, call: ForestCall): ForestNode {
    const { parent, trimmed } = place;
    if (trimmed > this.#maxTrim) throw new RangeError(`no turn ends with ${trimmed} ids too many`);
    const words = new CallWords(call.messages ?? [], parent?.front ?? null);
    const kept = (parent?.end ?? 0) - trimmed;
    return this.#commit({ parent, kept, call, words, promptIds: packIds(call.promptIds) });
  }

  /** The ids that a call adds, and the log-probabilities of those that were sampled. */
  own(node: ForestNode): TokenArrays {
    const { stored } = node;
    return isResident(stored) ? stored : this.#read(stored);
  }

  /** All ids from the opening to the end of a call. */
  idsOf(path: readonly ForestNode[]): Int32Array {
    const ids = new Int32Array(path.at(-1)?.end ?? 0);
    for (const node of path) {
      const own = this.own(node).ids;
      ids.set(node.end > ids.length ? own.subarray(0, ids.length - node.kept) : own, node.kept);
    }
    return ids;
  }

  spill(): void {
    if (this.#budget === null || this.#resident.length === 0) return;
    this.#file ??= this.#budget.newFile();
    const pieces: Buffer[] = [];
    const places: { readonly node: ForestNode; readonly at: number; readonly of: TokenArrays }[] =
      [];
    let at = 0;
    for (const node of this.#resident) {
      if (!isResident(node.stored)) continue;
      const of = node.stored;
      places.push({ node, at, of });
      pieces.push(bytesOf(of.ids), ...(of.logprobs === null ? [] : [bytesOf(of.logprobs)]));
      at += sizeOf(of);
    }
    const begin = this.#file.append(pieces);
    for (const { node, at: offset, of } of places) {
      node.idsHash = hashIds(of.ids);
      node.stored = spilled(begin + offset, of);
    }
    this.#resident = [];
    this.#residentBytes = 0;
  }

  /** Frees what is in memory and on disk. Idempotent. */
  close(): void {
    this.#budget?.left(this);
    this.#file?.remove();
    this.#file = null;
    this.#resident = [];
    this.#residentBytes = 0;
  }

  #commit(joining: {
    readonly parent: ForestNode | null;
    readonly kept: number;
    readonly call: ForestCall;
    readonly words: CallWords;
    readonly promptIds: Int32Array;
  }): ForestNode {
    const { parent, kept, call, words, promptIds } = joining;
    const outputIds = packIds(call.outputIds);
    const logprobs = call.logprobs === null ? null : packLogprobs(call.logprobs);
    if (logprobs !== null && logprobs.length !== outputIds.length)
      throw new RangeError(`${logprobs.length} log-probabilities of ${outputIds.length} ids`);
    const { weightVersion } = call;
    const ids = new Int32Array(promptIds.length + outputIds.length);
    ids.set(promptIds);
    ids.set(outputIds, promptIds.length);
    const siblings = (parent?.children ?? this.#roots).filter((one) => isTurn(one));
    const isForeign = parent?.isForeign ?? this.#isOtherProgram(call);
    const edge = labelEdge(
      {
        ...{ call, words, parent, siblings, isForeign },
        twin: siblings.findLast((one) => this.#hasPrompt(one, { kept, promptIds })) ?? null,
        knownMessages: parent?.front === null || parent === null ? 0 : parent.front.count + 1,
      },
      this.#evidence,
    );
    const node: ForestNode = {
      ...{ call: call.call, seq: this.#nodes.length, parent, children: [], edge },
      ...{ purpose: call.purpose, status: call.status, repeats: call.repeats, isForeign },
      ...{ weightVersion, hasLogprobs: logprobs !== null, kept },
      ...{ promptEnd: kept + promptIds.length, end: kept + ids.length },
      digest: callDigest({
        ...{ parent: parent?.digest ?? null, kept, promptIds, outputIds, logprobs, weightVersion },
      }),
      ...{ front: words.front, time: call.time, cachedTokens: call.cachedTokens },
      ...{ stored: { ids, logprobs }, idsHash: null },
    };
    this.#nodes.push(node);
    (parent?.children ?? this.#roots).push(node);
    this.#evidence.add(node, call, words);
    this.#link = nextLink(this.#link, node.digest);
    const name = edge.reason === null ? edge.label : `${edge.label} ${edge.reason}`;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    this.#resident.push(node);
    this.#residentBytes += sizeOf({ ids, logprobs });
    this.#budget?.used(this);
    return node;
  }

  /** The deepest call whose path is the front of a prompt; of equally deep ones the last. */
  #attach(prompt: Int32Array): Place {
    let best: Place = { parent: null, kept: 0 };
    const open = [...this.#roots];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      const kept = this.#keptBy(prompt, node);
      if (kept === null) continue;
      // What lets go of less of this call than the prompt does has ids before its own that the prompt has not.
      for (const child of node.children) if (child.kept <= kept) open.push(child);
      const { parent } = best;
      const isDeeper = kept > best.kept || (kept === best.kept && node.seq > (parent?.seq ?? -1));
      // A call that sampled nothing is no turn to go on from.
      if (isDeeper && node.end > node.promptEnd) best = { parent: node, kept };
    }
    return best;
  }

  /** How many ids of a path its prompt begins with, where those of the parent are known to be there; null = it goes another way. */
  #keptBy(prompt: Int32Array, node: ForestNode): number | null {
    for (let trimmed = 0; trimmed <= this.#maxTrim; trimmed += 1) {
      const end = node.end - trimmed;
      if (end > prompt.length || end <= node.promptEnd) continue;
      if (trimmed === 0 && !isResident(node.stored)) {
        if (hashIds(prompt.subarray(node.kept, end)) === node.idsHash) return end;
        continue;
      }
      const own = this.own(node).ids;
      if (equalIds(prompt.subarray(node.kept, end), own.subarray(0, own.length - trimmed)))
        return end;
    }
    return null;
  }

  #hasPrompt(
    node: ForestNode,
    asked: { readonly kept: number; readonly promptIds: Int32Array },
  ): boolean {
    const { kept, promptIds } = asked;
    if (node.kept !== kept || node.promptEnd !== kept + promptIds.length) return false;
    return equalIds(this.own(node).ids.subarray(0, promptIds.length), promptIds);
  }

  /** The first turn shows which program the agent is. */
  #isOtherProgram({ client, purpose }: ForestCall): boolean {
    const program = programOf(client);
    if (this.#program === null && purpose === 'turn') this.#program = program;
    return program !== null && this.#program !== null && program !== this.#program;
  }

  #read({ offset, ids, logprobs }: SpilledArrays): TokenArrays {
    if (this.#file === null) throw new Error('the forest is closed');
    const bytes = this.#file.read(
      offset,
      ids * idBytes + (logprobs === null ? 0 : logprobs.count * logprobs.bytesEach),
    );
    const { buffer } = bytes;
    const own = new Int32Array(buffer, 0, ids);
    if (logprobs === null) return { ids: own, logprobs: null };
    // A copy: 64-bit floats need not begin where the ids end.
    const rest = buffer.slice(ids * idBytes);
    const read = logprobs.bytesEach === 4 ? new Float32Array(rest) : new Float64Array(rest);
    return { ids: own, logprobs: read };
  }
}

function spilled(offset: number, { ids, logprobs }: TokenArrays): SpilledArrays {
  if (logprobs === null) return { offset, ids: ids.length, logprobs: null };
  const bytesEach = logprobs instanceof Float32Array ? 4 : 8;
  return { offset, ids: ids.length, logprobs: { count: logprobs.length, bytesEach } };
}

function isTurn(node: ForestNode): boolean {
  return node.purpose === 'turn' && node.edge.label !== 'foreign';
}

/** `OpenAI/Python 1.2` and `AsyncOpenAI/Python 1.2` are one program. */
function programOf(client: string | null): string | null {
  const [name = ''] = (client ?? '').split(/[/ ]/);
  return name === '' ? null : name.toLowerCase().replace(/^async/, '');
}
