/** What the folder of an evaluation holds, and what of it may be touched. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { evalEvent, maskedEvent, type EvalEvent } from '../../../src/app/eval/eval-events.ts';
import { EvalFolder } from '../../../src/app/eval/eval-folder.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { SecretMask } from '../../../src/telemetry/secret-mask.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-results-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function folderWith(name: string, files: readonly string[]): Promise<EvalFolder> {
  await mkdir(path.join(root, name));
  for (const file of files) await writeFile(path.join(root, name, file), '');
  return new EvalFolder(root, name);
}

describe('the folder of an evaluation', () => {
  it('is new where nothing is, and where a start broke off', async () => {
    assert.equal(await new EvalFolder(root, 'none').manifest(), null);
    assert.equal(await (await folderWith('empty', [])).manifest(), null);
    assert.equal(await (await folderWith('cut', ['.manifest.json-1.tmp'])).manifest(), null);
  });

  it('without a manifest beside its journal is damaged, not new', async () => {
    assert.deepEqual(await (await folderWith('damaged', ['events.jsonl'])).manifest(), {});
  });

  it('is refused when it is somebody else’s, or no folder', async () => {
    const foreign = await folderWith('foreign', ['main.py']);
    await assert.rejects(foreign.manifest(), (error) => isRolloutError(error, 'JOB_CONFLICT'));
    await writeFile(path.join(root, 'file'), '');
    const file = new EvalFolder(root, 'file');
    await assert.rejects(file.manifest(), (error) => isRolloutError(error, 'JOB_CONFLICT'));
  });

  it('is refused where nothing can be written, by the flag that names the place', async () => {
    const file = path.join(root, 'plain');
    await writeFile(file, '');
    assert.throws(() => new EvalFolder(file, 'e').lock(new FileLocks(systemClock)), {
      code: 'CONFIG_INVALID',
      field: '--output',
    });
  });

  it('that is somebody else’s is not moved away by --fresh', async () => {
    await folderWith('src', ['main.py']);
    await writeFile(path.join(root, 'rows.jsonl'), '{"metadata": {"null": {"reward": 1}}}\n');
    const toml = '[experiment]\ndataset = "rows.jsonl"\n[backend]\nkind = "null"\n';
    await writeFile(path.join(root, 'e.toml'), toml);
    const ended = await slipwayInProcess(
      ['eval', 'run', 'e.toml', '--yes', '--fresh', '-o', '.', '--name', 'src'],
      { cwd: root, variables: { HOME: root, SLIPWAY_STATE_DIR: path.join(root, 'state') } },
    );
    assert.match(ended.stderr, /JOB_CONFLICT \[--name\]: .*is no evaluation's/);
    assert.deepEqual(await readdir(path.join(root, 'src')), ['main.py']);
  });
});

describe('an event', () => {
  it('holds no secret in what others said, and can be read whatever the secret is', () => {
    const mask = new SecretMask();
    mask.add(['1234', 'success', 'item', 'null']);
    const at = { row_index: 0, run_index: 0, rollout_id: 'r', at: '2026-01-01T00:00:00.000Z' };
    const events: readonly EvalEvent[] = [
      {
        ...{ type: 'item:ended', ...at, status: 'success', reward: 1234, error_type: null },
        ...{ err_message: 'the key 1234 is wrong', cause: null, duration_ms: 12_345 },
      },
      { type: 'item:returned', ...at, reason: 'the key 1234 is wrong' },
      {
        ...{ type: 'item:kept', ...at, trajectory_filename: 'row_0_run_0.json', tokens: 1234 },
        ...{ cause: null, verdict: { '1234': 1 } },
      },
    ];
    for (const event of events) {
      const masked = maskedEvent(event, (text) => mask.mask(text));
      assert.deepEqual(evalEvent.parse(JSON.parse(JSON.stringify(masked))), masked);
      assert.equal(masked.type, event.type);
      assert.match(JSON.stringify(masked), /\[REDACTED\]/);
      assert.doesNotMatch(JSON.stringify(masked), /key 1234|"1234"/);
    }
  });
});
