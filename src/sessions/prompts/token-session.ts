/**
 * Makes the prompts of one rollout's calls out of what its engine saw and sampled before. Every answered call is a checkpoint: its messages, and all its ids. A
 * request goes on from the deepest checkpoint whose messages stand at its front, under the same tools; the ids of that one stay as they are, and only what is
 * behind is rendered and encoded. Where no checkpoint is the front of a request the whole is rendered anew, and why is counted: no history is ever mended.
 */
import { hash } from 'node:crypto';
import { isRolloutError } from '../../core/errors.ts';
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { ChatCodec, Conversation, SampledMessage } from '../codec.ts';
import type { Message, MessageMatcher } from '../miles/message-matcher.ts';
import { matchLength } from '../miles/prepare-turn.ts';
import type { PromptRenderer } from './prompt-renderer.ts';

/** How a prompt came about. Where it goes on from no checkpoint it was rendered from its beginning. */
export type PromptSource =
  | 'append' // behind a checkpoint that nothing went on from
  | 'fork' // behind one that others went on from
  | 'opening' // the first of the rollout
  | 'new-conversation' // no answer of a model stands in it
  | 'history-changed' // one stands in it that is no checkpoint's, maybe behind others that are
  | 'other-tools' // its history is known under other tools, or other variables of the template
  | 'role-refused' // a message stands behind the checkpoint where the family has no place for one
  | 'suffix-refused'; // the template cannot render what is behind the checkpoint by itself

export interface Checkpoint {
  readonly parent: Checkpoint | null;
  /** Tools and variables of the template. */
  readonly frame: string;
  /** New messages of the request, then the answer. */
  readonly messages: readonly Message[];
  /** Messages of the path, the answer included. */
  readonly messagesEnd: number;
  /** How many ids of the parent's path stand before its own. */
  readonly kept: number;
  /** Prompt behind those, and output. */
  readonly ids: Int32Array;
  readonly end: number;
  readonly seq: number;
  children: number;
}

/** A call whose prompt is known and whose answer is not. */
export interface SessionPrompt {
  readonly ids: Int32Array;
  readonly source: PromptSource;
  /** How many of the ids are those of earlier calls. */
  readonly kept: number;
  readonly parent: Checkpoint | null;
  readonly conversation: Conversation;
}

/** Of one rollout's checkpoints together. A client that sends its history back otherwise than it got it leaves a whole one with every call. */
const mostIds = 1024 * 1024;

export interface TokenSessionOptions {
  readonly codec: ChatCodec;
  readonly renderer: PromptRenderer;
  readonly matches: MessageMatcher;
  /** How many ids its checkpoints may have together, but for the path of the last one: the oldest paths are forgotten from their ends. */
  readonly mostIds?: number;
}

export class TokenSession {
  readonly #options: TokenSessionOptions;
  /** The oldest first. */
  readonly #checkpoints = new Set<Checkpoint>();
  readonly #children = new Map<Checkpoint | null, Checkpoint[]>();
  readonly #counts = new Map<PromptSource, number>();
  #prompts = 0;
  #answers = 0;
  #ids = 0;

  constructor(options: TokenSessionOptions) {
    this.#options = options;
  }

  /** How many prompts came about in which way. */
  get counts(): ReadonlyMap<PromptSource, number> {
    return this.#counts;
  }

  /** CONVERSATION_INVALID where the template refuses the conversation. */
  async prompt(conversation: Conversation): Promise<SessionPrompt> {
    const isFirst = this.#prompts === 0;
    this.#prompts += 1;
    const prompt = await this.#prompt(conversation, isFirst);
    this.#counts.set(prompt.source, (this.#counts.get(prompt.source) ?? 0) + 1);
    return prompt;
  }

  /** The engine came to its end: later calls may go on from here. */
  answered(prompt: SessionPrompt, outputIds: readonly number[], message: SampledMessage): void {
    const { conversation, ids } = prompt;
    // Its checkpoint may be forgotten by now.
    const isKnown = prompt.parent !== null && this.#checkpoints.has(prompt.parent);
    const { parent, kept } = isKnown ? prompt : { parent: null, kept: 0 };
    const known = parent?.messagesEnd ?? 0;
    const own = new Int32Array(ids.length - kept + outputIds.length);
    own.set(ids.subarray(kept));
    own.set(outputIds, ids.length - kept);
    const checkpoint: Checkpoint = {
      ...{ parent, kept, ids: own, frame: frameOf(conversation) },
      messages: [...messagesIn(conversation).slice(known), assistantMessage(message)],
      messagesEnd: conversation.messages.length + 1,
      end: ids.length + outputIds.length,
      ...{ seq: this.#answers, children: 0 },
    };
    this.#answers += 1;
    this.#checkpoints.add(checkpoint);
    this.#ids += own.length;
    const siblings = this.#children.get(parent);
    if (siblings === undefined) this.#children.set(parent, [checkpoint]);
    else siblings.push(checkpoint);
    this.#forgetOld(checkpoint);
  }

  #forgetOld(newest: Checkpoint): void {
    const { mostIds: most = mostIds } = this.#options;
    if (this.#ids <= most) return;
    for (const oldest of this.#checkpoints) {
      let end: Checkpoint | null = oldest;
      while (end !== null && end !== newest && this.#ids > most && !this.#children.has(end)) {
        this.#forget(end);
        end = end.parent;
      }
    }
  }

  #forget(checkpoint: Checkpoint): void {
    const { parent, ids } = checkpoint;
    this.#checkpoints.delete(checkpoint);
    this.#ids -= ids.length;
    const siblings = (this.#children.get(parent) ?? []).filter((one) => one !== checkpoint);
    if (siblings.length > 0) this.#children.set(parent, siblings);
    else this.#children.delete(parent);
  }

  async #prompt(conversation: Conversation, isFirst: boolean): Promise<SessionPrompt> {
    const frame = frameOf(conversation);
    const messages = messagesIn(conversation);
    const parent = this.#attach(messages, frame);
    if (parent === null) {
      const source = isFirst ? 'opening' : this.#whyNone(messages);
      return await this.#anew(conversation, source);
    }
    const appended = conversation.messages.slice(parent.messagesEnd);
    const stranger = appended.find(({ role }) => !this.#options.codec.appendRoles.has(role));
    if (stranger !== undefined)
      return await this.#anew(
        conversation,
        stranger.role === 'assistant' ? 'history-changed' : 'role-refused',
      );
    const prompt = await this.#behind(parent, conversation);
    if (prompt === null) return await this.#anew(conversation, 'suffix-refused');
    // The family has a place for turns that nobody sampled: they are new text.
    const hasOther = appended.some(({ role }) => role === 'assistant');
    return hasOther ? { ...prompt, source: 'history-changed' } : prompt;
  }

  async #anew(conversation: Conversation, source: PromptSource): Promise<SessionPrompt> {
    const ids = await this.#options.renderer.render(conversation);
    return { ids, source, kept: 0, parent: null, conversation };
  }

  /** null = the template cannot render it by itself. */
  async #behind(parent: Checkpoint, asked: Conversation): Promise<SessionPrompt | null> {
    const before = idsOf(parent);
    const appended = asked.messages.slice(parent.messagesEnd);
    // As they were sampled, not as the client spells them.
    const stored = messagesOf(parent) as unknown as readonly ChatMessage[];
    const conversation = { ...asked, messages: [...stored, ...appended] };
    const prefix = { ids: before, messages: stored.length };
    const { codec, renderer } = this.#options;
    let suffix;
    try {
      suffix = await renderer.renderSuffix(conversation, prefix);
    } catch (error) {
      if (isRolloutError(error, 'CONVERSATION_INVALID')) return null;
      throw error;
    }
    if (suffix.trimmed > codec.maxTrim) return null;
    const kept = before.length - suffix.trimmed;
    const ids = new Int32Array(kept + suffix.ids.length);
    ids.set(before.subarray(0, kept));
    ids.set(suffix.ids, kept);
    const isFork = parent.children > 0;
    parent.children += 1;
    return { ids, kept, parent, conversation, source: isFork ? 'fork' : 'append' };
  }

  /** The deepest checkpoint whose whole path stands at the front; of equally deep ones the last. */
  #attach(messages: readonly Message[], frame: string | null): Checkpoint | null {
    const { matches } = this.#options;
    let best: Checkpoint | null = null;
    const open: (Checkpoint | null)[] = [null];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const from = at?.messagesEnd ?? 0;
      for (const child of this.#children.get(at) ?? []) {
        if (frame !== null && child.frame !== frame) continue;
        const matched = matchLength(child.messages, messages, { matches, from });
        if (matched < child.messages.length) continue;
        open.push(child);
        if (best === null || isDeeper(child, best)) best = child;
      }
    }
    return best;
  }

  #whyNone(messages: readonly Message[]): PromptSource {
    if (this.#attach(messages, null) !== null) return 'other-tools';
    const hasAnswer = messages.some(({ role }) => role === 'assistant');
    return hasAnswer ? 'history-changed' : 'new-conversation';
  }
}

function isDeeper(one: Checkpoint, other: Checkpoint): boolean {
  if (one.messagesEnd !== other.messagesEnd) return one.messagesEnd > other.messagesEnd;
  return one.seq > other.seq;
}

/** Of all that a template sees besides the messages. */
function frameOf({ tools, toolsText, templateVariables }: Conversation): string {
  return hash('sha1', JSON.stringify([toolsText ?? tools, templateVariables]), 'base64');
}

function messagesIn({ messages }: Conversation): readonly Message[] {
  return messages as unknown as readonly Message[];
}

function pathTo(checkpoint: Checkpoint): readonly Checkpoint[] {
  const path: Checkpoint[] = [];
  for (let at: Checkpoint | null = checkpoint; at !== null; at = at.parent) path.push(at);
  return path.reverse();
}

function idsOf(checkpoint: Checkpoint): Int32Array {
  const ids = new Int32Array(checkpoint.end);
  for (const each of pathTo(checkpoint)) ids.set(each.ids, each.kept);
  return ids;
}

function messagesOf(checkpoint: Checkpoint): readonly Message[] {
  return pathTo(checkpoint).flatMap(({ messages }) => messages);
}

/** What was sampled, as a client sends it back. */
export function assistantMessage({ text, reasoning, toolCalls }: SampledMessage): Message {
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    ...(reasoning !== null && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && {
      tool_calls: toolCalls.map(({ id, name, arguments: text }) => ({
        ...{ id, type: 'function' },
        function: { name, arguments: text },
      })),
    }),
  };
}
