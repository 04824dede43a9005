/** Renders conversations with the Python packages that `scripts/setup/template-peers.js` puts into the cache. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { interpreterFile, templatePeersDir } from '../../scripts/setup/template-peers.js';

export interface ReferenceJob {
  readonly messages: readonly unknown[];
  /** JSON text. */
  readonly tools: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly opensTurn: boolean;
  /** A file of Jinja; null = an encoder renders. */
  readonly template: string | null;
  readonly encoder: 'deepseekv32' | 'deepseekv4' | null;
  /** Words on tools in place of the encoder's own. */
  readonly words: string | null;
  /** A `tokenizer.json`; null = text alone. */
  readonly vocabulary: string | null;
}

export interface ReferenceAnswer {
  readonly text: string | null;
  readonly ids: readonly number[] | null;
  readonly error: string | null;
}

export const checkpointDir = (name: string): string =>
  path.join(templatePeersDir(), 'checkpoints', name);

/** A template of the package of Miles' tokenisers. */
export const fixedTemplate = (name: string): string =>
  path.join(templatePeersDir(), 'miles_tito_tokenizers', 'templates', name);

export async function renderInPython(
  jobs: readonly ReferenceJob[],
): Promise<readonly ReferenceAnswer[]> {
  const dir = templatePeersDir();
  const child = spawn(
    readFileSync(path.join(dir, interpreterFile), 'utf8').trim(),
    [path.join(import.meta.dirname, 'template-reference.py'), dir],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' },
    },
  );
  const closed = once(child, 'close');
  child.stdin.end(jobs.map((job) => `${JSON.stringify(job)}\n`).join(''));
  const output = await text(child.stdout);
  await closed;
  assert.equal(child.exitCode, 0, 'the Python process failed');
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ReferenceAnswer);
}
