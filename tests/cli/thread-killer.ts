/** Loaded before the server: at SIGUSR2 it ends the thread of the store, as a defect would. */
import type { Worker } from 'node:worker_threads';

const threads: Worker[] = [];
process.on('worker', (worker) => void threads.push(worker));
process.on('SIGUSR2', () => {
  for (const thread of threads) if (thread.threadName === 'store') void thread.terminate();
});
