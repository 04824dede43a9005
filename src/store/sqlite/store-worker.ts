/**
 * The thread that owns the file of the store. Whatever arrives while a group is being written forms the next one, so the number of syncs follows the speed of
 * the disk and not the number of callers; the server's event loop never waits for either.
 */
import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { GroupCommit } from './group-commit.ts';
import { upgrade } from './migrate.ts';
import { openForWriting } from './open-database.ts';
import { StoreCalls, writes } from './store-calls.ts';
import { faultOf } from './store-fault.ts';
import type { CallMessage, FromWorker, ToWorker, WorkerTask } from './worker-messages.ts';

/** So that the first of a flood is not answered after the last. */
const largestGroup = 512;

const port = parentPort;
if (port === null) throw new Error('this file is the body of a worker');
const send = (message: FromWorker): void => port.postMessage(message);

try {
  serve(workerData as WorkerTask); // from StoreWorker
} catch (error) {
  send({ kind: 'failed', fault: faultOf(error) });
}

function serve({ file, steps, maxSizeBytes }: WorkerTask): void {
  const database = openForWriting(file, maxSizeBytes);
  let copy: string | null;
  try {
    copy = upgrade(database, file, steps);
  } catch (error) {
    database.close();
    throw error;
  }
  const calls = new StoreCalls(database);
  const groups = new GroupCommit(database, calls, () => syncLog(file));
  let newest = calls.newestEvent();

  const run = (group: readonly CallMessage[]): void => {
    for (let at = 0; at < group.length; at += largestGroup) {
      const part = group.slice(at, at + largestGroup);
      const beginMs = performance.now();
      const answers = groups.run(part);
      const durationMs = performance.now() - beginMs;
      const count = part.filter(({ name }) => writes.has(name)).length;
      const newestNow = calls.newestEvent();
      send({
        kind: 'answers',
        answers,
        hasEvents: newestNow !== newest,
        commit: count === 0 ? null : { durationMs, writes: count },
      });
      newest = newestNow;
    }
  };

  port?.on('message', (first: ToWorker) => {
    const messages = [...first];
    while (messages.length < largestGroup) {
      // What waits behind the first one joins its group.
      const next = receiveMessageOnPort(port) as { readonly message: ToWorker } | undefined;
      if (next === undefined) break;
      messages.push(...next.message);
    }
    run(messages.filter((message) => 'name' in message));
    if (!messages.some((message) => 'kind' in message)) return;
    database.close(); // merges the log into the file
    port.close();
  });
  send({ kind: 'open', copy });
}

/** The file that SQLite appends its commits to. */
function syncLog(file: string): void {
  const log = openSync(`${file}-wal`, 'r');
  try {
    fdatasyncSync(log);
  } finally {
    closeSync(log);
  }
}
