/**
 * The thread that owns the file of the store. Whatever arrives while a group is being written forms the next one, so the number of syncs follows the speed of
 * the disk and not the number of callers; the server's event loop never waits for either.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { GroupCommit } from './group-commit.ts';
import { upgrade } from './migrate.ts';
import { openForWriting } from './open-database.ts';
import { StoreCalls, writes } from './store-calls.ts';
import { faultOf } from './store-fault.ts';
import type { CallMessage, FromWorker, ToWorker, WorkerTask } from './worker-messages.ts';

/** How long news that nobody's result depends on may wait for somebody else's sync. */
const lazyMs = 100;
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
  const groups = new GroupCommit(database, calls);
  let newest = calls.newestEvent();
  let lazy: CallMessage[] = [];
  let timer: NodeJS.Timeout | null = null;

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
  const runLazy = (): void => {
    timer = null;
    const group = lazy;
    lazy = [];
    run(group);
  };
  const take = (messages: readonly ToWorker[]): void => {
    const arrived = messages.filter((message) => 'name' in message);
    const isClosing = messages.some((message) => 'kind' in message);
    const isUrgent = isClosing || arrived.some((call) => !call.isLazy && writes.has(call.name));
    if (isUrgent) {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      const group = [...lazy, ...arrived];
      lazy = [];
      run(group);
    } else {
      lazy.push(...arrived.filter((call) => call.isLazy));
      run(arrived.filter((call) => !call.isLazy));
      if (lazy.length > 0) timer ??= setTimeout(runLazy, lazyMs);
    }
    if (!isClosing) return;
    database.close(); // merges the log into the file
    port?.close();
  };

  port?.on('message', (first: ToWorker) => {
    const messages = [first];
    while (messages.length < largestGroup) {
      // What waits behind the first one joins its group.
      const next = receiveMessageOnPort(port) as { readonly message: ToWorker } | undefined;
      if (next === undefined) break;
      messages.push(next.message);
    }
    take(messages);
  });
  send({ kind: 'open', copy });
}
