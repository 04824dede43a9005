/** What `slipway preflight` says of tasks: found, valid, built, started, reached from inside, and gone; in real sandboxes. */
import assert from 'node:assert/strict';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { firmer, GatewayProbe } from '../../../src/app/preflight/gateway-probe.ts';
import { passed, skipped, warned } from '../../../src/app/preflight/verdict.ts';
import type { ServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Environment, ExecRequest } from '../../../src/environments/environment.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';
import { ownLeftovers } from '../../support/own-leftovers.ts';
import { PreflightFolder } from '../../support/preflight-run.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';

const bundled = (name: string): string => path.join(repositoryDir, 'tasks', name);
/** Images that other suites made are used again. */
const variables = {
  SLIPWAY_CACHE_DIR:
    process.env['SLIPWAY_CACHE_DIR'] ?? path.join(os.homedir(), '.cache', 'slipway'),
};

async function assertNothingLeft({ root, stateDir }: PreflightFolder): Promise<void> {
  assert.deepEqual(await ownLeftovers(root, { stateDir, withinMs: 10_000 }), []);
}

describe('preflight of tasks', { timeout: 180_000 }, () => {
  it('finds each distinct one once, starts its sandbox, reaches the gateway from inside, and leaves nothing', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write('broken/task.toml', 'version = [\n');
    const plain = { harbor_task: bundled('file-answer') };
    await folder.write(
      'rows.jsonl',
      [{ metadata: plain }, { metadata: JSON.stringify(plain) }, { metadata: null }, { metadata: { harbor_task: './gone' } }] // prettier-ignore
        .map((row) => JSON.stringify(row))
        .join('\n'),
    );
    const { report, exitCode } = await folder.run(
      [
        ...['--only', 'gateway', '--dataset', 'rows.jsonl', '--task', bundled('file-answer')],
        ...['--task', 'broken', '--task', JSON.stringify({ harbor_task: 'no reference' })],
      ],
      { variables },
    );
    assert.equal(exitCode, 1);
    const rows = report.checks.map(({ name, subject, status, code }) => [name, subject && path.basename(subject), status, code]); // prettier-ignore
    const tasks = rows.filter(([name]) => name === 'tasks');
    assert.deepEqual(new Set(tasks.map((row) => JSON.stringify(row))), new Set([
      ['tasks', 'file-answer', 'ok', null],
      ['tasks', 'broken', 'failed', 'TASK_CONFIG_UNREADABLE'],
      ['tasks', '{"harbor_task":"no reference"}', 'failed', 'REFERENCE_INVALID'],
      ['tasks', 'row 2', 'failed', 'REFERENCE_INVALID'],
      ['tasks', 'gone', 'failed', 'TASK_NOT_FOUND'],
    ].map((row) => JSON.stringify(row)))); // prettier-ignore
    assert.equal(tasks.length, 5);
    const sandboxes = rows.filter(([name]) => name === 'sandbox');
    assert.equal(sandboxes.filter(([, , status]) => status === 'skipped').length, 4);
    assert.deepEqual(sandboxes.find(([, subject]) => subject === 'file-answer')?.[2], 'ok');
    const gateway = report.checks.find(({ name }) => name === 'gateway');
    assert.equal(gateway?.status, 'ok', JSON.stringify(gateway));
    await assertNothingLeft(folder);
  });

  it('fails for an image that does not build and for a dataset that cannot be read, and leaves nothing', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write('bad/task.toml', '');
    await folder.write('bad/instruction.md', 'Do it.\n');
    await folder.write('bad/tests/test.sh', 'true\n');
    await folder.write('bad/environment/Dockerfile', 'FROM debian:bookworm-slim\nRUN exit 3\n');
    const harbor = ['--backend', 'harbor', '--backend-harbor-agent', 'mine:Work'];
    const built = await folder.run(
      [...harbor, '--backend-harbor-tasks-dir', 'bad', '--only', 'gateway,workflow'],
      { variables },
    );
    const { code, remedy } = built.one('sandbox');
    assert.equal(code, 'IMAGE_BUILD_FAILED');
    assert.notEqual(remedy, null);
    assert.equal(built.one('gateway').status, 'skipped');
    assert.equal(built.one('workflow').status, 'skipped');
    for (const [name, text] of [['gone.jsonl'], ['bad.jsonl', '{\n']]) {
      if (text !== undefined) await folder.write(name ?? '', text);
      const { one } = await folder.run(['--only', 'sandbox', '--dataset', name ?? '']);
      assert.deepEqual([one('tasks').status, one('tasks').field], ['failed', '--dataset']);
      assert.equal(one('sandbox').status, 'skipped');
    }
    await assertNothingLeft(folder);
  });

  it('looks at the tasks that the configuration names, and at an agent that calls from its sandbox', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write(
      'slipway.toml',
      [
        '[backend.native]',
        'agent_config = { import_path = "mine:Agent", kwargs = {} }',
        'binding = "custom-installed-chat-completions"',
        `prewarm = [${JSON.stringify(bundled('file-answer'))}, "./gone"]`,
      ].join('\n'),
    );
    const { report } = await folder.run(['--only', 'tasks,gateway'], { variables });
    const rows = report.checks.map(({ name, status }) => `${name} ${status}`).sort();
    assert.deepEqual(rows, [
      ...['configuration ok', 'gateway ok', 'sandbox ok', 'sandbox skipped', 'tasks failed'],
      'tasks ok',
    ]);
    await assertNothingLeft(folder);
  });

  it('looks at the template of the backend harbor, with or without tests of its own', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write(
      'template/task.toml',
      '[environment]\ndocker_image = "debian:bookworm-slim"\n',
    );
    const harbor = ['--backend', 'harbor', '--backend-harbor-tasks-dir', 'template'];
    const flags = [...harbor, '--backend-harbor-agent', 'mine:Work', '--only', 'grader,tasks'];
    const { one } = await folder.run([...flags.slice(0, -1), 'grader,workflow'], { variables });
    const { status, code, field, subject } = one('workflow');
    assert.deepEqual(
      [status, code, field, subject],
      ['failed', 'WORKFLOW_INVALID', 'backend.harbor.sandbox_python', one('sandbox').subject],
    );
    assert.deepEqual(
      [one('tasks').status, one('tasks').subject],
      ['ok', path.join(folder.root, 'template')],
    );
    assert.deepEqual(
      [one('grader').status, one('grader').field],
      ['failed', 'backend.harbor.grader'],
    );
    const graded = await folder.run([...flags, '--backend-harbor-grader', 'mine:Grade']);
    assert.equal(graded.one('grader').status, 'ok');
    const byAgent = [...harbor, '--backend-harbor-agent', 'terminus-2', '--only', 'grader'];
    assert.match((await folder.run(byAgent)).one('grader').summary, /tests of each task/);
  });

  it('leaves nothing when it is interrupted while a sandbox starts', async () => {
    await using folder = await PreflightFolder.create();
    const stop = new AbortController();
    await slipwayInProcess(
      ['preflight', '--port', '0', '--only', 'gateway', '--task', bundled('file-answer')],
      {
        cwd: folder.root,
        variables: { ...folder.variables, ...variables },
        signal: stop.signal,
        onOut(text) {
          if (!text.includes('tasks ')) return;
          const began = setInterval(() => stop.abort(new Error('enough')), 60);
          stop.signal.addEventListener('abort', () => clearInterval(began));
        },
      },
    );
    assert.ok(stop.signal.aborted);
    await assertNothingLeft(folder);
  });
});

describe('the look from inside a sandbox', { timeout: 60_000 }, () => {
  const config = { listen: { dataHost: '127.0.0.1', dataPort: 0 } } as ServeConfig;
  const inside = (url: string | null, exec: (request: ExecRequest) => object): Environment =>
    ({
      hostEndpointUrl: url,
      exec: (request: ExecRequest) =>
        Promise.resolve({ exitCode: 0, stdout: '', stderr: '', isTruncated: false, ...exec(request) }), // prettier-ignore
    }) as unknown as Environment;

  it('believes only the answer of its own listener, and fails where the agent calls from inside', async () => {
    await using probe = await GatewayProbe.open(config);
    const other = inside('http://gateway:1', () => ({ stdout: '{"status":"ok"}' }));
    const dead = inside('http://gateway:1', () => ({ exitCode: 7, stderr: 'no route to host\n' }));
    for (const environment of [inside(null, () => ({})), other, dead]) {
      const { status } = await probe.ask(environment, { isNeeded: false }, never);
      assert.equal(status, 'warning');
      await assert.rejects(probe.ask(environment, { isNeeded: true }, never), (error) => {
        assert.ok(isRolloutError(error, 'ENVIRONMENT_UNAVAILABLE'));
        assert.equal(error.field, 'listen.data_host');
        return true;
      });
    }
    const bare = inside('http://gateway:1', () => ({ exitCode: 97 }));
    assert.equal((await probe.ask(bare, { isNeeded: true }, never)).status, 'skipped');
  });

  it('counts what got through before what did not, and an image that could not ask last', () => {
    const [through, not, unable] = [passed('yes'), warned('no', { remedy: '' }), skipped('?')];
    for (const [before, found, kept] of [
      [null, unable, unable],
      [unable, not, not],
      [not, unable, not],
      [not, through, through],
      [through, not, through],
    ] as const)
      assert.equal(firmer(before, found), kept);
  });

  it('takes the address of the data listener for as long as it lasts', async () => {
    let port = 0;
    {
      await using probe = await GatewayProbe.open(config);
      port = probe.endpoint.port;
      const taken = { listen: { dataHost: '127.0.0.1', dataPort: port } } as ServeConfig;
      await assert.rejects(GatewayProbe.open(taken), { code: 'LISTEN_REFUSED' });
      const answer = await fetch(`http://127.0.0.1:${port}/health`);
      assert.match(await answer.text(), /"preflight":"[0-9a-f-]{36}"/);
    }
    await assert.rejects(fetch(`http://127.0.0.1:${port}/health`));
  });
});
