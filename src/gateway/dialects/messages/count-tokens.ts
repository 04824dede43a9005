/** `/v1/messages/count_tokens`: the request of `/v1/messages` without an answer to it, so that the assistant may have the last word. */
import type { Dialect } from '../dialect.ts';
import { messagesDialect } from './messages-dialect.ts';
import { readRequest, type MessagesExtra } from './read-request.ts';

export const countTokensDialect: Dialect<MessagesExtra> = {
  ...messagesDialect,
  read: (body) => readRequest(body, { isCounted: true }),
};
