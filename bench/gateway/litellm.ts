/** LiteLLM's proxy from PyPI in a virtual environment of its own, with one worker on one core. */
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { installedIn, run, startedProgram, type RunningProgram } from './installed-program.ts';
import { freePort } from './nginx.ts';

/** The newest whose `proxy` extra names only what PyPI has. */
const version = '1.106.12';

export async function startLitellm(upstreamUrl: string): Promise<RunningProgram> {
  const dir = await installedIn(`bench-litellm-${version}`, async (folder) => {
    await run('python3', ['-m', 'venv', path.join(folder, 'venv')]);
    const pip = path.join(folder, 'venv/bin/pip');
    await run(pip, ['install', '--quiet', `litellm[proxy]==${version}`], {
      maxBuffer: 16 * 1024 * 1024,
    });
  });
  const port = await freePort();
  const key = `sk-${randomBytes(32).toString('hex')}`;
  const config = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-bench-litellm-'));
  const file = path.join(config.path, 'config.yaml');
  const target = { model: 'openai/m', api_base: upstreamUrl, api_key: 'bench-upstream-key' };
  // JSON is YAML.
  await writeFile(
    file,
    JSON.stringify({ model_list: [{ model_name: 'm', litellm_params: target }] }),
  );
  const program = path.join(dir, 'venv/bin/litellm');
  const words = [program, '--config', file, '--host', '127.0.0.1', '--port', String(port)];
  const running = await startedProgram([...words, '--num_workers', '1', '--telemetry', 'False'], {
    ...{ port, probe: '/health/liveliness', startMs: 120_000 },
    headers: { authorization: `Bearer ${key}` },
    env: { LITELLM_LOG: 'ERROR', LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_MASTER_KEY: key },
  });
  return {
    ...running,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await config.remove();
    },
  };
}
