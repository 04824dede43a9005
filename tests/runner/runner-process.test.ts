import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { z } from 'zod';
import { RolloutError } from '../../src/core/errors.ts';
import { RunnerEnded } from '../../src/runner/runner-ended.ts';
import type { RunnerAnswerer, RunnerProcess } from '../../src/runner/runner-process.ts';
import { runnerReportSchema } from '../../src/wire/runner/runner-messages.ts';
import { until } from '../support/until.ts';
import { askingInterpreter, startAsking } from './asking-role.ts';

const report = runnerReportSchema(z.unknown());
let dir = '';
let python = '';
let runner: RunnerProcess;

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'slipway-runner-'));
  python = await askingInterpreter(dir);
  runner = startAsking(python, { settings: { own: 1 } });
});
after(async () => {
  await runner.terminate();
  await rm(dir, { recursive: true, force: true });
});

async function asked(order: object, answer?: RunnerAnswerer): Promise<unknown> {
  const ended = await runner.carryOut({
    order,
    report,
    ...(answer === undefined ? {} : { answer }),
  });
  return ended.failure ?? ended.value;
}

describe('a runner', () => {
  it('says which Python it is, and what its role says of itself', async () => {
    const ready = await runner.ready;
    assert.match(ready.python, /^3\.\d+/);
    assert.deepEqual(ready.details, { settings: { own: 1 } });
  });

  it('asks the server for several things at once, and hears each answer where it was asked for', async () => {
    const waiting: (() => void)[] = [];
    const answer: RunnerAnswerer = async (method, params) => {
      // The first one asked is answered last.
      await new Promise<void>((resolve) => {
        waiting.unshift(resolve);
        if (waiting.length === 3) for (const go of waiting) go();
      });
      assert.equal(method, 'add');
      return (params as { readonly to: number }).to + 1;
    };
    assert.deepEqual(await asked({ act: 'ask', numbers: [1, 2, 3] }, answer), [2, 3, 4]);
  });

  it('hears why it is refused, with the code', async () => {
    const refuse = (): Promise<never> =>
      Promise.reject(new RolloutError('EXEC_FAILED', 'there is no shell', { phase: 'agent' }));
    assert.deepEqual(await asked({ act: 'refused' }, refuse), ['EXEC_FAILED', 'there is no shell']);
    assert.deepEqual(await asked({ act: 'refused' }), ['Error', 'nobody answers refuse now']);
  });

  it('tells when it no longer waits for an answer', async () => {
    let isWithdrawn = false;
    const wait: RunnerAnswerer = async (_method, _params, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      isWithdrawn = true;
    };
    assert.equal(await asked({ act: 'withdraw' }, wait), 'withdrawn');
    await until('the request is withdrawn', () => isWithdrawn);
  });

  it('tells its end although what was printed fills the pipe, which its code made one that does not wait', async () => {
    for (let time = 0; time < 5; time += 1) assert.equal(await asked({ act: 'fills' }), 'filled');
  });

  it('that says what no runner says is ended, and so is its order', async () => {
    const faulty = startAsking(python);
    const order = faulty.carryOut({ order: { act: 'garbage' }, report });
    await assert.rejects(order, { kind: 'protocol', message: /cannot be read/ });
    assert.ok(faulty.isGone);
  });

  it('whose report is not that of its role is ended', async () => {
    const faulty = startAsking(python);
    const order = faulty.carryOut({ order: { act: 'none' }, report: z.string() });
    await assert.rejects(order, { kind: 'protocol', message: /report/ });
    await faulty.terminate();
  });

  it('that is not ready in time is ended', async () => {
    const slow = startAsking(python, { settings: { sleep: true }, startMs: 100 });
    await assert.rejects(
      slow.ready,
      (error) => error instanceof RunnerEnded && error.kind === 'late',
    );
    assert.ok(slow.isGone);
  });

  it('that ignores the polite signal in a busy loop is killed', async () => {
    const deaf = startAsking(python);
    let said = '';
    deaf.onPrint = (text) => (said += text);
    const order = deaf.carryOut({ order: { act: 'deaf' }, report });
    await until('it has begun', () => said === 'deaf\n');
    await Promise.all([
      assert.rejects(order, { kind: 'terminated' }),
      deaf.terminate(),
      deaf.terminate(),
    ]);
    assert.ok(!existsSync(`/proc/${deaf.pid}`));
  });

  it('dies with its server, and with it what it started, although its code lets no other thread work', async () => {
    const server = spawn(
      process.execPath,
      [path.join(import.meta.dirname, 'holding-server.ts'), python],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let said = '';
    server.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    await until('the code runs', () => said.endsWith('\n'));
    const pids = said.trim().split(' ');
    assert.equal(pids.filter((pid) => existsSync(`/proc/${pid}`)).length, 2);
    server.kill('SIGKILL');
    await until('the runner and its child are gone', () =>
      pids.every((pid) => !existsSync(`/proc/${pid}`)),
    );
  });
});
