import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { access, chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConformanceCase } from '../adapter.ts';
import { output } from '../looking.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export const uploadCases: readonly ConformanceCase[] = [
  {
    id: 'upload.file',
    title: 'a file arrives with its bytes and its mode, owned by root, its folders made',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'tool');
      const bytes = randomBytes(70_000);
      await writeFile(from, bytes);
      await chmod(from, 0o751);
      await environment.uploadFile(from, '/up/deep/er/tool', signal);
      const seen = await output(
        environment,
        'cd /up/deep/er && stat -c %a:%u:%g tool && sha256sum tool',
        signal,
      );
      assert.equal(seen, `751:0:0\n${sha256(bytes)}  tool`);
    },
  },
  {
    id: 'upload.file-overwrites',
    title: 'a file replaces an older file of the same name',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'note');
      for (const text of ['a long first version', 'short']) {
        await writeFile(from, text);
        await environment.uploadFile(from, '/up/note', signal);
        assert.equal(await output(environment, 'cat /up/note', signal), text);
      }
    },
  },
  {
    id: 'upload.file-odd-name',
    title: 'names with spaces, quotes, newlines and letters of any script are only names',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'source');
      await writeFile(from, 'odd');
      const to = `/up/-odd/it's a "file"\n$(touch pwned) žluť`;
      await environment.uploadFile(from, to, signal);
      const back = join(folder, 'back');
      await environment.downloadFile(to, back, signal);
      assert.equal(await readFile(back, 'utf8'), 'odd');
    },
  },
  {
    id: 'upload.file-onto-folder',
    title: 'a file onto a folder is TRANSFER_FAILED and leaves the folder',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'source');
      await writeFile(from, 'x');
      await output(environment, 'mkdir -p /up/taken', signal);
      await assert.rejects(environment.uploadFile(from, '/up/taken', signal), {
        code: 'TRANSFER_FAILED',
      });
      assert.equal(await output(environment, 'ls -A /up/taken', signal), '');
    },
  },
  {
    id: 'upload.missing-source',
    title: 'a source that is missing is TRANSFER_FAILED',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const failed = { code: 'TRANSFER_FAILED' };
      await assert.rejects(environment.uploadFile(join(folder, 'no'), '/up/no', signal), failed);
      await assert.rejects(environment.uploadDir(join(folder, 'no'), '/up/no', signal), failed);
    },
  },
  {
    id: 'upload.big-file',
    title: 'a file of 64 MiB goes in and comes out unharmed',
    limitMs: 90_000,
    async run({ start, folder, signal }) {
      const environment = await start();
      const [from, back] = [join(folder, 'big'), join(folder, 'back')];
      const bytes = randomBytes(64 * 1_048_576);
      await writeFile(from, bytes);
      await environment.uploadFile(from, '/big', signal);
      const [sum] = (await output(environment, 'sha256sum /big', signal)).split(' ');
      assert.equal(sum, sha256(bytes));
      await environment.downloadFile('/big', back, signal);
      assert.equal(sha256(await readFile(back)), sum);
    },
  },
  {
    id: 'upload.folder',
    title: 'the contents of a folder are merged into the target, modes kept, owned by root',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'tree');
      await mkdir(join(from, 'sub', 'empty'), { recursive: true });
      await writeFile(join(from, 'plain'), 'new');
      await writeFile(join(from, 'sub', 'run me.sh'), '#!/bin/sh\n');
      await chmod(join(from, 'sub', 'run me.sh'), 0o755);
      await output(
        environment,
        'mkdir -p /tree/sub; echo old > /tree/plain; echo kept > /tree/other',
        signal,
      );
      await environment.uploadDir(from, '/tree', signal);
      assert.equal(await output(environment, 'cat /tree/plain /tree/other', signal), 'newkept');
      const stat = await output(environment, `stat -c %a:%u:%g '/tree/sub/run me.sh'`, signal);
      assert.equal(stat, '755:0:0');
      assert.equal(
        await output(environment, 'ls -A /tree/sub/empty && echo there', signal),
        'there',
      );
    },
  },
  {
    id: 'upload.empty-folder',
    title: 'an empty folder makes its target',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await mkdir(join(folder, 'empty'));
      await environment.uploadDir(join(folder, 'empty'), '/made/empty', signal);
      assert.equal(await output(environment, 'ls -A /made/empty && echo there', signal), 'there');
    },
  },
  {
    id: 'upload.links',
    title: 'links in a folder are copied as links, wherever they point, and never followed',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      const from = join(folder, 'tree');
      const secret = join(folder, 'secret');
      await mkdir(from);
      await writeFile(secret, 'of the host');
      await writeFile(join(from, 'file'), 'inside');
      await symlink('file', join(from, 'near'));
      await symlink(secret, join(from, 'far'));
      await symlink(folder, join(from, 'far-folder'));
      await environment.uploadDir(from, '/links', signal);
      assert.equal(await output(environment, 'cat /links/near', signal), 'inside');
      assert.equal(
        await output(environment, 'readlink /links/near /links/far /links/far-folder', signal),
        `file\n${secret}\n${folder}`,
      );
      const read = await environment.exec({ command: 'cat /links/far' }, signal);
      assert.notEqual(read.exitCode, 0);
    },
  },
  {
    id: 'upload.hostile-target-link',
    title: 'a link planted in the sandbox cannot lead an upload onto the host',
    async run({ start, folder, signal }) {
      const environment = await start();
      const victim = join(folder, 'victim');
      await mkdir(victim);
      await writeFile(join(folder, 'planted'), 'planted');
      await mkdir(join(folder, 'tree'));
      await writeFile(join(folder, 'tree', 'planted'), 'planted');
      await output(
        environment,
        `ln -s ${victim} /trap; ln -s ${victim}/planted /trap-file`,
        signal,
      );
      // Refusing and staying inside are both right; only the host counts.
      await Promise.allSettled([
        environment.uploadFile(join(folder, 'planted'), '/trap/planted', signal),
        environment.uploadFile(join(folder, 'planted'), '/trap-file', signal),
        environment.uploadDir(join(folder, 'tree'), '/trap', signal),
      ]);
      await assert.rejects(access(join(victim, 'planted')), { code: 'ENOENT' });
    },
  },
];
