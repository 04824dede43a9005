import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messagesDialect } from '../../../src/gateway/dialects/messages/messages-dialect.ts';
import { loadCases } from '../golden.ts';
import { addedUp } from './added-up.ts';
import { readOf, streamOf, wholeOf, type MessagesCase } from './messages-case.ts';

describe('the dialect messages', () => {
  for (const each of loadCases('messages') as readonly MessagesCase[])
    it(`${each.case}: ${each.title}`, () => {
      switch (each.direction) {
        case 'request': {
          const read = readOf(each.body, each.rules);
          assert.deepEqual(read.refusal, each.refusal);
          assert.deepEqual(read.chat, each.chat);
          assert.deepEqual(read.notes, each.notes);
          if (each.items !== undefined) assert.deepEqual(read.items, each.items);
          for (const twin of each.twins ?? [])
            assert.deepEqual(readOf(twin, each.rules).chat, each.chat);
          break;
        }
        case 'stream': {
          const { sent, answer, writer } = streamOf(each);
          const sum = addedUp(sent);
          assert.deepEqual(
            sent.map(({ event, data }) => [event, data]),
            each.events,
          );
          assert.deepEqual(sum.message, each.message);
          assert.equal(sum.ending, each.message === null ? 'error' : 'message_stop');
          if (answer !== null) assert.deepEqual(writer.whole(answer), each.message);
          break;
        }
        case 'whole':
          assert.deepEqual(wholeOf(each), each.message);
          break;
        case 'error':
          assert.deepEqual(messagesDialect.problem(each.problem, 'req1'), {
            ...{ status: each.status, headers: each.headers, body: each.body },
          });
          break;
      }
    });
});
