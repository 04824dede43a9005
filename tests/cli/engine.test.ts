/** `slipway engine` as its users start it: the ready line, the log, signals, refusals. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RequestLogEntry } from '../../src/engines/server/request-log.ts';
import { startSlipway, type CliRun } from '../support/slipway-cli.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-engine-cli-'));
});
after(() => rm(root, { recursive: true, force: true }));

function start(...flags: readonly string[]): CliRun {
  return startSlipway(['engine', ...flags], {
    stateDir: path.join(root, 'state'),
    cwd: root,
    variables: { ENGINE_KEY: 'sesame' },
  });
}

/** The first line on stdout. */
async function readyLine({ child, ended }: CliRun): Promise<string> {
  let text = '';
  child.stdout!.on('data', (chunk: string) => (text += chunk));
  while (!text.includes('\n'))
    await Promise.race([
      once(child.stdout!, 'data'),
      ended.then(({ stderr }) => assert.fail(`it ended: ${stderr}`)),
    ]);
  return text;
}

describe('slipway engine', { timeout: 120_000 }, () => {
  it('prints one ready line, serves, logs, and ends in good order on SIGTERM', async () => {
    const policy = path.join(root, 'policy.mjs');
    await writeFile(policy, 'export default ({ turn }) => ({ content: `turn ${turn}` });');
    const log = path.join(root, 'log.ndjson');
    const run = start('--policy', policy, '--model', 'toy', '--log', log, '--seed', '4');
    const [, url = ''] = /^slipway engine: toy at (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(await readyLine(run)) ?? []; // prettier-ignore
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], return_token_ids: true }),
    });
    const answer = (await response.json()) as {
      choices: [{ message: { content: string }; token_ids: number[] }];
    };
    assert.equal(answer.choices[0].message.content, 'turn 0');
    const line = JSON.parse(await readFile(log, 'utf8')) as RequestLogEntry;
    assert.deepEqual(line.output_ids, answer.choices[0].token_ids);
    assert.equal(line.model, 'toy');
    run.child.kill('SIGTERM');
    const { exitCode, stdout, stderr } = await run.ended;
    assert.deepEqual([exitCode, stderr], [0, '']);
    assert.equal(stdout.split('\n').length, 2);
  });

  it('takes a key from a variable and every law and script from its flags; --json is a document', async () => {
    const run = start(
      ...['--json', '--api-key-env', 'ENGINE_KEY', '--latency', 'pareto:1,2,3'],
      ...['--token-latency', 'constant:1', '--non-canonical', '0.5', '--policy', 'random-text'],
      ...['--faults', '[{"match": {"nth": 1}, "fault": "overload", "status": 429}]'],
      ...['--kv-tokens', '5000', '--context', '2000', '--max-running', '3', '--dialect', 'vllm'],
    );
    const { url, model } = JSON.parse(await readyLine(run)) as { url: string; model: string };
    assert.equal(model, 'mock');
    const ask = async (authorization: string): Promise<Response> =>
      await fetch(`${url}/v1/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization },
        body: JSON.stringify({ prompt: 'a' }),
      });
    assert.equal((await ask('Bearer wrong')).status, 401);
    assert.equal((await ask('Bearer sesame')).status, 429);
    assert.equal((await ask('Bearer sesame')).status, 200);
    assert.equal((await fetch(`${url}/generate`, { method: 'POST' })).status, 401);
    run.child.kill('SIGINT');
    assert.equal((await run.ended).exitCode, 0);
  });

  it('names every flag that is wrong, and starts nothing', async () => {
    const wrong = {
      '--port': '-1',
      '--non-canonical': '2',
      '--dialect': 'x',
      '--seed': '1.5',
      '--api-key-env': 'NOT_THERE',
      '--latency': 'fast',
      '--token-latency': 'pareto:1',
      '--router-workers': 'http://a:1,b:2',
    };
    const { exitCode, stdout, stderr } = await start(...Object.entries(wrong).flat()).ended;
    assert.deepEqual([exitCode, stdout], [2, '']);
    for (const flag of Object.keys(wrong)) assert.match(stderr, new RegExp(`\\[${flag}\\]`));
  });

  it('refuses what it cannot serve with, and says which flag', async () => {
    const rows: readonly [field: string, ...flags: string[]][] = [
      ['--host', '--host', '0.0.0.0'],
      ['--latency', '--latency', 'fast'],
      ['--policy', '--policy', './nothing.mjs'],
      ['--faults', '--faults', 'nothing.yaml'],
      ['--log', '--log', '/nowhere/log'],
      ['--tokenizer', '--tokenizer', '/nowhere'],
      ['--policy', '--policy', 'echo', '--gguf', 'x.gguf'],
    ];
    const ends = await Promise.all(rows.map(([, ...flags]) => start(...flags).ended));
    for (const [index, { exitCode, stdout, stderr }] of ends.entries()) {
      assert.deepEqual([exitCode, stdout], [2, ''], stderr);
      assert.match(stderr, new RegExp(`^CONFIG_INVALID \\[${rows[index]![0]}\\]: `));
    }
  });
});
