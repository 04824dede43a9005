import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import {
  link,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { FileRolloutArchive } from '../../src/archive/file-archive.ts';
import { folderName, idOfFolder } from '../../src/archive/folder-name.ts';
import type { ArchivedRollout } from '../../src/archive/rollout-archive.ts';
import { atifText } from '../../src/wire/atif/atif-text.ts';
import { silentLogger } from '../../src/core/logger.ts';

let root = '';
let dir = '';
let source = '';
let archive: FileRolloutArchive;

before(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'slipway-archive-'));
});
after(() => rm(root, { recursive: true, force: true }));
let round = 0;
beforeEach(async () => {
  round += 1;
  dir = path.join(root, `archive-${round}`);
  source = path.join(root, `source-${round}`);
  await mkdir(source);
  archive = new FileRolloutArchive({ dir, logger: silentLogger });
});

const rollout = (over: Partial<ArchivedRollout> = {}): ArchivedRollout => ({
  rolloutId: 'r1',
  documents: {},
  files: [],
  secrets: [],
  ...over,
});
const kept = async (name: string, rolloutId = 'r1'): Promise<string> => {
  const file = await archive.locate(rolloutId, name);
  assert.notEqual(file, null, `${name} is kept`);
  return await readFile(file ?? '', 'utf8');
};
const paths = async (rolloutId = 'r1'): Promise<readonly string[]> =>
  (await archive.list(rolloutId)).map((file) => file.path);

describe('the name of a rollout’s folder', () => {
  const ids = ['r1', 'tenant-a::r1', '.hidden', 'a.b', 'ä€', '%41', '~x', 'CON', 'x'.repeat(200)];
  for (const id of ids)
    it(`tells the id ${JSON.stringify(id.slice(0, 20))} back and is one plain name`, () => {
      assert.match(folderName(id), /^[A-Za-z0-9_%-][A-Za-z0-9_.%-]*$/);
      assert.equal(idOfFolder(folderName(id)), id);
    });

  it('is a hash when the id is too long or has no UTF-8, and never that of another id', () => {
    const long = ['x'.repeat(201), '€'.repeat(85), '\ud800', '\ud801', '\ufffd'];
    const names = long.map(folderName);
    assert.equal(new Set(names).size, long.length);
    for (const name of names) assert.ok(name.length <= 200);
    assert.equal(idOfFolder(folderName('\ud800')), null);
  });

  for (const name of ['..', '~abc', 'a b', '%zz', '%41', 'a/b'])
    it(`is not ${name}`, () => assert.equal(idOfFolder(name), null));
});

describe('the archive', () => {
  it('keeps documents as pretty text, with sorted keys, and adds and replaces later', async () => {
    const documents = { 'outcome.json': { b: [1, 2], a: 'é' } };
    assert.deepEqual(await archive.save(rollout({ documents })), []);
    assert.equal(await kept('outcome.json'), '{\n  "a": "\\u00e9",\n  "b": [1, 2]\n}\n');
    await archive.save(rollout({ documents: { 'outcome.json': 1, 'diagnostics.json': {} } }));
    assert.deepEqual(await paths(), ['diagnostics.json', 'outcome.json']);
    assert.equal(await archive.document('r1', 'outcome.json'), 1);
    assert.equal(await archive.document('r1', 'trajectory.json'), null);
    assert.equal(await archive.document('r2', 'outcome.json'), null);
  });

  it('keeps trees: contents only, regular files only, and says what it left out', async () => {
    await mkdir(path.join(source, 'deep', 'er'), { recursive: true });
    await writeFile(path.join(source, 'deep', 'er', 'file'), 'text', { mode: 0o600 });
    await symlink('/etc/passwd', path.join(source, 'link'));
    await symlink('/etc', path.join(source, 'deep', 'dir-link'));
    await symlink('/nowhere', path.join(source, 'broken'));
    execFileSync('mkfifo', [path.join(source, 'pipe')]);
    const files = [{ name: 'logs/agent', path: source }];
    const problems = await archive.save(rollout({ files }));
    assert.deepEqual(await paths(), ['logs/agent/deep/er/file']);
    assert.deepEqual(problems.map(({ name }) => name).sort(), [
      'logs/agent/broken',
      'logs/agent/deep/dir-link',
      'logs/agent/link',
      'logs/agent/pipe',
    ]);
  });

  it('has few files of a tree open at a time, whatever its shape', async () => {
    const names = Array.from({ length: 8 }, (_, index) => String(index));
    for (const folder of names.flatMap((one) => names.map((two) => path.join(source, one, two)))) {
      await mkdir(folder, { recursive: true });
      for (const file of names) await writeFile(path.join(folder, file), file);
    }
    const open = (): number => readdirSync('/proc/self/fd').length;
    const before = open();
    let most = before;
    let isOver = false;
    const look = (): void => {
      most = Math.max(most, open());
      if (!isOver) setImmediate(look);
    };
    look();
    const files = [{ name: 'logs', path: source }];
    const problems = await archive.save(rollout({ files })).finally(() => (isOver = true));
    assert.deepEqual(problems, []);
    assert.equal((await paths()).length, 512);
    assert.ok(most - before < 64, `${most - before} were open`);
  });

  it('leaves out what nobody could fetch, and says so', async () => {
    await writeFile(path.join(source, 'a\\b'), 'text');
    await writeFile(Buffer.concat([Buffer.from(`${source}/no-text-`), Buffer.from([0xff])]), 'x');
    await writeFile(path.join(source, 'plain'), 'text');
    const problems = await archive.save(rollout({ files: [{ name: 'logs', path: source }] }));
    assert.deepEqual(await paths(), ['logs/plain']);
    assert.deepEqual(problems.map(({ problem }) => problem).sort(), [
      'it is gone, or its name is no text',
      'its name holds a backslash',
    ]);
  });

  it('refuses a linked source, and keeps nothing of one that is not there', async () => {
    await symlink('/etc', path.join(source, 'link'));
    const files = [
      { name: 'a', path: path.join(source, 'link') },
      { name: 'b', path: path.join(source, 'nothing') },
    ];
    const problems = await archive.save(rollout({ files }));
    assert.deepEqual(problems, [{ name: 'a', problem: 'it is a link' }]);
    assert.deepEqual(await paths(), []);
  });

  for (const name of ['../x', 'a/../b', '/x', '', '.', '.hidden', 'a//b', 'a\\b', 'a\0', 'a/.b'])
    it(`keeps nothing under the name ${JSON.stringify(name)}`, async () => {
      const problems = await archive.save(
        rollout({ documents: { [name]: 1 }, files: [{ name, path: source }] }),
      );
      assert.equal(problems.length, 2);
      assert.deepEqual(await readdir(path.join(dir, 'r1')), []);
    });

  it('replaces a folder by a file and a file by a folder, and follows no planted link', async () => {
    await writeFile(path.join(source, 'one'), '1');
    const asFile = { name: 'x', path: path.join(source, 'one') };
    const asFolder = { name: 'x', path: source };
    for (const file of [asFile, asFolder, asFile]) {
      assert.deepEqual(await archive.save(rollout({ files: [file] })), []);
      assert.deepEqual(await paths(), [file === asFile ? 'x' : 'x/one']);
    }
    const outside = path.join(source, 'outside');
    await mkdir(outside);
    await rm(path.join(dir, 'r1', 'x'));
    await symlink(outside, path.join(dir, 'r1', 'x'));
    await archive.save(rollout({ files: [asFile] }));
    assert.deepEqual(await readdir(outside), []);
    assert.equal(await kept('x'), '1');
  });

  it('keeps of two files, or folders, with one name the later one', async () => {
    for (const part of ['a', 'b']) {
      await mkdir(path.join(source, part, 'deep'), { recursive: true });
      await writeFile(path.join(source, part, 'deep', part), part);
    }
    const files = ['a', 'b'].map((part) => ({ name: 'logs/x', path: path.join(source, part) }));
    assert.deepEqual(await archive.save(rollout({ files })), []);
    assert.deepEqual(await paths(), ['logs/x/deep/b']);
  });

  it('replaces secrets everywhere, over the ends of chunks and in other spellings too', async () => {
    const secret = 'key-"quoted"-é';
    const edge = 1024 * 1024;
    const file = path.join(source, 'big.bin');
    const parts = ['a'.repeat(edge - 4), secret, '\u0000', JSON.stringify(secret), ' rest'];
    await writeFile(file, Buffer.concat([Buffer.from(parts.join('')), Buffer.from([0xff, 0xfe])]));
    const documents = { 'diagnostics.json': { note: `refused ${secret}`, list: [secret] } };
    const files = [{ name: 'big.bin', path: file }];
    assert.deepEqual(await archive.save(rollout({ documents, files, secrets: [secret] })), []);
    const big = await readFile((await archive.locate('r1', 'big.bin')) ?? '');
    assert.deepEqual(
      big.subarray(edge - 4),
      Buffer.concat([Buffer.from('[REDACTED]\u0000"[REDACTED]" rest'), Buffer.from([0xff, 0xfe])]),
    );
    assert.deepEqual(await archive.document('r1', 'diagnostics.json'), {
      note: 'refused [REDACTED]',
      list: ['[REDACTED]'],
    });
  });

  it('takes the token ids of a trajectory with the secret that they stand for', async () => {
    const step = (message: string) => ({
      step_id: 1,
      source: 'agent' as const,
      message,
      metrics: { completion_token_ids: [1, 2], logprobs: [-0.5, -0.1] },
    });
    const document = {
      schema_version: 'ATIF-v1.7',
      agent: { name: 'a', version: '1', extra: { api_key: 'short' } },
      steps: [step('clean'), { ...step('the key is route-key-1'), step_id: 2 }],
    };
    await archive.save(
      rollout({ documents: { 'trajectory.json': document }, secrets: ['route-key-1'] }),
    );
    const text = await kept('trajectory.json');
    assert.ok(text.startsWith('{\n  "schema_version"'));
    const found = JSON.parse(text) as typeof document;
    assert.deepEqual(found.agent.extra, { api_key: '[REDACTED]' });
    assert.deepEqual(found.steps[0]?.metrics.completion_token_ids, [1, 2]);
    assert.equal(found.steps[1]?.message, 'the key is [REDACTED]');
    assert.equal('completion_token_ids' in found.steps[1].metrics, false);
  });

  it('writes a long trajectory as it would write it at once, and lets others in between', async () => {
    const steps = Array.from({ length: 3_000 }, (_, at) => ({
      ...{ step_id: at + 1, source: 'user', message: `é ${'x'.repeat(1_000)}` },
      extra: { ids: [1, 2], at: -0 },
    }));
    const agent = { name: 'a', version: '1' };
    const document = { schema_version: 'ATIF-v1.7', agent, steps, notes: 'end' };
    let turns = 0;
    const other = setInterval(() => (turns += 1), 1);
    const secrets = ['not-in-there'];
    await archive.save(rollout({ documents: { 'trajectory.json': document }, secrets }));
    clearInterval(other);
    assert.equal(await kept('trajectory.json'), `${atifText(document, 0, '')}\n`);
    assert.ok(turns > 2, `${turns} turns`);
  });

  describe('of a file that may be taken', () => {
    const secret = 'route-key-1';
    const put = async (name: string, text: string): Promise<string> => {
      const file = path.join(source, name);
      await writeFile(file, text, { mode: 0o600 });
      return file;
    };
    const saved = async (name: string, file: string) => {
      const files = [{ name, path: file, mayBeTaken: true }];
      assert.deepEqual(await archive.save(rollout({ files, secrets: [secret] })), []);
      const target = path.join(dir, 'r1', name);
      return { target, isSame: (await stat(target)).ino === (await stat(file)).ino };
    };

    it('keeps the file itself, as one of the archive’s, also when its first name goes', async () => {
      const file = await put('plain', 'text');
      const { target, isSame } = await saved('plain', file);
      assert.equal(isSame, true);
      assert.equal((await stat(target)).mode & 0o7777, 0o644);
      await rm(source, { recursive: true });
      assert.equal(await kept('plain'), 'text');
    });

    it('keeps a copy without the secret that it holds, also over the end of a chunk', async () => {
      const edge = 1024 * 1024;
      for (const before of ['', 'a'.repeat(edge - 4)]) {
        const file = await put(`with-${before.length}`, `${before}${secret} rest`);
        const { target, isSame } = await saved(`kept-${before.length}`, file);
        assert.equal(isSame, false);
        assert.equal(await readFile(target, 'utf8'), `${before}[REDACTED] rest`);
        assert.equal(await readFile(file, 'utf8'), `${before}${secret} rest`);
      }
    });

    it('keeps a copy of one that another name can change', async () => {
      const file = await put('two', 'text');
      await link(file, path.join(root, `elsewhere-${round}`));
      const { target, isSame } = await saved('two', file);
      assert.equal(isSame, false);
      assert.equal(await readFile(target, 'utf8'), 'text');
    });

    it('keeps a copy where the file system has no second name for it', async (t) => {
      const other = await mkdtemp('/dev/shm/slipway-archive-').catch(() => null);
      if (other === null) {
        t.skip('there is no second file system');
        return;
      }
      t.after(() => rm(other, { recursive: true }));
      await writeFile(path.join(other, 'far'), 'text');
      const { target } = await saved('far', path.join(other, 'far'));
      assert.equal(await readFile(target, 'utf8'), 'text');
    });

    it('refuses a link to one', async () => {
      await symlink(await put('real', 'text'), path.join(source, 'link'));
      const files = [{ name: 'logs', path: source, mayBeTaken: true }];
      const problems = await archive.save(rollout({ files }));
      assert.deepEqual(problems, [{ name: 'logs/link', problem: 'it is a link' }]);
      assert.deepEqual(await paths(), ['logs/real']);
    });
  });

  it('brings a new folder in as a whole: before, a reader finds nothing of it', async () => {
    await writeFile(path.join(source, 'big'), Buffer.alloc(8 * 1024 * 1024));
    let isOver = false;
    const seen = new Set<string>();
    const look = async (): Promise<void> => {
      while (!isOver) seen.add((await paths()).join());
    };
    const files = [
      { name: 'a', path: path.join(source, 'big') },
      { name: 'b', path: path.join(source, 'big') },
    ];
    const looking = look();
    await archive.save(rollout({ files })).finally(() => (isOver = true));
    await looking;
    seen.add((await paths()).join());
    assert.deepEqual([...seen], ['', 'a,b']);
  });

  it('removes what a life before left beside the folders, once', async () => {
    const half = path.join(dir, `.${'0'.repeat(36)}.partial`);
    await mkdir(half, { recursive: true });
    await archive.save(rollout({ documents: { 'a.json': 1 } }));
    assert.deepEqual(await readdir(dir), ['r1']);
  });

  it('lists sizes and hashes, and locates nothing but what it lists', async () => {
    await archive.save(rollout({ documents: { 'a.json': 1 } }));
    const [file] = await archive.list('r1');
    assert.equal(file?.sizeBytes, 2);
    assert.equal(file.sha256, '4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865');
    await symlink('/etc/passwd', path.join(dir, 'r1', 'link'));
    await symlink('/etc', path.join(dir, 'r1', 'folder'));
    await writeFile(path.join(dir, 'r1', '.secret'), '');
    const names = [
      'link',
      'folder/passwd',
      '.secret',
      '../r1/a.json',
      '',
      '.',
      'a.json/',
      '/a.json',
    ];
    for (const name of names) assert.equal(await archive.locate('r1', name), null, name);
    assert.deepEqual(await paths(), ['a.json']);
  });

  it('leaves no half file of a server that died', async () => {
    await archive.save(rollout({ documents: { 'a.json': 1 } }));
    const half = `.${'0'.repeat(36)}.partial`;
    await writeFile(path.join(dir, 'r1', half), 'half');
    assert.deepEqual(await paths(), ['a.json']);
    await archive.save(rollout({ documents: { 'b.json': 1 } }));
    assert.deepEqual(await readdir(path.join(dir, 'r1')), ['a.json', 'b.json']);
  });

  it('never rejects: a root that is a file is a problem per name', async () => {
    await writeFile(dir, '');
    const documents = { 'a.json': 1, 'b.json': { bad: NaN } };
    const files = [{ name: 'c', path: source }];
    const problems = await archive.save(rollout({ documents, files }));
    assert.deepEqual(problems.map(({ name }) => name).sort(), ['a.json', 'b.json', 'c']);
  });

  it('refuses a number that JSON cannot say, and keeps the other documents', async () => {
    const problems = await archive.save(rollout({ documents: { 'a.json': NaN, 'b.json': 1 } }));
    assert.deepEqual(
      problems.map(({ name }) => name),
      ['a.json'],
    );
    assert.deepEqual(await paths(), ['b.json']);
  });

  it('removes one rollout, also one that it does not have', async () => {
    await archive.save(rollout({ documents: { 'a.json': 1 } }));
    await archive.save(rollout({ rolloutId: 'r2', documents: { 'a.json': 1 } }));
    await archive.remove('r1');
    await archive.remove('r1');
    assert.deepEqual(await readdir(dir), ['r2']);
  });

  it('trims the oldest until the rest fits, and tells whose, by hash named ones too', async () => {
    const ids = ['r1', 'y'.repeat(220), 'r3'];
    for (const rolloutId of ids) {
      await archive.save(rollout({ rolloutId, documents: { 'a.json': 'x'.repeat(100) } }));
      const ctime = async (id: string) =>
        (await stat(path.join(dir, folderName(id), 'a.json'))).ctimeMs;
      // The clock of the file system must have moved on for there to be an oldest.
      while (Date.now() <= (await ctime(rolloutId)) + 20);
    }
    const fresh = new FileRolloutArchive({ dir, logger: silentLogger });
    assert.deepEqual(await fresh.trim(1_000), []);
    assert.deepEqual(await fresh.trim(250), ids.slice(0, 1));
    assert.deepEqual(await fresh.trim(0), ids.slice(1));
    assert.deepEqual(await readdir(dir), []);
  });

  it('takes saves of one rollout in turn', async () => {
    const saves = Array.from({ length: 8 }, (_, index) =>
      archive.save(rollout({ documents: { 'a.json': index, [`${index}.json`]: 1 } })),
    );
    assert.deepEqual((await Promise.all(saves)).flat(), []);
    assert.equal(await archive.document('r1', 'a.json'), 7);
    assert.equal((await paths()).length, 9);
  });
});
