/** The thread of a backend that dies, or gets stuck, of what a test asks it to execute. */
import { parentPort } from 'node:worker_threads';
import type { ToBackend } from '../../src/app/serve/thread-messages.ts';
import '../../src/app/serve/backend-thread.ts';

parentPort?.on('message', (message: ToBackend) => {
  if (message.kind === 'execute' && message.request.label === 'die') throw new Error('planted');
  if (message.kind === 'execute' && message.request.label === 'exit') process.exit(0);
  if (message.kind === 'execute' && message.request.label === 'spin') for (;;);
});
