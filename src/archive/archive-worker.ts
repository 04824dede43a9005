/** A thread that writes the folders of finished rollouts, one after the other. */
import { parentPort } from 'node:worker_threads';
import type { KeepProblem } from './keep-tree.ts';
import { saveFolder, type FolderTask } from './rollout-folder.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');

port.on('message', (task: FolderTask) =>
  port.postMessage(saveFolder(task) satisfies readonly KeepProblem[]),
);
