/** The thread that makes samples. It is asked for the next when it has answered. */
import { parentPort } from 'node:worker_threads';
import { faultOf } from '../../core/error-fault.ts';
import { assembleFile } from './assemble-file.ts';
import { milesPayloadOf } from './miles-payload.ts';
import type { FromSamples, Work } from './samples-thread.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');

async function answer(work: Work): Promise<FromSamples> {
  try {
    if (work.kind === 'make') return { made: await assembleFile(work.task) };
    return { payload: await milesPayloadOf(work.file, work.layers) };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

port.on('message', (work: Work) => {
  void answer(work).then((answered) => port.postMessage(answered));
});
