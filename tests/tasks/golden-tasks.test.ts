import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { never } from '../../src/core/linked-abort.ts';
import { isTaskDir, loadTask } from '../../src/tasks/load-task.ts';
import { writeTaskToml } from '../../src/tasks/write-task-toml.ts';
import { parseTaskConfig } from '../../src/wire/harbor/task-config.ts';

const golden = path.join(import.meta.dirname, '..', 'golden', 'harbor');
const folders = (await readdir(golden)).filter((name) => /^0\.\d+$/.test(name)).sort();

describe('a task as written for Harbor', () => {
  it('is there for every version from 0.16 to 0.22', () => {
    assert.deepEqual(folders, ['0.16', '0.17', '0.18', '0.19', '0.20', '0.21', '0.22']);
  });

  for (const version of folders) {
    const dir = path.join(golden, version, 'task');

    it(`${version} loads as expected`, async () => {
      const { dir: loadedFrom, ...task } = await loadTask({ dir, signal: never });
      assert.equal(loadedFrom, dir);
      const expected = await readFile(path.join(golden, version, 'expected.json'), 'utf8');
      // Dates of [metadata] become text, as in every document that is written from a task.
      assert.deepEqual(JSON.parse(JSON.stringify(task)), JSON.parse(expected));
      assert.equal(await isTaskDir(dir, { signal: never }), true);
    });

    it(`${version} means the same after it is written again`, async () => {
      const text = await readFile(path.join(dir, 'task.toml'), 'utf8');
      const first = parseTaskConfig(parse(text));
      assert.ok('value' in first);
      const written = writeTaskToml(first.value);
      const again = parseTaskConfig(parse(written));
      assert.ok('value' in again, written);
      assert.deepEqual(withoutEmptyLists(again.value), withoutEmptyLists(first.value));
    });
  }
});

/** An empty list and a list that is not there are the same to a task, not to `deepEqual`. */
function withoutEmptyLists(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, item: unknown) =>
      Array.isArray(item) && item.length === 0 ? null : item,
    ),
  );
}
