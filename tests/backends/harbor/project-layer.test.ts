import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { projectLayer } from '../../../src/backends/harbor/sandbox-layers.ts';
import { taskFolder } from '../../fakes/task-folder.ts';

const project = {
  'quiz/__init__.py': '',
  'quiz/flows.py': 'one = 1\n',
  'src/deep/table.json': '{}',
  '.env': 'KEY=of the server',
  '.git/config': '',
  'venv/bin/activate': '',
  'quiz/__pycache__/flows.pyc': '',
};

const filesOf = async (dir: string): Promise<readonly string[]> =>
  (await readdir(dir, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dir, path.join(entry.parentPath, entry.name)))
    .sort();

describe('the project that sandboxes see', () => {
  it('is a copy without keys, caches, environments and what the server keeps, also of a server before', async () => {
    await using folder = await taskFolder(project);
    const dataDir = path.join(folder.dir, 'kept');
    await mkdir(path.join(dataDir, 'archive'), { recursive: true });
    await writeFile(path.join(dataDir, 'archive', 'rollout.json'), '{}');
    await mkdir(path.join(folder.dir, 'env312', 'bin'), { recursive: true });
    await writeFile(path.join(folder.dir, 'env312', 'pyvenv.cfg'), '');
    await symlink('/usr/bin/python3', path.join(folder.dir, 'env312', 'bin', 'python'));
    const names = ['quiz/__init__.py', 'quiz/flows.py', 'src/deep/table.json'];
    const first = await projectLayer(folder.dir, dataDir);
    assert.deepEqual(await filesOf(first.hostDir), names);
    assert.deepEqual(await projectLayer(folder.dir, dataDir), first);
    await writeFile(path.join(folder.dir, 'quiz', 'flows.py'), 'two = 2\n', { mode: 0o600 });
    const second = await projectLayer(folder.dir, dataDir);
    assert.deepEqual(await readdir(path.join(dataDir, 'layers')), [path.basename(second.hostDir)]);
    const changed = path.join(second.hostDir, 'quiz', 'flows.py');
    assert.equal(await readFile(changed, 'utf8'), 'two = 2\n');
    assert.equal((await stat(changed)).mode & 0o777, 0o644);
  });

  it('is refused with links, which may lead out of it, and where there is none', async () => {
    await using folder = await taskFolder(project);
    await using data = await taskFolder({});
    await symlink('/etc', path.join(folder.dir, 'quiz', 'link'));
    for (const dir of [folder.dir, path.join(folder.dir, 'absent')])
      await assert.rejects(projectLayer(dir, data.dir), {
        code: 'CONFIG_INVALID',
        field: 'backend.harbor.code_dir',
      });
  });
});
