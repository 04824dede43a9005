/**
 * Agents whose every call is known: what the engine was given and sampled, which call it goes on from, and what the branch is. The truth is written down while a
 * call is made, from what the agent did, and never from what the forest says. Messages have ids of their own, so that no tokenizer is needed.
 */
import type { CallMessage, CallPurpose, ForestCall } from '../../src/sessions/forest-call.ts';
import type { EdgeLabel } from '../../src/sessions/forest-node.ts';

const opener = 7;
const closer = 8;
const agentProgram = 'agent/1.0';

/** What is true of a call. */
export interface KnownCall {
  readonly given: ForestCall;
  readonly label: EdgeLabel;
  readonly parent: KnownCall | null;
  readonly isTrained: boolean;
  /** The agent threw the answer away and asked again. */
  isReplaced: boolean;
}

interface Spoken {
  readonly message: CallMessage;
  readonly ids: readonly number[];
  /** The call that sampled it; null = nobody did. */
  readonly by: KnownCall | null;
}

export interface Conversation {
  spoken: Spoken[];
}

export interface TurnOptions {
  readonly label: EdgeLabel;
  readonly purpose?: CallPurpose;
  readonly client?: string;
  readonly repeats?: number;
  /** Text in the arguments of a tool call that is sampled. */
  readonly instructions?: readonly string[];
}

export class SyntheticAgent {
  readonly calls: KnownCall[] = [];
  readonly #random: () => number;
  #clockMs = 0;
  #words = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  /** A text that stands nowhere else. */
  words(): string {
    this.#words += 1;
    const letters = Array.from({ length: 60 }, () => String.fromCharCode(97 + this.below(26)));
    return `${this.#words} ${letters.join('')}`;
  }

  say(role: 'system' | 'user' | 'tool', content = this.words()): Spoken {
    return { message: { role, content }, ids: this.#ids(3 + this.below(6)), by: null };
  }

  open(...spoken: readonly Spoken[]): Conversation {
    return { spoken: [...spoken] };
  }

  /** Samples an answer and puts it behind the conversation. */
  turn(conversation: Conversation, options: TurnOptions): KnownCall {
    const begun = this.begin(conversation, options);
    return begun.end();
  }

  /** Sends a call; what it samples joins when it ends. */
  begin(conversation: Conversation, options: TurnOptions): { readonly end: () => KnownCall } {
    const { label, purpose = 'turn', client = agentProgram, repeats = null } = options;
    const { spoken } = conversation;
    const call = this.#sent;
    this.#sent += 1;
    const sentMs = this.#tick();
    const messages = spoken.map(({ message }) => message);
    const promptIds = [...spoken.flatMap(({ ids }) => ids), opener];
    const outputIds = [...this.#ids(2 + this.below(9)), closer];
    const text = this.words();
    const toolArguments = (options.instructions ?? []).map((prompt) => JSON.stringify({ prompt }));
    const parent =
      spoken.findLast(({ by }) => by !== null && this.#isFront(by, spoken))?.by ?? null;
    return {
      end: () => {
        const known: KnownCall = {
          given: {
            ...{ call, purpose, client, repeats, promptIds, outputIds, messages },
            logprobs: outputIds.map((_, at) => (at === 1 ? -0 : -this.#random())),
            ...{ weightVersion: `v${1 + Math.floor(call / 7)}`, status: 'completed' },
            ...{ cachedTokens: null, answer: { text, toolArguments } },
            time: { sentMs, endedMs: this.#tick() },
          },
          ...{ label, parent, isReplaced: false },
          isTrained: purpose === 'turn' && client === agentProgram,
        };
        this.calls.push(known);
        const calls = toolArguments.map((text, at) => ({
          ...{ id: `${call}-${at}`, type: 'function' },
          function: { name: 'work', arguments: text },
        }));
        conversation.spoken = [
          ...spoken,
          {
            message: {
              role: 'assistant',
              content: text,
              ...(calls.length > 0 && { tool_calls: calls }),
            },
            ids: [opener, ...outputIds],
            by: known,
          },
        ];
        return known;
      },
    };
  }

  #sent = 1;

  #tick(): number {
    this.#clockMs += 1;
    return this.#clockMs;
  }

  #ids(count: number): number[] {
    return Array.from({ length: count }, () => 100 + this.below(50_000));
  }

  /** Whether all that a call saw and said stands at the front, word for word. */
  #isFront({ given }: KnownCall, spoken: readonly Spoken[]): boolean {
    const seen = given.messages ?? [];
    const answer = spoken[seen.length];
    return (
      seen.every((message, at) => spoken[at]?.message === message) &&
      answer?.by?.given.call === given.call
    );
  }
}

/** Leaves and owners by the plain definition, over the known parents. */
export interface KnownLeaf {
  readonly call: KnownCall;
  readonly path: readonly KnownCall[];
  /** Of its path, those that are trained in it and in no other. */
  readonly trained: ReadonlySet<KnownCall>;
}

export function knownLeaves(calls: readonly KnownCall[]): readonly KnownLeaf[] {
  const pathOf = (call: KnownCall): readonly KnownCall[] =>
    call.parent === null ? [call] : [...pathOf(call.parent), call];
  const paths = calls.filter(({ isTrained }) => isTrained).map(pathOf);
  const inner = new Set(paths.flatMap((path) => path.slice(0, -1)));
  const kept = paths.filter((path) => {
    const leaf = path.at(-1);
    return leaf !== undefined && !inner.has(leaf) && !leaf.isReplaced;
  });
  const owned = new Set<KnownCall>();
  return kept.map((path) => {
    const trained = new Set(path.filter((call) => call.isTrained && !owned.has(call)));
    for (const call of trained) owned.add(call);
    return { call: path.at(-1)!, path, trained };
  });
}
