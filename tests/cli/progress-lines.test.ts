import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrialSummary } from '../../src/app/run-job.ts';
import { ProgressLines } from '../../src/cli/progress-lines.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

function failed(trialName: string, remedy: string | null): TrialSummary {
  return {
    trialName,
    taskName: 'a-task',
    source: null,
    agentName: 'terminus-2',
    modelName: 'm',
    rewards: null,
    failure: {
      exceptionType: 'ValueError',
      code: 'CONFIG_INVALID',
      category: 'input',
      phase: 'config',
      message: 'no such option',
      field: 'agent.kwargs.x',
      remedy,
    },
    tokens: { input: null, cache: null, output: null, costUsd: null },
    turns: null,
    lacksTokenIds: false,
    phaseTimes: {},
    startedAt: null,
  };
}

test('a remedy is printed with the first trial that needs it, the problem with every one', () => {
  const lines: string[] = [];
  const terminal: Pick<Terminal, 'err'> = { err: (text) => lines.push(text.trimEnd()) };
  const display = new ProgressLines(terminal as Terminal);
  for (const summary of [failed('a', 'Do x.'), failed('b', 'Do x.'), failed('c', 'Do y.')])
    display.accept({ type: 'trial:settled', trialName: summary.trialName, summary } as never);
  const problem = 'CONFIG_INVALID [agent.kwargs.x]: no such option';
  assert.deepEqual(lines, [
    `1/0 a: ${problem} — Do x.`,
    `2/0 b: ${problem}`,
    `3/0 c: ${problem} — Do y.`,
  ]);
});
