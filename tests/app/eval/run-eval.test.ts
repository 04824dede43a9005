/** `slipway eval run` over real servers: in this process, or one that runs already. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { slipwayInProcess } from '../../support/in-process-cli.ts';
import { startServeProcess } from '../../support/serve-process.ts';
import { startSlipway } from '../../support/slipway-cli.ts';
import { until } from '../../support/until.ts';
import { Evaluation, modelKey, ownSecret, textsBelow, type EvalDocument } from './evaluation.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-eval-'));
});
after(() => rm(root, { recursive: true, force: true }));

/** A server of a model that answers every call with one status. */
class FakeModel implements AsyncDisposable {
  status = 200;
  /** Of the list of models; null = as every call. */
  listStatus: number | null = null;
  calls = 0;
  /** From then on. */
  after: { readonly calls: number; readonly status: number } | null = null;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const isList = request.url?.endsWith('/models') === true;
      if (!isList && this.calls === this.after?.calls) this.status = this.after.status;
      if (!isList) this.calls += 1;
      request.resume();
      response.statusCode = isList ? (this.listStatus ?? this.status) : this.status;
      const answer = { error: { message: `refused: ${String(request.headers.authorization)}` } };
      response.end(JSON.stringify(response.statusCode === 200 ? {} : answer));
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('slipway eval run', { timeout: 180_000 }, () => {
  it('prints both rates, leaves its files, and does nothing twice', async () => {
    const rows = [{ reward: 1 }, { reward: 0 }, { fail: 'AGENT_TIMEOUT' }, { fail: 'ENVIRONMENT_LOST' }]; // prettier-ignore
    const evaluation = await Evaluation.of([root, 'rates'], rows);
    const { exitCode, stdout, stderr } = await evaluation.run('--yes', '--verbose');
    assert.equal(exitCode, 1, stderr);
    assert.match(stdout, /runs with a verdict, or failed by the agent +1 of 3 +0\.3333/);
    assert.match(stdout, /all runs, failures as not passed +1 of 4 +0\.25/);
    assert.match(stdout, /1 run without a verdict not counted.*1 of them infrastructure/);
    assert.match(stderr, /\[4\/4\] row/);
    const index = await evaluation.lines('index.jsonl');
    assert.deepEqual(
      index.map(({ row_index: row, status, error_type: error }) => [row, status, error]),
      [
        [0, 'success', undefined],
        [1, 'success', undefined],
        [2, 'failed', 'timeout'],
        [3, 'failed', 'agent_error'],
      ],
    );
    for (const name of ['manifest.json', 'progress.json', 'metrics.json', 'summary.jsonl'])
      assert.ok((await stat(evaluation.results(name))).size > 0, name);
    assert.equal((await stat(evaluation.results('logs.txt'))).mode & 0o777, 0o600);
    const trajectory = await readdir(evaluation.results('artifacts', 'row_0_run_0'));
    assert.ok(trajectory.includes('outcome.json'), trajectory.join());

    const again = await evaluation.document();
    assert.deepEqual([again.resumed, again.metrics.pending], [4, 0]);
    assert.equal((await evaluation.endings()).length, 4);
    assert.ok((await evaluation.lines('index.jsonl')).every(({ resumed }) => resumed === true));

    const retried = await evaluation.document('--retry-failed');
    assert.deepEqual([retried.resumed, retried.metrics.failed], [2, 2]);
    assert.equal((await evaluation.endings()).length, 6);
  });

  it('runs the chosen rows, refuses to go on with others, and begins anew when told to', async () => {
    const evaluation = await Evaluation.of(
      [root, 'rows'],
      Array.from({ length: 6 }, () => ({ reward: 1 })),
    );
    const chosen = await evaluation.document('--rows', '1,3-4');
    assert.equal(chosen.metrics.success, 3);
    const summary = await evaluation.lines('summary.jsonl');
    assert.deepEqual(summary.map((row) => row['dataset_row']), [1, 3, 4]); // prettier-ignore

    const other = await evaluation.run('--rows', '1,3');
    assert.equal(other.exitCode, 2);
    assert.match(other.stderr, /JOB_CONFLICT.*changed: rows — .*--fresh/);
    await evaluation.configure('[evaluation]\nn = 2\npass_threshold = 0.5\nbatch_size = 2');
    const changed = await evaluation.run('--rows', '1,3-4');
    assert.match(changed.stderr, /changed: n —/);
    await evaluation.configure('[evaluation]\npass_threshold = 2\nbatch_size = 2');
    assert.equal((await evaluation.document('--rows', '1,3-4')).metrics.pass_rate, 0);

    const fresh = await evaluation.document('--rows', '1,3', '--fresh');
    assert.deepEqual([fresh.resumed, fresh.metrics.success], [0, 2]);
    const kept = await readdir(path.join(evaluation.dir, '.slipway/evals'));
    assert.ok(
      kept.some((name) => /^e\.archive-\d{8}T\d{9}Z$/.test(name)),
      kept.join(),
    );
  });

  it('after kill -9 runs no acknowledged row again, and cuts off half a record', async () => {
    const rows = Array.from({ length: 6 }, (_, row) => ({ duration_ms: row < 3 ? 0 : 600_000 }));
    const evaluation = await Evaluation.of([root, 'killed'], rows, '[evaluation]\nbatch_size = 2');
    const run = startSlipway(['eval', 'run', 'e.toml', '--yes'], {
      stateDir: path.join(root, 'state'),
      ...{ cwd: evaluation.dir, variables: evaluation.variables },
    });
    try {
      await until('three rows ended', async () => (await evaluation.endings()).length === 3);
      const locked = await evaluation.run('--yes');
      assert.match(locked.stderr, /STORE_LOCKED \[--name\]/);
    } finally {
      run.child.kill('SIGKILL');
      await run.ended;
    }
    const before = await evaluation.endings();
    await appendFile(evaluation.results('events.jsonl'), '{"type":"item:ended","row_in');
    const quick = rows.map(() => `${JSON.stringify({ metadata: { null: { duration_ms: 0 } } })}\n`);
    await writeFile(path.join(evaluation.dir, 'rows.jsonl'), quick.join(''));
    assert.match((await evaluation.run()).stderr, /changed: dataset —/);

    // The slow rows would take their time again: the model of another process ends this one.
    const stop = new AbortController();
    await writeFile(
      path.join(evaluation.dir, 'rows.jsonl'),
      rows.map((row) => `${JSON.stringify({ metadata: { null: row } })}\n`).join(''),
    );
    const going = slipwayInProcess(['eval', 'run', 'e.toml', '--yes', '--json'], {
      ...{ cwd: evaluation.dir, variables: evaluation.variables, signal: stop.signal },
    });
    const started = async (): Promise<number> =>
      (await evaluation.lines('events.jsonl')).filter(({ type }) => type === 'item:started').length;
    const soFar = await started();
    await until('rows began again', async () => (await started()) >= soFar + 2);
    stop.abort(new Error('enough'));
    const { stdout, stderr } = await going;
    const resumed = JSON.parse(stdout) as EvalDocument;
    assert.deepEqual([resumed.exit_code, resumed.resumed, resumed.metrics.pending], [130, 3, 3], stderr); // prettier-ignore
    assert.deepEqual(await evaluation.endings(), before);
    const states = resumed.items.map(({ status }) => status);
    assert.deepEqual(states.slice(3), ['pending', 'pending', 'pending']);

    await appendFile(evaluation.results('events.jsonl'), '{"type":"nonsense"}\n');
    assert.match((await evaluation.run()).stderr, /JOB_UNREADABLE \[events\.jsonl\]: .*line \d+/);
  });

  it('halts when the model is gone or refuses the key, leaves rows pending, and tells no secret', async () => {
    await using model = new FakeModel();
    const url = await model.start();
    const evaluation = await Evaluation.of(
      [root, 'outage'],
      Array.from({ length: 4 }, () => ({ agent_calls: 1 })),
      `[evaluation]\nbatch_size = 1\n[secrets]\nrequired = ["OWN_SECRET"]\n[model]\nurl = "${url}"\nkey = "env:MODEL_KEY"`,
    );
    model.status = 401;
    const early = await evaluation.run();
    assert.match(early.stderr, /ENGINE_UNAUTHORIZED \[model\.key\]/);
    assert.equal(model.calls, 0, 'a wrong key costs no row');

    [model.status, model.listStatus] = [500, 200];
    const wrong = await evaluation.document('--rows', '0-3');
    assert.deepEqual([wrong.metrics.failed, wrong.metrics.pending], [4, 0], 'the model is there');

    for (const [status, code] of [
      [503, 'ENGINE_UNAVAILABLE'],
      [403, 'ENGINE_UNAUTHORIZED'],
    ] as const) {
      Object.assign(model, {
        status: 200,
        listStatus: null,
        calls: 0,
        after: { calls: 2, status },
      });
      const halted = await evaluation.document('--rows', '0-3', '--fresh');
      assert.equal(halted.halted?.code, code);
      assert.deepEqual(
        [halted.metrics.success, halted.metrics.failed, halted.metrics.pending],
        [2, 0, 2],
      );
      assert.equal(halted.exit_code, 1);
    }
    model.after = null;
    [model.status, model.listStatus] = [200, 200];
    assert.equal((await evaluation.document('--rows', '0-3')).metrics.success, 4);
    for (const [file, text] of await textsBelow(path.join(evaluation.dir, '.slipway')))
      for (const secret of [modelKey, ownSecret])
        assert.ok(!text.includes(secret), `${file} holds a secret`);
  });

  it('uses a server that runs already; one that dies leaves rows pending', async () => {
    const evaluation = await Evaluation.of(
      [root, 'remote'],
      [{ reward: 1 }, { reward: 1 }, { duration_ms: 600_000 }, { reward: 1 }],
    );
    const dead = await (async () => {
      const flags = ['--backend', 'null', '--store', 'memory'];
      await using server = await startServeProcess(flags, { stateDir: path.join(root, 'state') });
      await evaluation.configure(`server_url = "${server.url}"\n[evaluation]\nbatch_size = 1`, '');
      const running = evaluation.document();
      await until('two rows ended', async () => (await evaluation.endings()).length === 2);
      await server.kill();
      return await running;
    })();
    assert.equal(dead.halted?.code, 'SERVER_UNREACHABLE');
    assert.deepEqual(
      dead.items.map(({ status }) => status),
      ['success', 'success', 'pending', 'pending'],
    );
    const gone = await evaluation.run();
    assert.equal(gone.exitCode, 1);
    assert.match(gone.stderr, /SERVER_UNREACHABLE \[server_url\]/);
  });
});
