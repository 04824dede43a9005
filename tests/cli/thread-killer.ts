/** Loaded before the server: at SIGUSR2 it ends the thread that `KILLED_THREAD` names, as a defect would. */
import type { Worker } from 'node:worker_threads';

const threads: Worker[] = [];
process.on('worker', (worker) => void threads.push(worker));
process.on('SIGUSR2', () => {
  for (const thread of threads)
    if (thread.threadName === process.env['KILLED_THREAD']) void thread.terminate();
});
