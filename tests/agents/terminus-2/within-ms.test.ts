import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { letGoWithinMs, withinMs } from '../../../src/agents/terminus-2/within-ms.ts';

describe('work with a bound of its own', () => {
  const pending = (): Promise<void> => new Promise(() => undefined);

  test('rejects when it takes longer', async () => {
    await assert.rejects(withinMs(5, pending()), /not done within 5 ms/);
    await withinMs(10_000, Promise.resolve());
  });

  test('fails nothing when it is letting go, late or in vain', async () => {
    const problems: string[] = [];
    const warn = (problem: string): void => void problems.push(problem);
    await letGoWithinMs(5, pending(), warn);
    await letGoWithinMs(10_000, Promise.reject(new Error('gone')), warn);
    await letGoWithinMs(10_000, Promise.resolve(), warn);
    assert.deepEqual(problems, ['not done within 5 ms', 'gone']);
  });
});
