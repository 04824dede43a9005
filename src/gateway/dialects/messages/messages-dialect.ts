/** `/v1/messages` as Anthropic's clients speak it. */
import type { Dialect } from '../dialect.ts';
import { problemAnswer } from './problem.ts';
import { readRequest, type MessagesExtra } from './read-request.ts';
import { MessageWriter } from './write-answer.ts';

export const messagesDialect: Dialect<MessagesExtra> = {
  name: 'messages',
  read: (body) => readRequest(body),
  writer: (head, extra) => new MessageWriter(head, extra),
  problem: problemAnswer,
};
