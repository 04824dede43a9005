import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { FileLocks } from '../../src/store/file/file-lock.ts';
import { FileSandboxJournalStore } from '../../src/store/file/file-sandbox-journal.ts';
import { MemorySandboxJournalStore } from '../../src/store/memory/memory-sandbox-journal.ts';
import { journalSuite } from './journal-suite.ts';

journalSuite({
  name: 'memory',
  open: async () => ({
    store: new MemorySandboxJournalStore(),
    [Symbol.asyncDispose]: async () => undefined,
  }),
});

journalSuite({
  name: 'file',
  open: async () => {
    const folder = await mkdtempDisposable(join(tmpdir(), 'slipway-journal-'));
    const store = await FileSandboxJournalStore.open(folder.path, new FileLocks(systemClock));
    return { store, [Symbol.asyncDispose]: () => folder.remove() };
  },
});
