import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { Bash } from 'just-bash';
import { never } from '../../src/core/linked-abort.ts';
import { checkTask } from '../../src/tasks/check-task.ts';
import { initTask } from '../../src/tasks/init-task.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import { taskFolder } from '../fakes/task-folder.ts';

describe('a new task', () => {
  it('loads, and a check finds nothing to say about it', async () => {
    await using folder = await taskFolder({});
    const dir = path.join(folder.dir, 'new');
    const written = await initTask({ dir, name: 'acme/lines', signal: never });
    assert.ok(written.includes('task.toml'));
    const task = await loadTask({ dir, signal: never });
    assert.equal(task.name, 'acme/lines');
    assert.equal(task.agent.timeoutMs, 900_000);
    assert.equal(task.verifier.timeoutMs, 900_000);
    assert.equal(task.environment.buildTimeoutMs, 600_000);
    assert.deepEqual(await checkTask(dir, never), []);
    for (const script of ['solution/solve.sh', 'tests/test.sh'])
      assert.equal((await stat(path.join(dir, script))).mode & 0o111, 0o111);
    const dockerfile = await readFile(path.join(dir, 'environment/Dockerfile'), 'utf8');
    assert.match(dockerfile, /^FROM debian:bookworm-slim\nWORKDIR \/app\n/);
  });

  it('of a plain name is no package', async () => {
    await using folder = await taskFolder({}, 'lines');
    await initTask({ dir: folder.dir, name: 'lines', signal: never });
    const task = await loadTask({ dir: folder.dir, signal: never });
    assert.equal(task.package, null);
    assert.equal(task.name, 'lines');
  });

  it('is solved by its solution and by nothing less', async () => {
    await using folder = await taskFolder({});
    await initTask({ dir: folder.dir, name: 'lines', signal: never });
    const read = (file: string): Promise<string> => readFile(path.join(folder.dir, file), 'utf8');
    const [notes, solution, tests] = await Promise.all(
      ['environment/notes.txt', 'solution/solve.sh', 'tests/test.sh'].map(read),
    );
    const reward = async (attempt: string): Promise<string> => {
      const bash = new Bash({ files: { '/app/notes.txt': notes!, '/logs/verifier/.keep': '' } });
      assert.equal((await bash.exec(attempt)).exitCode, 0);
      assert.equal((await bash.exec(tests!)).exitCode, 0);
      return (await bash.exec('cat /logs/verifier/reward.txt')).stdout;
    };
    assert.equal(await reward(solution!), '1\n');
    assert.equal(await reward('true'), '0\n');
    assert.equal(await reward('echo 4 > /app/answer.txt'), '0\n');
  });

  it('never lands in a folder that holds something, nor under a name that is none', async () => {
    await using folder = await taskFolder({ 'notes.txt': 'mine' });
    await assert.rejects(initTask({ dir: folder.dir, name: 'a', signal: never }), {
      code: 'CONFIG_INVALID',
      field: 'path',
    });
    const file = path.join(folder.dir, 'notes.txt');
    await assert.rejects(initTask({ dir: file, name: 'a', signal: never }), { field: 'path' });
    for (const name of ['', '..', 'a/b/c', '/a', '-a', 'o/a..b', 'a b'])
      await assert.rejects(initTask({ dir: path.join(folder.dir, 'new'), name, signal: never }), {
        code: 'CONFIG_INVALID',
        field: 'name',
      });
    await assert.rejects(stat(path.join(folder.dir, 'new')));
  });
});
