/** Answers made up from a seed: what the events of a stream add up to is the final object, in ids, order and content. */
import assert from 'node:assert/strict';
import { messagesDialect } from '../../../src/gateway/dialects/messages/messages-dialect.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import { addedUp as addedMessage } from '../messages/added-up.ts';
import { addedUp as addedResponse, comparable } from '../responses/added-up.ts';
import { randomAnswer } from '../responses/random-answer.ts';

const head = { requestId: 'r1', model: 'mock-model', createdAt: new Date(0) };

/** Throws with the seed that fails. */
export function checkForms(count: number, firstSeed: number): void {
  const { extra } = responsesDialect.read({ input: 'Go.', stream: true });
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1)
    try {
      const { events, answer } = randomAnswer(seed);
      const message = messagesDialect.writer(head, { showsThinking: seed % 3 !== 0 });
      const sentMessage = [...message.start(), ...events.flatMap((each) => message.write(each))];
      assert.deepEqual(addedMessage(sentMessage).message, message.whole(answer));

      const response = responsesDialect.writer(head, extra);
      const sent = [...response.start(), ...events.flatMap((each) => response.write(each))];
      const { items, done, terminal } = addedResponse(sent);
      const whole = responsesDialect.writer(head, extra).whole(answer);
      assert.deepEqual(terminal.response, whole);
      assert.deepEqual(done, whole['output']);
      assert.deepEqual(items.map(comparable), done.map(comparable));
    } catch (error) {
      throw new Error(`the answer of seed ${seed} differs`, { cause: error });
    }
}
