import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import type {
  AgentPluginModule,
  AgentRunInput,
  AgentRunResult,
} from '../../../src/collector/agent-plugin.ts';
import type { AgentSessions } from '../../../src/collector/plugins/agent-sessions.ts';
import { loadRun, readPluginReference } from '../../../src/collector/plugins/plugin-reference.ts';
import { PluginRollouts } from '../../../src/collector/plugins/plugin-rollouts.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { rows } from '../scripted-rollouts.ts';

const request = {
  ...{ rolloutId: 'r', groupIndex: 0, memberIndex: 1, index: 1, attempt: 1, weightVersion: null },
  ...{ seed: 43, resume: [], row: { ...rows(1)[0]!, epoch: 0 } },
};
const sample = {
  ...{ tokens: [1, 2], promptLength: 1, lossMask: [1] as const, logprobs: [-1], weight: 1 },
  ...{ isTruncated: false, spans: [] },
};

function sessions(
  log: string[],
  collected = { samples: [sample], wasAborted: false },
): AgentSessions {
  return {
    open: () => {
      log.push('open');
      return Promise.resolve({
        baseUrl: 'http://s/sessions/1/v1',
        name: { serverId: 's:1', instanceId: 'i' },
        collect: () => {
          log.push('collect');
          return Promise.resolve(collected);
        },
        close: () => {
          log.push('close');
          return Promise.resolve();
        },
      });
    },
  };
}

function rollouts(run: AgentPluginModule['run'], own: AgentSessions | null = null): PluginRollouts {
  return new PluginRollouts({
    ...{ run, sessions: own, baseUrl: 'http://e/v1', sampling: { temperature: 1 }, options: {} },
    logger: silentLogger,
  });
}

describe('rollouts by a plugin', () => {
  const answers: readonly (readonly [
    what: string,
    answer: AgentRunResult | null | Error,
    end: readonly [
      status: string,
      fault: string | null,
      reward: number | null,
      cause: string | null,
    ],
  ])[] = [
    ['a reward', { reward: 0.5, exit_status: 'Submitted' }, ['completed', null, 0.5, 'Submitted']],
    ['no reward', {}, ['completed', null, null, null]],
    ['a reward that is no number', { reward: Number.NaN }, ['completed', null, null, null]],
    ['null', null, ['failed', 'infrastructure', null, 'no-result']],
    ['an error', new Error('down'), ['failed', 'infrastructure', null, 'no-result']],
    [
      'a loss that it names itself',
      { reward: 0, exit_status: 'Error: x', fault: 'infrastructure' },
      ['failed', 'infrastructure', null, 'Error: x'],
    ],
    [
      'a trial that was ended',
      { reward: 0, exit_status: 'ended', fault: 'cancelled' },
      ['aborted', 'cancelled', null, 'ended'],
    ],
    ['a wrong row', { fault: 'task' }, ['failed', 'task', null, null]],
    ['the agent’s own failure', { reward: 0, fault: 'agent' }, ['completed', 'agent', 0, null]],
  ];
  for (const [what, answer, expected] of answers)
    it(`end as ${expected[0]} for ${what}`, async () => {
      const run = (): Promise<AgentRunResult | null> =>
        answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      const { status, fault, reward, cause } = await rollouts(run).run(request, never);
      assert.deepEqual([status, fault, reward, cause], expected);
    });

  it('bring the samples of their session, which is closed whatever happens', async () => {
    for (const answer of [{ reward: 1 }, null]) {
      const log: string[] = [];
      let seen: AgentRunInput | null = null;
      const run = (input: AgentRunInput): Promise<AgentRunResult | null> => {
        seen = input;
        log.push('run');
        return Promise.resolve(answer);
      };
      const end = await rollouts(run, sessions(log)).run(request, never);
      assert.deepEqual(log, ['open', 'run', 'collect', 'close']);
      assert.deepEqual(end.samples, [sample]);
      assert.equal(seen!.baseUrl, 'http://s/sessions/1/v1');
      assert.deepEqual(seen!.session, { serverId: 's:1', instanceId: 'i' });
      assert.deepEqual(seen!.sampling, { temperature: 1, seed: 43 });
    }
  });

  it('are lost when the agent made no call, and cut off when the engine was told so', async () => {
    const run = (): Promise<AgentRunResult> => Promise.resolve({ reward: 1 });
    const without = await rollouts(run, sessions([], { samples: [], wasAborted: false })).run(
      request,
      never,
    );
    assert.deepEqual([without.status, without.cause, without.reward], ['failed', 'no-calls', null]);
    const cut = await rollouts(run, sessions([], { samples: [sample], wasAborted: true })).run(
      request,
      never,
    );
    assert.deepEqual([cut.status, cut.reward], ['aborted', null]);
  });

  it('do not wait for a plugin that ignores its signal', async () => {
    const stop = new AbortController();
    const log: string[] = [];
    const run = (): Promise<never> => new Promise(() => undefined);
    const running = rollouts(run, sessions(log)).run(request, stop.signal);
    stop.abort(new Error('enough'));
    await assert.rejects(running, /enough/);
    assert.equal(log.at(-1), 'close');
  });
});

describe('a plugin by name', () => {
  const modules = path.join(import.meta.dirname, 'modules');

  it('is a function of a file', async () => {
    const run = await loadRun(readPluginReference(path.join(modules, 'with-abort.js:run')));
    assert.equal(typeof run, 'function');
  });

  for (const [title, name, message] of [
    ['a module that cannot be loaded', 'broken.js:run', /this module is broken/],
    ['a name that it does not export', 'with-abort.js:go', /exports no go/],
    ['no name', 'with-abort.js', /names no function/],
  ] as const)
    it(`is refused for ${title}`, async () => {
      await assert.rejects(
        async () => await loadRun(readPluginReference(path.join(modules, name))),
        (error: { code?: string; message?: string }) =>
          error.code === 'PLUGIN_INVALID' && message.test(error.message ?? ''),
      );
    });
});
