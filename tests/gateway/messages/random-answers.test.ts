import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';
import { messagesDialect } from '../../../src/gateway/dialects/messages/messages-dialect.ts';
import type { Answer, AnswerEvent, AnswerItem } from '../../../src/gateway/items/answer.ts';
import { seededRandom } from '../../support/random.ts';
import { addedUp } from './added-up.ts';

const finishes = ['stop', 'stop-sequence', 'tool-calls', 'length', 'context', 'filter'] as const;
const letters = ['a', ' ', '\n', '"', '\\', 'é', '漢', '🙂', '\u2028', '</think>', '{', '}'];

type Random = () => number;

function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[Math.floor(random() * values.length)]!;
}

function randomText(random: Random): string {
  const length = 1 + Math.floor(random() * 30);
  return Array.from({ length }, () => pick(random, letters)).join('');
}

function randomItem(random: Random, index: number): AnswerItem {
  const kind = pick(random, ['reasoning', 'text', 'tool-call'] as const);
  if (kind !== 'tool-call') return { kind, text: randomText(random) };
  const tool = { name: pick(random, ['Bash', 'Read', '__proto__']), namespace: null };
  const given = pick(random, [
    '',
    JSON.stringify({ command: randomText(random), ['__proto__']: random() }),
    '{"cut":"of',
    '[1]',
  ]);
  return { kind, callId: `call_${index}`, tool, form: 'function', arguments: given };
}

function randomAnswer(random: Random): Answer {
  const length = Math.floor(random() * 6);
  const finish = pick(random, finishes);
  const inputTokens = Math.floor(random() * 1000);
  return {
    items: Array.from({ length }, (_, index) => randomItem(random, index)),
    finish,
    stopSequence: finish === 'stop-sequence' ? randomText(random) : null,
    usage:
      random() < 0.2
        ? null
        : {
            inputTokens,
            outputTokens: Math.floor(random() * 1000),
            cachedTokens: Math.floor(random() * inputTokens),
            reasoningTokens: Math.floor(random() * 10),
          },
  };
}

/** Cut anywhere between characters. */
function pieces(text: string, random: Random): readonly string[] {
  const cut: string[] = [];
  for (const letter of text)
    if (cut.length === 0 || random() < 0.4) cut.push(letter);
    else cut.push(cut.pop()! + letter);
  return cut;
}

function eventsOf(answer: Answer, random: Random): readonly AnswerEvent[] {
  const events = answer.items.flatMap((item, index): AnswerEvent[] => {
    const isCall = item.kind === 'tool-call';
    const text = isCall ? item.arguments : item.text;
    const empty: AnswerItem = isCall ? { ...item, arguments: '' } : { ...item, text: '' };
    return [
      { type: 'item-start', index, item: empty },
      ...pieces(text, random).map((delta) => ({ type: 'item-delta', index, delta }) as const),
      { type: 'item-end', index, item },
    ];
  });
  return [...events, { type: 'end', answer }];
}

function writerOf(random: Random) {
  const head = { requestId: 'r', model: 'mock-model', createdAt: new Date(0) };
  return messagesDialect.writer(head, { showsThinking: random() < 0.7 });
}

const runs = 300;

describe('answers in the dialect messages', () => {
  it('add up to the whole message, however they are cut', () => {
    const random = seededRandom(11);
    for (let run = 0; run < runs; run += 1) {
      const answer = randomAnswer(random);
      const writer = writerOf(random);
      const sent: SentEvent[] = [...writer.start()];
      for (const event of eventsOf(answer, random)) {
        if (random() < 0.2) sent.push(...writer.keepAlive());
        sent.push(...writer.write(event));
      }
      sent.push(...writer.keepAlive());
      assert.deepEqual(addedUp(sent).message, writer.whole(answer), `run ${run}`);
    }
  });

  it('end with exactly one failure wherever they break off', () => {
    const random = seededRandom(12);
    for (let run = 0; run < runs; run += 1) {
      const events = eventsOf(randomAnswer(random), random).slice(0, -1);
      const writer = writerOf(random);
      const broken = events.slice(0, Math.floor(random() * (events.length + 1)));
      const sum = addedUp([
        ...writer.start(),
        ...broken.flatMap((event) => writer.write(event)),
        ...writer.fail({
          ...{ kind: 'upstream', status: null, message: 'it broke off', field: null },
          ...{ retryAfter: null, tokens: null },
        }),
        ...writer.keepAlive(),
      ]);
      assert.equal(sum.ending, 'error', `run ${run}`);
    }
  });
});
