/** Answers of any shape, by a seed: the events in which they grow, and what they are in the end. */
import type {
  Answer,
  AnswerEvent,
  AnswerFinish,
  AnswerItem,
} from '../../../src/gateway/items/answer.ts';
import { seededRandom } from '../../support/random.ts';

const letters = ['a', ' ', '\n', '"', '\\', '{', '}', 'é', '漢', '🙂', '\u0000', '</', 'data: '];
const finishes: readonly AnswerFinish[] = ['stop', 'tool-calls', 'length', 'context', 'filter'];

export function randomAnswer(seed: number): {
  readonly events: readonly AnswerEvent[];
  readonly answer: Answer;
} {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Value>(values: readonly Value[]): Value => values[below(values.length)]!;
  const events: AnswerEvent[] = [];
  const items: AnswerItem[] = [];
  for (let index = 0, count = below(6); index < count; index += 1) {
    const start = emptyItem(index, below(4));
    events.push({ type: 'item-start', index, item: start });
    let text = '';
    // A call may have no arguments; nothing else is empty.
    const pieces = below(4) + (start.kind === 'tool-call' ? 0 : 1);
    for (let piece = 0; piece < pieces; piece += 1) {
      const delta = Array.from({ length: 1 + below(5) }, () => pick(letters)).join('');
      text += delta;
      events.push({ type: 'item-delta', index, delta });
    }
    const item = start.kind === 'tool-call' ? { ...start, arguments: text } : { ...start, text };
    events.push({ type: 'item-end', index, item });
    items.push(item);
  }
  const usage = {
    inputTokens: below(99),
    outputTokens: below(99),
    cachedTokens: 0,
    reasoningTokens: 0,
  };
  const answer: Answer = {
    items,
    finish: pick(finishes),
    stopSequence: null,
    usage: below(2) === 0 ? null : usage,
  };
  return { events: [...events, { type: 'end', answer }], answer };
}

function emptyItem(index: number, kind: number): AnswerItem {
  if (kind === 0) return { kind: 'reasoning', text: '' };
  if (kind === 1) return { kind: 'text', text: '' };
  return {
    kind: 'tool-call',
    callId: `call_${index}`,
    tool: { name: 'run', namespace: index % 2 === 0 ? null : 'code' },
    form: kind === 2 ? 'function' : 'custom',
    arguments: '',
  };
}
