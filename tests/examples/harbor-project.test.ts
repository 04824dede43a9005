/** The example of the backend `harbor`, by the commands of its README; only its image is one of this machine's. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { ChatMessage } from '../../src/engines/chat-message.ts';
import { loadPolicy } from '../../src/engines/mock/policy.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { slipwayInProcess } from '../support/in-process-cli.ts';
import { providePythonImage, whyNoPythonImage } from '../support/python-image.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

const example = 'examples/harbor';

async function replaceIn(file: string, texts: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(file, 'utf8');
  for (const [old, other] of Object.entries(texts)) {
    assert.ok(text.includes(old), `${old} is not in ${file}`);
    text = text.replaceAll(old, other);
  }
  await writeFile(file, text);
}

test(
  'the project to copy does what its README says',
  { skip: whyNoPythonImage() ?? false, timeout: 240_000 },
  async () => {
    const image = await providePythonImage();
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-example-'));
    try {
      const dir = path.join(root, example);
      await cp(path.join(repositoryDir, example), dir, { recursive: true });
      const policy = await loadPolicy(path.join(dir, 'policy.js'));
      await using engine = await ChatUpstream.start(async (response, { body }) => {
        // Whether it is there is asked first.
        if (body.length === 0) return void response.end('{}');
        const { messages } = JSON.parse(body.toString()) as { readonly messages: ChatMessage[] };
        const asked = { messages, tools: [], turn: 0, model: 'mock', seed: 0, random: () => 0.5 };
        const { content } = await policy(asked);
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] }));
      });
      await replaceIn(path.join(dir, 'eval.toml'), { 'http://127.0.0.1:30000': engine.url });
      await replaceIn(path.join(dir, 'task/task.toml'), { 'python:3.12-slim-bookworm': image });
      const readme = await readFile(path.join(dir, 'README.md'), 'utf8');
      const commands = [...readme.matchAll(/^```sh\nslipway (.+)\n```$/gm)].map(([, said = '']) =>
        said.split(' '),
      );
      assert.deepEqual(commands.map(([name]) => name), ['preflight', 'eval']); // prettier-ignore
      const variables = { ...process.env, SLIPWAY_STATE_DIR: path.join(root, 'state') };
      for (const argv of commands) {
        const { exitCode, stdout, stderr } = await slipwayInProcess(argv, { cwd: root, variables });
        assert.equal(exitCode, 0, `${argv.join(' ')}\n${stdout}\n${stderr}`);
        if (argv[0] !== 'preflight') continue;
        assert.match(stdout + stderr, /workflow and grader can be loaded in the sandbox/);
        assert.doesNotMatch(stdout + stderr, /^warning/m);
      }
      const results = path.join(root, '.slipway/evals/eval');
      const metrics = await readFile(path.join(results, 'metrics.json'), 'utf8');
      assert.match(metrics, /"mean": 1\b/);
      const trajectory = await readFile(
        path.join(results, 'trajectories', 'row_0_run_0.json'),
        'utf8',
      );
      assert.match(trajectory, /exit code 0\\n42/);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  },
);
