import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AgentEnvironment, AgentOptions } from '../../../src/agents/agent.ts';
import { Terminus2Agent } from '../../../src/agents/terminus-2/terminus-2-agent.ts';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { ExecResult } from '../../../src/environments/environment.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { JumpingClock } from '../../fakes/jumping-clock.ts';
import { runTrial } from '../../trial/trial-bench.ts';
import { ScriptedEngine } from './scripted-engine.ts';

describe('terminus-2 as an agent', () => {
  let logsDir = '';
  before(() => (logsDir = mkdtempSync(path.join(os.tmpdir(), 'slipway-terminus-'))));
  after(() => rmSync(logsDir, { recursive: true }));

  const engineOf = (): ScriptedEngine => new ScriptedEngine(() => '');
  const agentOf = (engine: ScriptedEngine, given: Partial<AgentOptions> = {}): Terminus2Agent =>
    new Terminus2Agent({
      name: 'terminus-2',
      modelName: 'openai/m',
      kwargs: { api_base: 'http://a/v1', llm_kwargs: { timeout: 3 } },
      mcpServers: [],
      skillsDir: null,
      logsDir,
      solution: { findScript: () => Promise.resolve(null), env: () => ({}) },
      env: {},
      hostVariables: { OPENAI_API_KEY: 'k' },
      secrets: [],
      openEngine: engine.open,
      clock: new JumpingClock(),
      logger: silentLogger,
      ...given,
    });

  const refuse = (): never => {
    throw new Error('not asked for here');
  };
  const sandbox = (exec: () => Promise<ExecResult>): AgentEnvironment => ({
    user: null,
    variables: {},
    hostEndpointUrl: null,
    exec,
    openControl: refuse,
    openProcess: refuse,
    uploadFile: refuse,
    uploadDir: refuse,
    downloadFile: refuse,
    downloadDir: refuse,
    withEnv: refuse,
  });
  const runOn = (agent: Terminus2Agent, environment: AgentEnvironment, signal = never) =>
    agent.run(
      { instruction: 'x', environment, step: null, deadline: null, record: () => undefined },
      signal,
    );

  test('opens its engine as configured, and keeps none open after looking', async () => {
    const engine = engineOf();
    await agentOf(engine).preflight();
    assert.deepEqual(engine.opened, [
      { kind: 'chat', baseUrl: 'http://a/v1', apiKey: 'k', stallMs: 3000 },
    ]);
    assert.equal(engine.closed, 1);
    assert.equal(engine.calls.length, 0);
  });

  test('closes its engine when the terminal cannot be opened, and leaves no document', async () => {
    const engine = engineOf();
    const failed = { exitCode: 1, stdout: '', stderr: 'no server', isTruncated: false };
    await assert.rejects(
      runOn(
        agentOf(engine),
        sandbox(() => Promise.resolve(failed)),
      ),
      (error) => isRolloutError(error, 'AGENT_SETUP_FAILED'),
    );
    assert.equal(engine.closed, 1);
    assert.deepEqual(readdirSync(logsDir), []);
  });

  test('destroys its engine when it was stopped', async () => {
    const engine = engineOf();
    const controller = new AbortController();
    const reason = new RolloutError('AGENT_TIMEOUT', 'late', { phase: 'agent' });
    const environment = sandbox(() => {
      controller.abort(reason);
      return Promise.reject(reason);
    });
    await assert.rejects(runOn(agentOf(engine), environment, controller.signal), reason);
    assert.deepEqual(engine.destroyed, [reason]);
    assert.equal(engine.closed, 0);
  });

  test('says what it writes on the host, and which variables the sandbox never sees', () => {
    const { hostFiles, hostOnlyVariables, version } = agentOf(engineOf());
    assert.equal(version, '2.0.0');
    assert.deepEqual(hostOnlyVariables, ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_API_BASE']);
    assert.deepEqual(hostFiles, [
      'trajectory.json',
      'trajectory.*.json',
      'trajectory*.ndjson',
      'recording.cast',
    ]);
  });

  test('without an address fails before a sandbox is made, naming the places', async () => {
    const provider = new FakeProvider();
    const config = { agent: { name: 'terminus-2', model_name: 'openai/m' } };
    const { slipway } = await runTrial({ provider, config });
    assert.equal(slipway?.failure?.code, 'MODEL_UNSPECIFIED');
    assert.match(slipway.failure.remedy ?? '', /api_base=URL.*OPENAI_BASE_URL.*agent\.env/);
    assert.equal(slipway.phase_times.boot_ms, undefined);
  });
});
