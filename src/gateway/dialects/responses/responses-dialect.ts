/** The Responses API of OpenAI, as Codex, OpenCode and the vendor's SDKs speak it. */
import type { Dialect } from '../dialect.ts';
import type { ResponsesExtra } from './echo.ts';
import { problemAnswer } from './problem.ts';
import { readRequest } from './read-request.ts';
import { ResponsesWriter } from './write-answer.ts';

export const responsesDialect: Dialect<ResponsesExtra> = {
  name: 'responses',
  read: readRequest,
  writer: (head, extra) => new ResponsesWriter(head, extra),
  problem: problemAnswer,
};
