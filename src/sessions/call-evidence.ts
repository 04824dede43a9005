/**
 * What tells where a call that breaks with its history comes from: messages that are those of an earlier request, answers that come back in another conversation,
 * arguments of a tool call that became somebody's instruction. All of it only names a branch; which ids are trained is never decided by it.
 */
import type { CallMessage, ForestCall } from './forest-call.ts';
import type { ForestNode } from './forest-node.ts';
import { answerKey, contentTexts, frontKeys, stringsIn, wordsOf } from './message-words.ts';

/** Of answers and arguments that are remembered; older ones explain nothing any more. */
const mostRemembered = 256;
const probeLength = 48;
const shortestInstruction = 16;
const longestInstruction = 65_536;

/** An earlier call whose history a request has in it. */
export interface Carrier {
  readonly node: ForestNode;
  /** Of its request. */
  readonly messages: number;
}

/** The front of a request: how many messages, and their key. */
export interface MessageFront {
  readonly count: number;
  readonly key: string;
}

/** What is known of a call before it joins. `known`: a front that the caller has compared already; only what is behind it is looked at. */
export class CallWords {
  readonly messages: readonly CallMessage[];
  /** Those behind the known front. */
  readonly fresh: readonly CallMessage[];
  readonly known: MessageFront | null;
  readonly #keys: readonly string[];

  constructor(messages: readonly CallMessage[], known: MessageFront | null = null) {
    this.messages = messages;
    this.known = known;
    this.fresh = messages.slice(known?.count ?? 0);
    this.#keys = frontKeys(this.fresh, known?.key);
  }

  /** Of the whole request; null = its messages are not known. */
  get front(): MessageFront | null {
    const key = this.#keys.at(-1) ?? this.known?.key;
    return key === undefined ? null : { count: this.messages.length, key };
  }

  /** Of the first `count` messages, behind the known front. */
  keyOf(count: number): string {
    return this.#keys[count - 1 - (this.known?.count ?? 0)] ?? '';
  }

  /** What the agent's program says behind the first `count` messages, not the model and no tool. */
  saidBehind(count: number): readonly string[] {
    return this.messages
      .slice(count)
      .filter(({ role }) => role !== 'assistant' && role !== 'tool')
      .flatMap(contentTexts);
  }
}

interface Said {
  readonly call: number;
  readonly probes: readonly string[];
  readonly isSummary: boolean;
}

interface Continued {
  readonly nodes: readonly ForestNode[];
  /** The answer is what one of them sampled. */
  readonly isAsSampled: boolean;
}

const nothingContinued: Continued = { nodes: [], isAsSampled: false };

export class CallEvidence {
  /** By the key of their request. */
  readonly #byRequest = new Map<string, ForestNode[]>();
  readonly #answerOf = new Map<ForestNode, string | null>();
  /** By what an assistant said: the call that sampled it, or else the first that had it in its request. */
  readonly #carriers = new Map<string, Carrier>();
  readonly #answers: Said[] = [];
  readonly #instructions: { readonly call: number; readonly text: string }[] = [];
  #unusedSummary: number | null = null;

  add(node: ForestNode, call: ForestCall, words: CallWords): void {
    const { front } = words;
    if (front !== null) {
      const same = this.#byRequest.get(front.key);
      if (same === undefined) this.#byRequest.set(front.key, [node]);
      else same.push(node);
    }
    const key = answerKey(call.answer);
    this.#answerOf.set(node, key);
    const carrier = { node, messages: words.messages.length };
    for (const said of [...assistantKeys(words.fresh), ...(key === null ? [] : [key])])
      if (!this.#carriers.has(said)) this.#carriers.set(said, carrier);
    if (call.purpose === 'summary') this.#unusedSummary = node.call;
    const probes = probesOf(call.answer.text);
    const isSummary = call.purpose === 'summary';
    if (probes.length > 0) remember(this.#answers, { call: node.call, probes, isSummary });
    for (const text of call.answer.toolArguments.flatMap(stringsIn))
      if (text.length >= shortestInstruction && text.length <= longestInstruction)
        remember(this.#instructions, { call: node.call, text });
  }

  /** The calls whose messages, and then some answer, stand at the front of a request: those of the longest such front. */
  continued(words: CallWords): Continued {
    if (words.known !== null) return nothingContinued;
    for (let count = words.messages.length - 1; count > 0; count -= 1) {
      const answer = words.messages[count];
      if (answer?.role !== 'assistant') continue;
      const nodes = this.#byRequest.get(words.keyOf(count));
      if (nodes === undefined) continue;
      const key = answerKey(wordsOf(answer));
      return { nodes, isAsSampled: nodes.some((node) => this.#answerOf.get(node) === key) };
    }
    return nothingContinued;
  }

  /** The call whose answer stands in what is said. Taken once: what begins with a summary has it in all its later requests. */
  takeSummary(said: readonly string[]): number | null {
    return this.#take((answer) => standsIn(answer, said));
  }

  /** The same of those that were asked for as a summary. */
  takeAskedSummary(said: readonly string[]): number | null {
    return this.#take((answer) => answer.isSummary && standsIn(answer, said));
  }

  #take(isWanted: (answer: Said) => boolean): number | null {
    const at = this.#answers.findLastIndex(isWanted);
    const [found] = at === -1 ? [] : this.#answers.splice(at, 1);
    if (found?.call === this.#unusedSummary) this.#unusedSummary = null;
    return found?.call ?? null;
  }

  /** A call that was asked for a summary which nothing has begun with. Taken once. */
  takeUnusedSummary(): number | null {
    const call = this.#unusedSummary;
    this.#unusedSummary = null;
    return call;
  }

  /** The call whose tool arguments are most of something that is said. */
  instruction(said: readonly string[]): number | null {
    const found = this.#instructions.findLast(({ text }) =>
      said.some((other) => text.length * 2 >= other.length && other.includes(text)),
    );
    return found?.call ?? null;
  }

  /** The last call that something which an assistant says behind `known` messages of a request is from. */
  carrier(words: CallWords, known: number): Carrier | null {
    const found = assistantKeys(words.messages.slice(known))
      .map((key) => this.#carriers.get(key))
      .filter((carrier) => carrier !== undefined);
    return found.reduce<Carrier | null>(
      (last, one) => (last === null || one.node.seq > last.node.seq ? one : last),
      null,
    );
  }
}

function assistantKeys(messages: readonly CallMessage[]): readonly string[] {
  return messages
    .filter(({ role }) => role === 'assistant')
    .map((message) => answerKey(wordsOf(message)))
    .filter((key) => key !== null);
}

function standsIn({ probes }: Said, said: readonly string[]): boolean {
  return said.some((text) => probes.some((probe) => text.includes(probe)));
}

/** From its beginning, middle and end: a program may frame or cut what was said, and takes off the tag that closes it. */
function probesOf(text: string): readonly string[] {
  const spoken = text.trim().replace(/\s*<\/\w+>$/, '');
  if (spoken.length < probeLength) return [];
  const last = spoken.length - probeLength;
  return [0, Math.floor(last / 2), last].map((at) => spoken.slice(at, at + probeLength));
}

function remember<T>(list: T[], one: T): void {
  list.push(one);
  if (list.length > mostRemembered) list.shift();
}
