/** The thread that makes samples: one rollout after the other, since each may take as much memory as its calls. */
import { parentPort } from 'node:worker_threads';
import { faultOf } from '../../core/error-fault.ts';
import { assembleFile } from './assemble-file.ts';
import { milesPayloadOf } from './miles-payload.ts';
import type { FromSamples, ToSamples } from './samples-thread.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');

async function answer({ number, work }: ToSamples): Promise<FromSamples> {
  try {
    if (work.kind === 'make') return { number, made: await assembleFile(work.task) };
    return { number, payload: await milesPayloadOf(work.file, work.layers) };
  } catch (error) {
    return { number, fault: faultOf(error) };
  }
}

let last: Promise<void> = Promise.resolve();
port.on('message', (message: ToSamples) => {
  last = last.then(async () => {
    port.postMessage(await answer(message));
  });
});
