import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConformanceCase } from '../adapter.ts';
import { output } from '../looking.ts';

const failed = { code: 'TRANSFER_FAILED' };

export const downloadCases: readonly ConformanceCase[] = [
  {
    id: 'download.file',
    title: 'a file comes out with its bytes, owned by this process, its folders made',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await output(environment, `printf 'a\\0b\\nc' > /tmp/bytes; chmod 000 /tmp/bytes`, signal);
      const to = join(folder, 'deep', 'bytes');
      await environment.downloadFile('/tmp/bytes', to, signal);
      assert.equal(await readFile(to, 'latin1'), 'a\0b\nc');
      assert.equal((await stat(to)).uid, process.getuid!());
    },
  },
  {
    id: 'download.missing',
    title: 'a file or folder that is missing is TRANSFER_FAILED and makes nothing on the host',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await assert.rejects(environment.downloadFile('/no/such', join(folder, 'f'), signal), failed);
      await assert.rejects(environment.downloadDir('/no/such', join(folder, 'd'), signal), failed);
      assert.ok(!(await readdir(folder)).includes('f'));
    },
  },
  {
    id: 'download.folder-as-file',
    title: 'a folder asked for as a file, and a file asked for as a folder, are TRANSFER_FAILED',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await output(environment, 'mkdir -p /tmp/a-folder; echo x > /tmp/a-file', signal);
      await assert.rejects(
        environment.downloadFile('/tmp/a-folder', join(folder, 'f'), signal),
        failed,
      );
      await assert.rejects(
        environment.downloadDir('/tmp/a-file', join(folder, 'd'), signal),
        failed,
      );
    },
  },
  {
    id: 'download.link-as-file',
    title: 'a link asked for as a file is TRANSFER_FAILED, wherever it points',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await writeFile(join(folder, 'secret'), 'of the host');
      await output(
        environment,
        `echo x > /tmp/real; ln -sfn /tmp/real /tmp/near; ln -sfn ${folder}/secret /tmp/far`,
        signal,
      );
      for (const link of ['/tmp/near', '/tmp/far'])
        await assert.rejects(environment.downloadFile(link, join(folder, 'out'), signal), failed);
    },
  },
  {
    id: 'download.hostile-parent-link',
    title: 'a link in the path cannot lead a download onto the host',
    async run({ start, folder, signal }) {
      const environment = await start();
      await mkdir(join(folder, 'victim'));
      await writeFile(join(folder, 'victim', 'secret'), 'of the host');
      await output(
        environment,
        `ln -s ${folder}/victim /trap; mkdir /own; ln -s / /own/root`,
        signal,
      );
      const to = join(folder, 'out');
      await assert.rejects(environment.downloadFile('/trap/secret', to, signal), failed);
      await Promise.allSettled([
        environment.downloadDir('/trap', to, signal),
        environment.downloadDir(`/own/root${folder}/victim`, to, signal),
      ]);
      const names = await readdir(to).catch((): string[] => []);
      assert.ok(!names.includes('secret'));
    },
  },
  {
    id: 'download.folder',
    title: 'the contents of a folder are merged into the target, empty folders included',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await output(
        environment,
        `rm -rf /tree-out; mkdir -p /tree-out/sub/empty; echo new > /tree-out/plain; echo deep > '/tree-out/sub/a b'`,
        signal,
      );
      const to = join(folder, 'out');
      await mkdir(to);
      await writeFile(join(to, 'plain'), 'old');
      await writeFile(join(to, 'other'), 'kept');
      const { skipped } = await environment.downloadDir('/tree-out', to, signal);
      assert.deepEqual(skipped, []);
      const names = await readdir(to, { recursive: true });
      assert.deepEqual(names.sort(), ['other', 'plain', 'sub', 'sub/a b', 'sub/empty']);
      assert.equal(await readFile(join(to, 'plain'), 'utf8'), 'new\n');
      assert.equal(await readFile(join(to, 'sub', 'a b'), 'utf8'), 'deep\n');
    },
  },
  {
    id: 'download.odd-names',
    title: 'names with spaces, newlines, quotes and letters of any script survive the way out',
    async run({ start, folder, signal }) {
      const environment = await start();
      const from = join(folder, 'in');
      const names = ['-dash', 'a b', `it's "q"`, 'line\nbreak', 'žluť 日本', '\\back', '*'].sort();
      await mkdir(from);
      for (const name of names) await writeFile(join(from, name), name);
      await environment.uploadDir(from, '/odd', signal);
      await environment.downloadDir('/odd', join(folder, 'out'), signal);
      assert.deepEqual((await readdir(join(folder, 'out'))).sort(), names);
      for (const name of names)
        assert.equal(await readFile(join(folder, 'out', name), 'utf8'), name);
    },
  },
  {
    id: 'download.links-skipped',
    title: 'links in a folder are left out and reported, and nothing they point to comes along',
    async run({ start, folder, signal }) {
      const environment = await start();
      await writeFile(join(folder, 'secret'), 'of the host');
      await output(
        environment,
        `mkdir -p /l/sub; echo x > /l/real; ln -s real /l/near; ln -s ${folder}/secret /l/far; ` +
          'ln -s /etc /l/sub/etc; ln -s nowhere /l/dangling',
        signal,
      );
      const to = join(folder, 'out');
      const { skipped } = await environment.downloadDir('/l', to, signal);
      assert.deepEqual((await readdir(to, { recursive: true })).sort(), ['real', 'sub']);
      assert.equal(skipped.length, 4);
      for (const name of ['near', 'far', 'sub/etc', 'dangling'])
        assert.ok(
          skipped.some((path) => path === name || path.endsWith(`/${name}`)),
          `${name} in ${skipped.join()}`,
        );
    },
  },
  {
    id: 'download.special-files-skipped',
    title: 'pipes and other special files are left out and reported, without waiting on them',
    async run({ start, folder, signal }) {
      const environment = await start();
      await output(environment, 'mkdir /s; mkfifo /s/pipe; echo x > /s/real', signal);
      const to = join(folder, 'out');
      const { skipped } = await environment.downloadDir('/s', to, signal);
      assert.deepEqual(await readdir(to), ['real']);
      assert.equal(skipped.length, 1);
      assert.match(skipped[0]!, /pipe$/);
      await assert.rejects(
        environment.downloadFile('/s/pipe', join(folder, 'pipe'), signal),
        failed,
      );
    },
  },
  {
    id: 'download.exclude',
    title: 'excluded globs are left out at any depth, the star crosses folders',
    async run({ start, folder, signal }) {
      const environment = await start();
      await output(
        environment,
        'mkdir -p /x/sub/cache; echo 1 > /x/a.log; echo 1 > /x/sub/b.log; echo 1 > /x/sub/keep; echo 1 > /x/sub/cache/c; mkdir -p /x/deep/sub/only /x/deep/tmp; echo 1 > /x/deep/sub/only/d; echo 1 > /x/deep/tmp/e',
        signal,
      );
      const to = join(folder, 'out');
      await environment.downloadDir('/x', to, signal, {
        exclude: ['*.log', 'sub/cache*', 'sub/only', 'tmp'],
      });
      assert.deepEqual((await readdir(to, { recursive: true })).sort(), [
        'deep',
        'deep/sub',
        'sub',
        'sub/keep',
      ]);
    },
  },
  {
    id: 'download.max-bytes',
    title: 'more bytes than allowed are TRANSFER_FAILED, for files and folders',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await output(
        environment,
        'mkdir -p /m; head -c 200000 /dev/zero > /m/a; head -c 200000 /dev/zero > /m/b',
        signal,
      );
      const options = { maxBytes: 100_000 };
      const file = environment.downloadFile('/m/a', join(folder, 'a'), signal, options);
      await assert.rejects(file, failed);
      const tree = environment.downloadDir('/m', join(folder, 'm'), signal, { maxBytes: 300_000 });
      await assert.rejects(tree, failed);
      await environment.downloadDir('/m', join(folder, 'all'), signal, { maxBytes: 500_000 });
      assert.equal((await stat(join(folder, 'all', 'b'))).size, 200_000);
    },
  },
  {
    id: 'download.already-aborted',
    title: 'copies under a signal that has fired reject with its reason',
    async run({ shared, folder }) {
      const environment = await shared();
      const reason = new Error('too late');
      const aborted = AbortSignal.abort(reason);
      await writeFile(join(folder, 'f'), 'x');
      await assert.rejects(environment.uploadFile(join(folder, 'f'), '/f', aborted), reason);
      await assert.rejects(environment.uploadDir(folder, '/f', aborted), reason);
      await assert.rejects(environment.downloadFile('/f', join(folder, 'g'), aborted), reason);
      await assert.rejects(environment.downloadDir('/tmp', join(folder, 'h'), aborted), reason);
    },
  },
];
