import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError, messageOf } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { checkTask } from '../../src/tasks/check-task.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

const golden = path.join(import.meta.dirname, '..', 'golden', 'harbor');
const versions = (await readdir(golden)).filter((name) => /^0\.\d+$/.test(name)).sort();
const texts = await Promise.all(
  versions.map((version) => readFile(path.join(golden, version, 'task', 'task.toml'), 'utf8')),
);

/** Numbers in [0, 1) from a seed: a failing round can be run again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const values = [
  '-1',
  '1e999',
  'true',
  '"x"',
  '""',
  '[]',
  '{}',
  '[{}]',
  'nan',
  '1979-05-27',
  '"${A}"',
];

function mutate(text: string, random: () => number): string {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const lines = text.split('\n');
  const index = Math.floor(random() * lines.length);
  const line = lines[index]!;
  const kind = Math.floor(random() * 4);
  if (kind === 0) lines.splice(index, 1);
  else if (kind === 1) lines.splice(index, 0, pick(pick(texts).split('\n')));
  else if (kind === 2) lines[index] = line.replace(/=.*/, `= ${pick(values)}`);
  else {
    const at = Math.floor(random() * (line.length + 1));
    lines[index] =
      line.slice(0, at) + pick(['"', '[', '.', '\\', '\u0000', 'é', '']) + line.slice(at + 1);
  }
  return lines.join('\n');
}

describe('a damaged task.toml', () => {
  it('gives a task or a typed error with a field, and findings in every case', async () => {
    await using task = await taskFolder(plainTask);
    const codes = new Map<string, number>();
    for (let seed = 0; seed < 300; seed++) {
      const random = seeded(seed);
      let text = texts[seed % texts.length]!;
      for (let count = 0; count <= seed % 3; count++) text = mutate(text, random);
      await writeFile(path.join(task.dir, 'task.toml'), text);
      const error = await loadTask({ dir: task.dir, signal: never }).then(
        () => null,
        (reason: unknown) => reason,
      );
      const findings = await checkTask(task.dir, never);
      const errors = findings.filter(({ severity }) => severity === 'error');
      if (error === null) continue;
      assert.ok(isRolloutError(error), `seed ${seed}: ${messageOf(error)}\n${text}`);
      assert.ok(error.field !== null && error.remedy !== null, `seed ${seed}`);
      assert.ok(
        errors.some(({ code }) => code === error.code),
        `seed ${seed}: ${error.code}`,
      );
      codes.set(error.code, (codes.get(error.code) ?? 0) + 1);
    }
    for (const code of ['TASK_CONFIG_UNREADABLE', 'TASK_CONFIG_INVALID', 'TASK_FILE_MISSING'])
      assert.ok((codes.get(code) ?? 0) > 5, `the damage never led to ${code}`);
  });
});
