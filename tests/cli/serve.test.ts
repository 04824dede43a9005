/** `slipway serve` as its users start it: the ready line, signals, refusals; and `slipway config show`. */
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { nullRollout } from '../app/serve-fixture.ts';
import { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { slipwayInProcess, type Ended } from '../support/in-process-cli.ts';
import { startSlipway } from '../support/slipway-cli.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-serve-cli-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function until(what: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await what())) {
    assert.ok(Date.now() < end, 'it did not come to that within 30 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const slipway = (
  argv: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Ended> =>
  slipwayInProcess(argv, {
    cwd: root,
    variables: { SLIPWAY_STATE_DIR: root, HOME: root, ...variables },
  });

const oldKey = 'the-old-key-of-the-operator';
const newKey = 'the-new-key-of-the-operator';

describe('slipway serve', { timeout: 120_000 }, () => {
  it('is ready with one line, obeys every signal, and is alone in its folder', async () => {
    const keys = path.join(root, 'keys');
    await writeFile(keys, `${oldKey}\n`);
    await writeFile(
      path.join(root, 'slipway.toml'),
      '[keys]\ncontrol = "file:keys"\n[backend]\nkind = "null"\n[shutdown]\ndrain_sec = 3600\n',
    );
    await using server = await startServeProcess([], { stateDir: root });
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(server.dataUrl, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(server.recovered, 0);
    const statusWith = async (key: string): Promise<number> => {
      const headers = { authorization: `Bearer ${key}` };
      return (await fetch(`${server.url}/api/v1/admission`, { headers })).status;
    };
    assert.deepEqual([await statusWith(oldKey), await statusWith(newKey)], [200, 401]);

    const second = await slipway(['serve', '--port', '0']);
    assert.equal(second.exitCode, 1);
    assert.match(second.stderr, new RegExp(`^STORE_LOCKED: .*${String(server.child.pid)}`));

    const log = path.join(root, 'server', 'logs', 'server.ndjson');
    await rename(log, `${log}.kept`);
    await writeFile(keys, `${newKey}\n`);
    server.child.kill('SIGHUP');
    await until(async () => (await statusWith(newKey)) === 200);
    assert.equal(await statusWith(oldKey), 401);
    await until(() =>
      stat(log).then(
        () => true,
        () => false,
      ),
    );

    await using controller = new RolloutController({ serverUrl: server.url, serverKey: newKey });
    await controller.start();
    const running = controller.run(nullRollout('long', { duration_ms: 80_000_000 }));
    await until(async () => {
      const argv = ['rollouts', 'ls', '--url', server.url];
      const { stdout } = await slipway(argv, { SLIPWAY_KEY: newKey });
      return /^long +default +running/m.test(stdout);
    });
    server.child.kill('SIGTERM');
    await until(async () => server.errors().includes('once more'));
    const hasExited = (): boolean => server.child.exitCode !== null;
    assert.ok(!hasExited(), 'running rollouts may finish');
    server.child.kill('SIGINT');
    assert.equal((await running).status, 'failure');
    await until(() => Promise.resolve(hasExited()));
    assert.equal(server.child.exitCode, 0, server.errors());
  });

  it('says what is wrong and starts nothing, and prints its ready line for people', async () => {
    const data = path.join(root, 'refused');
    const rows: readonly [code: number, pattern: RegExp, argv: string[]][] = [
      [
        2,
        /^LISTEN_REFUSED \[listen\.host\]: .* — Set a control key/,
        ['--host', '0.0.0.0', '--config', 'none.json'],
      ],
      [2, /^BACKEND_UNKNOWN \[backend\.kind\]: .*Use one of: /, ['--backend', 'nil']],
      [
        2,
        /^CONFIG_INVALID \[flag --max-concurrent\]: expected a whole number/,
        ['--max-concurrent', 'many'],
      ],
    ];
    await writeFile(path.join(root, 'none.json'), '{}');
    for (const [code, pattern, argv] of rows) {
      const given = ['serve', '--port', '0', '--data-dir', data, ...argv];
      const { exitCode, stdout, stderr } = await slipway(given);
      assert.deepEqual([exitCode, stdout], [code, ''], stderr);
      assert.match(stderr, pattern);
    }
    const argv = ['serve', '--port', '0', '--store', 'memory', '--config', 'none.json'];
    const run = startSlipway([...argv, '--backend', 'null', '--data-dir', data], { stateDir: root, cwd: root }); // prettier-ignore
    let text = '';
    run.child.stdout!.on('data', (chunk: string) => (text += chunk));
    await until(async () => text.includes('\n') || run.child.exitCode !== null);
    assert.match(
      text,
      /^slipway serve: http:\/\/127\.0\.0\.1:\d+ \(model calls at http:\/\/127\.0\.0\.1:\d+\), backend null, data in \S+\n$/,
    );
    run.child.kill('SIGTERM');
    assert.equal((await run.ended).exitCode, 0);
  });

  it('config show prints every value with its origin, and no secret', async () => {
    const variables = { SLIPWAY_LOG_LEVEL: 'debug', KEY: oldKey };
    const flags = ['--max-concurrent', '3', '--config', 'none.json', '--control-key', 'env:KEY'];
    const options = ['--backend-native-agent-options', '{"llm_kwargs":{"token":"tell-nobody"}}'];
    await writeFile(path.join(root, 'none.json'), '{"listen": {"port": 9000}}');
    const shown = await slipway(['config', 'show', ...flags, ...options], variables);
    assert.equal(shown.exitCode, 0, shown.stderr);
    for (const line of [
      /^admission\.max_concurrent +3 +flag --max-concurrent$/m,
      /^admission\.max_queue_depth +3 +default$/m,
      /^log\.level +debug +variable SLIPWAY_LOG_LEVEL$/m,
      /^listen\.port +9000 +file \S+none\.json$/m,
      /^keys\.control +\["env:KEY"\] +flag --control-key$/m,
    ])
      assert.match(shown.stdout, line);
    const json = await slipway(['config', 'show', '--json', ...flags, ...options], variables);
    const { settings } = JSON.parse(json.stdout) as { settings: { key: string; value: unknown }[] };
    assert.deepEqual(settings.find(({ key }) => key === 'backend.native.agent_options')?.value, {
      llm_kwargs: { token: '***' },
    });
    for (const secret of [oldKey, 'tell-nobody'])
      assert.ok(!`${shown.stdout}${json.stdout}`.includes(secret));
  });
});
