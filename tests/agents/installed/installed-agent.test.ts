/** What an agent with a program of its own refuses before anything is installed; whole runs are in `tests/integration/installed-agents.test.ts`. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AgentOptions, AgentPrograms } from '../../../src/agents/agent.ts';
import { claudeCli } from '../../../src/agents/claude-code/claude-cli.ts';
import { codexCli } from '../../../src/agents/codex/codex-cli.ts';
import { InstalledAgent } from '../../../src/agents/installed/installed-agent.ts';
import { describeAgents, resolveAgent } from '../../../src/agents/registry.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';

const programs: AgentPrograms = { folderOf: ({ name }) => Promise.resolve(`/programs/${name}`) };

function optionsOf(over: Partial<AgentOptions> = {}): AgentOptions {
  return {
    ...{ name: 'x', modelName: 'openai/org/model', mcpServers: [], skillsDir: null, logsDir: '/l' },
    kwargs: { api_base: 'http://127.0.0.1:9/v1' },
    solution: { findScript: () => Promise.resolve(null), env: () => ({}) },
    ...{ env: {}, hostVariables: {}, secrets: [], clock: systemClock, logger: silentLogger },
    openEngine: () => Promise.reject(new Error('not used')),
    programs,
    ...over,
  };
}

const make = (cli: typeof codexCli, over: Partial<AgentOptions> = {}) =>
  new InstalledAgent(cli, optionsOf(over));

describe('an agent with a program of its own', () => {
  const address = { api_base: 'http://127.0.0.1:9/v1' };
  const wrong: readonly (readonly [string, Partial<AgentOptions>, RegExp])[] = [
    ['an unknown option', { kwargs: { ...address, speed: 9 } }, /"speed"/],
    ['a version that is a range', { kwargs: { ...address, version: '^1.0.0' } }, /exact version/],
    [
      'an option of the wrong kind',
      { kwargs: { ...address, stream_max_retries: -1 } },
      /stream_max_retries: must not be negative/,
    ],
    [
      'a variable that would name another account',
      { env: { CODEX_API_KEY: 'k', CODEX_HOME: '/h' } },
      /CODEX_API_KEY: .*CODEX_HOME: /,
    ],
  ];
  for (const [what, over, words] of wrong)
    test(`refuses ${what}`, () => {
      assert.throws(() => make(codexCli, over), { code: 'CONFIG_INVALID', message: words });
    });

  test('needs a model, and an address of one', () => {
    assert.throws(() => make(codexCli, { modelName: null }), { code: 'MODEL_UNSPECIFIED' });
    assert.throws(() => make(codexCli, { kwargs: {} }), { code: 'MODEL_UNSPECIFIED' });
    assert.doesNotThrow(() => make(codexCli, { kwargs: {}, isInstallOnly: true }));
  });

  test('is not made on a machine whose variables mean another cloud', () => {
    for (const hostVariables of [
      { CLAUDE_CODE_USE_BEDROCK: '1' },
      { AWS_BEARER_TOKEN_BEDROCK: 'x' },
    ])
      assert.throws(() => make(claudeCli, { hostVariables }), {
        code: 'CONFIG_INVALID',
        message: new RegExp(`${Object.keys(hostVariables).join('')} of this process`),
      });
    assert.doesNotThrow(() => make(claudeCli, { hostVariables: { AWS_REGION: 'x' } }));
  });

  test('hides the model’s address and key, and whatever it owns, from its sandbox', () => {
    const { hostOnlyVariables } = make(claudeCli);
    for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY'])
      assert.ok(hostOnlyVariables.includes(name), name);
  });

  test('has a gateway put before the model, and its key hidden; its program is a layer', async () => {
    const asked: unknown[] = [];
    let closed = 0;
    const agent = make(codexCli, {
      kwargs: { ...address, engine_kind: 'vllm' },
      env: { OPENAI_API_KEY: 'sk-upstream' },
      openRoute: (upstream) => {
        asked.push(upstream);
        const close = (): Promise<void> => Promise.resolve(void (closed += 1));
        const route = { baseUrl: 'http://127.0.0.1:77/v1', apiKey: 'route-key' };
        return Promise.resolve({ ...route, calls: () => Promise.resolve([]), close });
      },
    });
    assert.deepEqual(await agent.prepareSite(never), {
      layers: [{ hostDir: '/programs/codex', at: '/opt/slipway/agents/codex' }],
      hostEndpoint: { host: '127.0.0.1', port: 77 },
      secrets: ['route-key'],
    });
    assert.deepEqual(asked, [
      {
        ...{ baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'sk-upstream' },
        ...{ engineKind: 'vllm', isCaptured: true },
      },
    ]);
    await agent.close();
    assert.equal(closed, 1);
  });

  test('takes the address that it is given for a gateway’s where none is put before it', async () => {
    const { hostEndpoint, secrets } = await make(codexCli).prepareSite(never);
    assert.deepEqual([hostEndpoint, secrets], [null, []]);
  });

  test('that is only installed opens no route', async () => {
    const agent = make(codexCli, {
      ...{ kwargs: {}, isInstallOnly: true },
      openRoute: () => Promise.reject(new Error('a route was opened')),
    });
    assert.equal((await agent.prepareSite(never)).layers.length, 1);
  });
});

describe('what is known of agents', () => {
  test('names the version, the dialect and the packages of programs', async () => {
    const codex = (await describeAgents()).find(({ name }) => name === 'codex');
    assert.deepEqual(codex, {
      ...{ name: 'codex', version: '0.171.0', dialect: 'OpenAI Responses', refusal: null },
      packages: ['@openai/codex@0.171.0'],
    });
  });

  test('names those that are refused, and they are refused with the reason', async () => {
    const refused = (await describeAgents()).filter(({ refusal }) => refusal !== null);
    assert.deepEqual(
      refused.map(({ name }) => name),
      ['gemini-cli', 'goose', 'openhands'],
    );
    for (const { name, refusal } of refused)
      await assert.rejects(resolveAgent(name), (error: Error) => {
        assert.ok(error.message.includes(refusal ?? '-'), error.message);
        return true;
      });
  });
});
