/** The thread that writes the folders of finished rollouts: while one waits for the disk, the next is written. */
import { parentPort } from 'node:worker_threads';
import type { FromArchive, ToArchive } from './archive-thread.ts';
import { saveFolder } from './rollout-folder.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');

port.on('message', ({ number, task }: ToArchive) => {
  void saveFolder(task).then((problems) =>
    port.postMessage({ number, problems } satisfies FromArchive),
  );
});
