import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EvalItem } from '../../src/app/run-eval.ts';
import { EvalDisplay } from '../../src/cli/eval-display.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

function recordingTerminal(written: string[]): Terminal {
  return {
    out: (text) => void written.push(text),
    handOver: async (text) => void written.push(text),
    err: (text) => void written.push(text),
    isInteractive: true,
    columns: 120,
    ask: () => Promise.resolve(null),
  };
}

type End = Pick<NonNullable<EvalItem['ended']>, 'status' | 'reward' | 'error_type'>;

function itemOf(rowIndex: number, end: End | null, state: EvalItem['state'] = 'ended'): EvalItem {
  const at = { row_index: rowIndex, run_index: 0, rollout_id: `r${rowIndex}`, at: '' };
  const rest = { err_message: null, cause: null, duration_ms: 1500 };
  return {
    ...{ rowIndex, runIndex: 0, state: end === null ? state : 'ended', rolloutId: at.rollout_id },
    ended: end === null ? null : { type: 'item:ended', ...at, ...end, ...rest },
    ...{ kept: null, isResumed: false },
  };
}

const success = { status: 'success', reward: 0.5, error_type: null } as const;
const failure = { status: 'failed', reward: null, error_type: 'timeout' } as const;
const items = (): EvalItem[] => [
  itemOf(0, success),
  itemOf(1, null, 'running'),
  itemOf(2, null, 'running'),
  itemOf(3, null, 'pending'),
];

describe('what is seen of an evaluation', () => {
  it('on a terminal is one line with everything that counts, below what stays', () => {
    const written: string[] = [];
    const all = items();
    const display = new EvalDisplay(recordingTerminal(written), {
      isDrawn: true,
      listsRuns: false,
    });
    try {
      display.begin(all);
      display.note('a note');
      const line = (): string => written.join('').split('\n').at(-2) ?? '';
      assert.match(line(), /░ 1\/4 {2}2 running {2}mean reward 0\.500 {2}\d/);
      assert.doesNotMatch(line(), /left|failed/, 'what ended before says nothing about the pace');
      for (const [at, end] of [failure, success].entries()) {
        all[at + 1] = Object.assign(all[at + 1]!, itemOf(at + 1, end));
        display.ended(all[at + 1]!);
      }
      written.length = 0;
      display.note('another');
      assert.match(
        line(),
        /3\/4 {2}0 running {2}1 failed {2}mean reward 0\.500 {2}.*about .* left/,
      );
      assert.equal(written.join('').includes('row 1'), false);
    } finally {
      display.close();
    }
    written.length = 0;
    display.note('after it');
    assert.deepEqual(written, ['after it\n']);
  });

  it('elsewhere is a line for every run, and nothing is redrawn', () => {
    const written: string[] = [];
    const all = items();
    const display = new EvalDisplay(recordingTerminal(written), {
      isDrawn: false,
      listsRuns: true,
    });
    display.begin(all);
    display.ended(itemOf(1, failure));
    display.ended(itemOf(2, success));
    display.close();
    assert.deepEqual(written, [
      '[2/4] row 1 run 0: failed: timeout, 1.5 s\n',
      '[3/4] row 2 run 0: reward 0.5, 1.5 s\n',
    ]);
  });

  it('is nothing where everything had ended before', () => {
    const written: string[] = [];
    const display = new EvalDisplay(recordingTerminal(written), {
      isDrawn: true,
      listsRuns: false,
    });
    display.begin([itemOf(0, success)]);
    display.close();
    assert.deepEqual(written, []);
  });
});
