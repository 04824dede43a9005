import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProgressDisplay } from '../../src/cli/progress-display.ts';
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

test('while a question is open nothing is drawn over it', async () => {
  const written: string[] = [];
  const display = new ProgressDisplay(recordingTerminal(written), { isBarOnly: false });
  try {
    display.note('a warning');
    assert.match(written.join(''), /preparing/);
    await display.standAside(() => {
      written.length = 0;
      display.note('another');
      return Promise.resolve();
    });
    assert.deepEqual(written, ['another\n']);
    display.note('a third');
    assert.match(written.join(''), /preparing/);
  } finally {
    display.close();
  }
});

test('the time that is left is reckoned from the trials of this run alone', () => {
  const written: string[] = [];
  const display = new ProgressDisplay(recordingTerminal(written), { isBarOnly: true });
  try {
    display.accept({ type: 'job:started', totalTrials: 100, finishedBefore: 90 });
    display.note('resumed');
    assert.match(written.join(''), / 90\/100 /);
    assert.doesNotMatch(written.join(''), /left/);
  } finally {
    display.close();
  }
});
