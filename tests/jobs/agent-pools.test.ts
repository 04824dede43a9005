import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { AgentPools } from '../../src/jobs/agent-pools.ts';
import { agentConfigSchema, type AgentConfig } from '../../src/wire/harbor/run-config.ts';

const agent = (fields: Record<string, unknown>): AgentConfig => agentConfigSchema.parse(fields);

test('an agent without n_concurrent has no pool', () => {
  assert.equal(
    new AgentPools([agent({ name: 'nop' })]).admission(agent({ name: 'nop' })),
    undefined,
  );
});

test('a pool of one lets the second agent in only after the first gave its place back', async () => {
  const one = agent({ name: 'nop', n_concurrent: 1 });
  const admit = new AgentPools([one]).admission(one);
  assert.ok(admit);
  const release = await admit(never);
  let isIn = false;
  const second = admit(never).then((give) => {
    isIn = true;
    return give;
  });
  await new Promise(setImmediate);
  assert.equal(isIn, false);
  release();
  (await second)();
});

test('a waiter whose signal fires leaves the queue with the reason', async () => {
  const one = agent({ name: 'nop', n_concurrent: 1 });
  const admit = new AgentPools([one]).admission(one);
  assert.ok(admit);
  const release = await admit(never);
  const abort = new AbortController();
  const waiting = admit(abort.signal);
  abort.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  release();
  (await admit(never))();
});

test('agents of one concurrency group share a pool', async () => {
  const a = agent({ name: 'nop', n_concurrent: 1, concurrency_group: 'api' });
  const b = agent({ name: 'oracle', n_concurrent: 1, concurrency_group: 'api' });
  const pools = new AgentPools([a, b]);
  const release = await pools.admission(a)?.(never);
  const abort = new AbortController();
  const waiting = pools.admission(b)?.(abort.signal);
  abort.abort(new Error('still full'));
  await assert.rejects(async () => await waiting, /still full/);
  release?.();
});

test('two sizes for one group are refused with the field', () => {
  const a = agent({ name: 'nop', n_concurrent: 1, concurrency_group: 'api' });
  const b = agent({ name: 'oracle', n_concurrent: 2, concurrency_group: 'api' });
  assert.throws(
    () => new AgentPools([a, b]),
    (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === 'agents[1].n_concurrent',
  );
});
