import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Interrupts } from '../../src/cli/interrupts.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

function recordingTerminal(written: string[]): Terminal {
  return {
    out: (text) => void written.push(text),
    handOver: async (text) => void written.push(text),
    err: (text) => void written.push(text),
    isInteractive: true,
    columns: 80,
    ask: () => Promise.resolve(null),
  };
}

test('an interruption is told by whoever draws on the terminal, else by the terminal', () => {
  for (const isDrawn of [true, false]) {
    const written: string[] = [];
    const told: string[] = [];
    using interrupts = new Interrupts(recordingTerminal(written));
    if (isDrawn) interrupts.announceBy((text) => told.push(text));
    process.emit('SIGINT');
    assert.equal(interrupts.signal.aborted, true);
    assert.deepEqual(told, isDrawn ? ['cancelling; once more to end at once'] : []);
    assert.deepEqual(written, isDrawn ? [] : ['\ncancelling; once more to end at once\n']);
  }
});
