import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { bundledTasksDir, repositoryDir, startSlipway } from '../support/slipway-cli.ts';

const key = 'sk-0123456789abcdef';

test(
  'slipway run drives a model at the address of a variable; the sandbox knows the deadline and neither key nor address',
  { skip: whyNoRunc() ?? false, timeout: 300_000 },
  async (context) => {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-model-'));
    context.after(() => rm(root, { recursive: true, force: true }));
    await using engine = await startEngineProcess([
      ...['--policy', path.join(repositoryDir, 'tests/support/policies/variables-policy.ts')],
    ]);
    const { exitCode, stdout, stderr } = await startSlipway(
      [
        ...['run', '-p', path.join(bundledTasksDir, 'file-answer'), '-a', 'terminus-2'],
        ...['-m', 'openai/small', '-o', path.join(root, 'jobs'), '--job-name', 'one', '--yes'],
      ],
      {
        stateDir: path.join(root, 'state'),
        variables: { OPENAI_BASE_URL: engine.apiBase, OPENAI_API_KEY: key },
      },
    ).ended;
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /• terminus-2 • small\n/);
    assert.match(stdout, /turns +tokens in +out/);
    assert.match(stdout, /\ntokens: \d+ in, \d+ out\n/);
    const job = path.join(root, 'jobs/one');
    const [trial = ''] = (await readdir(job)).filter((name) => name.includes('__'));
    const { steps } = JSON.parse(
      await readFile(path.join(job, trial, 'agent/trajectory.json'), 'utf8'),
    ) as { readonly steps: readonly object[] };
    const [prompt = '', ...shown] = steps.map((step) => JSON.stringify(step));
    // On a busy machine the answer may be on a later screen than the question.
    const [, deadline = 'none'] =
      /until (\d{4}-[\d-]+T[\d:.]+Z), no key, no address\./.exec(shown.join('\n')) ?? [];
    assert.ok(prompt.includes(deadline), `${prompt}\n${shown.join('\n')}`);
    for (const entry of await readdir(job, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = path.join(entry.parentPath, entry.name);
      assert.ok(!(await readFile(file, 'utf8')).includes(key), file);
    }
  },
);
