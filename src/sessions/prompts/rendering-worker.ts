/** The thread that renders long prompts, one after the other, with a codec of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { faultOf } from '../../core/error-fault.ts';
import { openCodec } from '../families/registry.ts';
import type { FromRendering, RenderingOptions, ToRendering } from './rendering-thread.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');

const options = workerData as RenderingOptions; // `rendering-thread.ts` gives nothing else
const opening = openCodec({ ...options, now: () => new Date() });

async function answer({ number, conversation, prefix }: ToRendering): Promise<FromRendering> {
  try {
    const codec = await opening;
    if (prefix === null) {
      const { ids } = codec.render(conversation, { opensTurn: true });
      return { number, suffix: { ids, trimmed: 0 } };
    }
    const { ids, trimmed } = codec.renderSuffix(conversation, prefix);
    return { number, suffix: { ids, trimmed } };
  } catch (error) {
    return { number, fault: faultOf(error) };
  }
}

port.on('message', (asked: ToRendering) => {
  void answer(asked).then((answered) => port.postMessage(answered));
});
