/**
 * Puts a model's answer in items, in the order in which they first appear. Reasoning, text and each tool call are items of their own; what comes after another
 * kind is a new item. The first item that is not over goes out as it grows; what belongs to later ones waits, so that items come strictly one after another
 * even where the upstream mixes parallel calls. Pieces never end in the middle of a character.
 */
import { RolloutError } from '../../core/errors.ts';
import type { ModelPart, ModelResult, ModelUsage } from '../../engines/model-call.ts';
import type { Answer, AnswerEvent, AnswerFinish, AnswerItem, AnswerUsage } from './answer.ts';
import { CustomInput } from './custom-input.ts';
import type { ToolNames } from './tool-names.ts';

export interface AskedLimits {
  /** What the upstream was told; null = nothing. An answer that is cut below it was cut by the model's context. */
  readonly maxTokens: number | null;
}

/** An item while it grows. */
interface GrowingItem {
  /** As it begins. */
  readonly start: AnswerItem;
  readonly input: CustomInput | null;
  text: string;
  /** Not gone out yet. */
  waiting: string;
  isOver: boolean;
}

export class AnswerItems {
  readonly #tools: ToolNames;
  readonly #limits: AskedLimits;
  readonly #done: AnswerItem[] = [];
  readonly #open: GrowingItem[] = [];
  readonly #calls = new Map<number, GrowingItem>();
  readonly #notes: string[] = [];
  #isStarted = false;

  constructor(tools: ToolNames, limits: AskedLimits = { maxTokens: null }) {
    this.#tools = tools;
    this.#limits = limits;
  }

  /** What was not as it should be, in one line each; for logs. */
  get notes(): readonly string[] {
    return this.#notes;
  }

  /** The end throws ENGINE_STREAM_BROKEN for an answer that the engine aborted; a call without a name is ENGINE_RESPONSE_INVALID. */
  push(part: ModelPart): readonly AnswerEvent[] {
    switch (part.type) {
      case 'text-delta':
        this.#addText('text', part.text);
        break;
      case 'reasoning-delta':
        this.#addText('reasoning', part.text);
        break;
      case 'tool-call-start':
        this.#startCall(part);
        break;
      case 'tool-call-delta':
        this.#addArguments(part.index, part.arguments);
        break;
      case 'tool-call-end':
        this.#endCall(part.index);
        break;
      case 'prompt-ids':
      case 'tokens-delta':
        return [];
      case 'end':
        return this.#end(part.result);
    }
    return this.#drain();
  }

  #addText(kind: 'text' | 'reasoning', text: string): void {
    if (text === '') return;
    let item = this.#open.at(-1);
    if (item?.start.kind !== kind || item.isOver) {
      this.#endText();
      item = growing({ kind, text: '' }, null);
      this.#open.push(item);
    }
    item.waiting += text;
  }

  #startCall({ index, id, name }: Extract<ModelPart, { readonly type: 'tool-call-start' }>): void {
    if (name === '') throw invalid('the engine called a tool without its name');
    this.#endText();
    const { tool, form } = this.#tools.client(name);
    const start: AnswerItem = { kind: 'tool-call', callId: id, tool, form, arguments: '' };
    const item = growing(start, form === 'custom' ? new CustomInput() : null);
    this.#calls.set(index, item);
    this.#open.push(item);
  }

  #addArguments(index: number, text: string): void {
    const item = this.#calls.get(index);
    if (item === undefined || item.isOver)
      throw invalid('the engine went on with a tool call that is not open');
    item.waiting += item.input?.push(text) ?? text;
  }

  #endCall(index: number): void {
    const item = this.#calls.get(index);
    if (item === undefined || item.isOver) return;
    item.isOver = true;
    if (item.input === null) return;
    item.waiting += item.input.finish();
    const { note } = item.input;
    if (note !== null && item.start.kind === 'tool-call')
      this.#notes.push(`call ${item.start.callId} of ${item.start.tool.name}: ${note}`);
  }

  /** A text ends when something else begins; a call goes on until its own end. */
  #endText(): void {
    const last = this.#open.at(-1);
    if (last !== undefined && last.start.kind !== 'tool-call') last.isOver = true;
  }

  #end(result: ModelResult): readonly AnswerEvent[] {
    if (result.finishReason === 'abort')
      throw new RolloutError('ENGINE_STREAM_BROKEN', 'the engine aborted the answer', {
        phase: 'model-call',
        detail: `request ${result.requestId}`,
      });
    this.#endText();
    for (const index of this.#calls.keys()) this.#endCall(index);
    const events = this.#drain();
    const finish = this.#finish(result);
    const answer: Answer = {
      items: [...this.#done],
      finish,
      stopSequence: finish === 'stop-sequence' ? result.stopString : null,
      usage: usageOf(result.usage),
    };
    return [...events, { type: 'end', answer }];
  }

  #drain(): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    for (let item = this.#open[0]; item !== undefined; item = this.#open[0]) {
      const index = this.#done.length;
      if (!this.#isStarted) events.push({ type: 'item-start', index, item: item.start });
      this.#isStarted = true;
      const delta = takeDelta(item);
      if (delta !== '') events.push({ type: 'item-delta', index, delta });
      if (!item.isOver) break;
      const whole = wholeItem(item);
      events.push({ type: 'item-end', index, item: whole });
      this.#done.push(whole);
      this.#open.shift();
      this.#isStarted = false;
    }
    return events;
  }

  #finish({ finishReason, stopString, usage }: ModelResult): AnswerFinish {
    switch (finishReason) {
      case 'length':
        return this.#isBelowLimit(usage) ? 'context' : 'length';
      case 'context':
        return 'context';
      case 'content_filter':
        return 'filter';
      case 'abort':
      case 'stop':
      case 'tool_calls':
        // Engines say `stop` with calls and `tool_calls` without any; what the answer holds decides.
        if (this.#calls.size > 0) return 'tool-calls';
        return stopString === null ? 'stop' : 'stop-sequence';
    }
  }

  #isBelowLimit(usage: ModelUsage | null): boolean {
    const { maxTokens } = this.#limits;
    return maxTokens !== null && usage !== null && usage.completionTokens < maxTokens;
  }
}

function growing(start: AnswerItem, input: CustomInput | null): GrowingItem {
  return { start, input, text: '', waiting: '', isOver: false };
}

/** What can go out; the first half of a character waits for its second one. */
function takeDelta(item: GrowingItem): string {
  const { waiting, isOver } = item;
  const last = waiting.charCodeAt(waiting.length - 1);
  const isCut = !isOver && last >= 0xd800 && last <= 0xdbff;
  const delta = isCut ? waiting.slice(0, -1) : waiting;
  item.waiting = waiting.slice(delta.length);
  item.text += delta;
  return delta;
}

function wholeItem({ start, text }: GrowingItem): AnswerItem {
  return start.kind === 'tool-call' ? { ...start, arguments: text } : { ...start, text };
}

/** Counts as clients may add them up: parts are never more than their whole. */
function usageOf(usage: ModelUsage | null): AnswerUsage | null {
  if (usage === null) return null;
  const inputTokens = count(usage.promptTokens);
  const outputTokens = count(usage.completionTokens);
  return {
    inputTokens,
    outputTokens,
    cachedTokens: Math.min(inputTokens, count(usage.cachedTokens ?? 0)),
    reasoningTokens: Math.min(outputTokens, count(usage.reasoningTokens ?? 0)),
  };
}

function count(value: number): number {
  return Math.max(0, Math.trunc(value));
}

function invalid(what: string): RolloutError {
  return new RolloutError('ENGINE_RESPONSE_INVALID', what, { phase: 'model-call' });
}
