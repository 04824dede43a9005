/** The Responses API of OpenAI, as Codex, OpenCode and the vendor's SDKs speak it. */
import type { Dialect } from '../dialect.ts';
import type { ResponsesExtra } from './echo.ts';
import { problemAnswer } from './problem.ts';
import { readRequest } from './read-request.ts';
import { ResponsesWriter } from './write-answer.ts';

export const responsesDialect: Dialect<ResponsesExtra> = {
  name: 'responses',
  pinFields: {
    temperature: { path: ['temperature'] },
    top_p: { path: ['top_p'] },
    top_k: { path: ['top_k'] },
    min_p: { path: ['min_p'] },
    max_tokens: { path: ['max_output_tokens'] },
    seed: { path: ['seed'] },
    stop: { path: ['stop'] },
    frequency_penalty: { path: ['frequency_penalty'] },
    presence_penalty: { path: ['presence_penalty'] },
    reasoning_effort: { path: ['reasoning', 'effort'] },
  },
  read: readRequest,
  writer: (head, extra) => new ResponsesWriter(head, extra),
  problem: problemAnswer,
};
