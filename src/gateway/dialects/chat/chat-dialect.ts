/** Chat completions, for upstreams that are asked in ids: elsewhere its calls are relayed as they are. */
import type { Dialect, PinFields } from '../dialect.ts';
import { samplingPinsSchema, type SamplingPins } from '../../../wire/rollout/route-rules.ts';
import { problemAnswer } from './problem.ts';
import { readRequest, type ChatExtra } from './read-request.ts';
import { ChatWriter } from './write-answer.ts';

/** Pins are spelled as this dialect spells them. */
const pinNames = Object.keys(samplingPinsSchema.shape) as readonly (keyof SamplingPins)[];
const pinFields: PinFields = Object.fromEntries(pinNames.map((name) => [name, { path: [name] }]));

export const chatDialect: Dialect<ChatExtra> = {
  name: 'chat',
  pinFields,
  read: readRequest,
  writer: (head, extra) => new ChatWriter(head, extra),
  problem: problemAnswer,
};
