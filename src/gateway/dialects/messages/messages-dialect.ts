/** `/v1/messages` as Anthropic's clients speak it. */
import type { Dialect } from '../dialect.ts';
import { problemAnswer } from './problem.ts';
import { readRequest, type MessagesExtra } from './read-request.ts';
import { MessageWriter } from './write-answer.ts';

export const messagesDialect: Dialect<MessagesExtra> = {
  name: 'messages',
  pinFields: {
    temperature: { path: ['temperature'] },
    top_p: { path: ['top_p'] },
    top_k: { path: ['top_k'] },
    max_tokens: { path: ['max_tokens'] },
    stop: { path: ['stop_sequences'], isList: true },
    reasoning_effort: { path: ['output_config', 'effort'] },
  },
  read: (body) => readRequest(body),
  writer: (head, extra) => new MessageWriter(head, extra),
  problem: problemAnswer,
};
