/**
 * A process that opens a run and journals what its standard input says: `intend NAME`, `created NAME`, `gone NAME`, `close`.
 * Each command is answered with `ok` once it is durable.
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/core/clock.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { FileSandboxJournalStore } from '../../../src/store/file/file-sandbox-journal.ts';

const [stateDir, runId] = process.argv.slice(2);
const store = await FileSandboxJournalStore.open(stateDir!, new FileLocks(systemClock));
const journal = await store.open(runId!);
console.log(store.storeId);
for await (const line of createInterface({ input: process.stdin })) {
  const [verb, name = ''] = line.split(' ');
  if (verb === 'intend')
    await journal.intend({
      name,
      provider: 'fake',
      trial: 't',
      intendedAt: '2026-01-01T00:00:00Z',
    });
  else if (verb === 'created') await journal.created(name);
  else if (verb === 'gone') await journal.gone(name);
  else await journal.close();
  console.log('ok');
}
