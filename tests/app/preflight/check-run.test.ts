import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CheckRun, type Check } from '../../../src/app/preflight/check-run.ts';
import { passed } from '../../../src/app/preflight/verdict.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';

function makeRun(signal: AbortSignal = never): { run: CheckRun; told: string[] } {
  const told: string[] = [];
  const run = new CheckRun({
    ...{ clock: systemClock, signal },
    mask: (text) => text.replaceAll('secret', '***'),
    observer: {
      began: (name) => void told.push(`began ${name}`),
      ended({ name, status }) {
        told.push(`${status} ${name}`);
        throw new Error('who looks on breaks nothing');
      },
    },
  });
  return { run, told };
}

const check = (fields: Partial<Check>): Check => ({
  name: 'keys',
  limitMs: 60_000,
  work: () => Promise.resolve(passed('fine')),
  ...fields,
});

describe('a run of checks', () => {
  it('tells each as it begins and ends, counts them, and sorts them', async () => {
    const { run, told } = makeRun();
    const wrong = new RolloutError('DISK_FULL', 'the secret disk', { phase: 'server', field: 'f' });
    await run.check(check({ name: 'store', work: () => Promise.reject(wrong) }));
    await run.check(check({}));
    await run.check(check({ name: 'data-folder', work: () => Promise.reject(new Error('odd')) }));
    run.skip('model', 'not asked for');
    assert.deepEqual(told, [
      ...['began store', 'failed store', 'began keys', 'ok keys'],
      ...['began data-folder', 'failed data-folder', 'skipped model'],
    ]);
    const { ok, counts, checks } = run.report();
    assert.deepEqual([ok, counts], [false, { ok: 1, warning: 0, failed: 2, skipped: 1 }]);
    assert.deepEqual(
      checks.map(({ name, code, summary }) => [name, code, summary]),
      [
        ['data-folder', 'INTERNAL', 'odd'],
        ['store', 'DISK_FULL', 'the *** disk'],
        ['keys', null, 'fine'],
        ['model', null, 'not asked for'],
      ],
    );
  });

  it('goes on past a check that heeds no limit, and waits for it at the end', async () => {
    const { run } = makeRun();
    const stuck = Promise.withResolvers<ReturnType<typeof passed>>();
    await run.check(check({ limitMs: 1, work: () => stuck.promise }));
    await run.check(check({ name: 'store' }));
    let hasSettled = false;
    const settled = run.settle().then(() => (hasSettled = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(hasSettled, false);
    stuck.resolve(passed('at last'));
    await settled;
    const statuses = run.report().checks.map(({ name, status, code }) => [name, status, code]);
    assert.deepEqual(statuses, [
      ['store', 'ok', null],
      ['keys', 'failed', 'PREFLIGHT_TIMEOUT'],
    ]);
  });

  it('ends with its signal, and adds nothing any more', async () => {
    const stop = new AbortController();
    const { run } = makeRun(stop.signal);
    const stuck = run.check(check({ work: () => new Promise(() => undefined) }));
    stop.abort(new Error('enough'));
    await assert.rejects(stuck, /enough/);
    await assert.rejects(run.check(check({})), /enough/);
    assert.deepEqual(run.report().checks, []);
  });
});
