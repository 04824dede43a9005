import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { computeScriptMetric } from '../../src/jobs/metric-script.ts';

const searchPath = process.env['PATH'] ?? '';
let dir = '';

beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'uv-'));
});
afterEach(async () => {
  process.env['PATH'] = searchPath;
  await rm(dir, { recursive: true, force: true });
});

/** A program `uv` that runs the script with sh, as uv runs it with Python. */
async function installUv(): Promise<void> {
  await writeFile(path.join(dir, 'uv'), '#!/bin/sh\nshift\nexec sh "$@"\n');
  await chmod(path.join(dir, 'uv'), 0o755);
  process.env['PATH'] = `${dir}:${searchPath}`;
}

async function script(text: string): Promise<string> {
  const file = path.join(dir, 'metric.py');
  await writeFile(file, text);
  return file;
}

test('the script reads one JSON line per trial, null for a missing verdict, and its object is the metric', async () => {
  await installUv();
  const file = await script(
    `printf '{"lines": %s, "last": "%s"}' "$(wc -l < "$2")" "$(tail -n 1 "$2")" > "$4"`,
  );
  const metric = await computeScriptMetric(file, [{ reward: 1 }, null], never);
  assert.deepEqual(metric, { lines: 2, last: 'null' });
});

for (const [title, text] of [
  ['fails', 'echo "no such column" >&2; exit 3'],
  ['writes no JSON', 'echo hello > "$4"'],
  ['writes a list', 'echo "[1]" > "$4"'],
  ['writes nothing', 'true'],
] as const)
  test(`a script that ${title} is CONFIG_INVALID and leaves no folder`, async () => {
    await installUv();
    const file = await script(text);
    const folders = async (): Promise<string[]> =>
      (await readdir(os.tmpdir())).filter((name) => name.startsWith('slipway-metric-'));
    const before = await folders();
    await assert.rejects(
      computeScriptMetric(file, [], never),
      (error) =>
        isRolloutError(error, 'CONFIG_INVALID') &&
        error.field === 'metrics' &&
        error.remedy !== null,
    );
    assert.deepEqual(await folders(), before);
  });

test('without uv the remedy says what to install', async () => {
  process.env['PATH'] = dir;
  await assert.rejects(
    computeScriptMetric('metric.py', [], never),
    (error) =>
      isRolloutError(error, 'CONFIG_INVALID') && (error.remedy ?? '').includes('Install uv'),
  );
});
