import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { FileRolloutArchive } from '../../src/archive/file-archive.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { readRange } from '../../src/server/byte-range.ts';
import type { FilesDocument } from '../../src/wire/api/file.ts';
import { rolloutBody, Serving } from './serving.ts';

const text = '0123456789';

class Archived implements AsyncDisposable {
  readonly serving: Serving;
  readonly #dir: string;

  private constructor(serving: Serving, dir: string) {
    this.serving = serving;
    this.#dir = dir;
  }

  /** Rollout `r1`, with a document, a folder of files and a link, and `r2` with nothing. */
  static async open({ vanishing }: { readonly vanishing?: string } = {}): Promise<Archived> {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-files-'));
    const files = new FileRolloutArchive({ dir: path.join(dir, 'archive'), logger: silentLogger });
    const locate = files.locate.bind(files);
    if (vanishing !== undefined)
      files.locate = async (...given) => {
        const place = await locate(...given);
        if (place?.endsWith(vanishing) === true) rmSync(place);
        return place;
      };
    const serving = new Serving({ files });
    for (const id of ['r1', 'r2']) await serving.post('/rollout', rolloutBody(id));
    const kept = path.join(dir, 'kept');
    mkdirSync(kept);
    writeFileSync(path.join(kept, 'ten bytes.txt'), text);
    writeFileSync(path.join(kept, 'empty'), '');
    writeFileSync(path.join(dir, 'outside'), 'outside');
    symlinkSync('../../../outside', path.join(kept, 'link'));
    await files.save({
      ...{ rolloutId: 'r1', documents: { 'outcome.json': { reward: 1 } }, secrets: [] },
      files: [{ name: 'artifacts', path: kept }],
    });
    return new Archived(serving, dir);
  }

  async get(below: string, headers: Readonly<Record<string, string>> = {}) {
    return await this.serving.ask({ url: `/api/v1/rollouts/${below}`, headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.serving[Symbol.asyncDispose]();
    rmSync(this.#dir, { recursive: true });
  }
}

describe('files of a rollout', () => {
  it('are listed with size and digest, without links', async () => {
    await using archived = await Archived.open();
    const list = (await archived.get('r1/files')).json<FilesDocument>();
    assert.equal(list.rollout_id, 'r1');
    assert.deepEqual(
      list.files.map((file) => [file.path, file.size_bytes]),
      [
        ['artifacts/empty', 0],
        ['artifacts/ten bytes.txt', 10],
        ['outcome.json', list.files[2]?.size_bytes],
      ],
    );
    assert.equal(list.files[1]?.sha256, createHash('sha256').update(text).digest('hex'));
    assert.deepEqual((await archived.get('r2/files')).json<FilesDocument>().files, []);
    assert.equal((await archived.get('r3/files')).statusCode, 404);
  });

  it('are not found when they are removed while they are asked for', async () => {
    await using archived = await Archived.open({ vanishing: 'ten bytes.txt' });
    const answer = await archived.get('r1/files/artifacts/ten%20bytes.txt');
    assert.equal(answer.statusCode, 404);
    assert.equal(answer.headers.etag, undefined);
    assert.equal(answer.headers['content-disposition'], undefined);
  });

  it('come as a whole, in part, or not at all when the caller has them', async () => {
    await using archived = await Archived.open();
    const file = 'r1/files/artifacts/ten%20bytes.txt';
    const whole = await archived.get(file);
    const etag = `"${createHash('sha256').update(text).digest('hex')}"`;
    assert.deepEqual([whole.statusCode, whole.body, whole.headers.etag], [200, text, etag]);
    assert.equal(whole.headers['content-type'], 'application/octet-stream');
    assert.equal(whole.headers['content-disposition'], 'attachment');
    assert.equal(whole.headers['x-content-type-options'], 'nosniff');
    const rows: readonly (readonly [Readonly<Record<string, string>>, number, string, unknown])[] =
      [
        [{ range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
        [{ range: 'bytes=7-' }, 206, '789', 'bytes 7-9/10'],
        [{ range: 'bytes=-2' }, 206, '89', 'bytes 8-9/10'],
        [{ range: 'bytes=0-99' }, 206, text, 'bytes 0-9/10'],
        [{ range: 'bytes=2-4', 'if-range': etag }, 206, '234', 'bytes 2-4/10'],
        [{ range: 'bytes=2-4', 'if-range': '"old"' }, 200, text, undefined],
        [{ range: 'bytes=1-2,4-5' }, 200, text, undefined],
        [{ range: 'bytes=10-' }, 416, '{"detail":"the file has no such range"}', 'bytes */10'],
        [{ 'if-none-match': `"x", ${etag}` }, 304, '', undefined],
      ];
    for (const [headers, status, body, range] of rows) {
      const got = await archived.get(file, headers);
      assert.deepEqual(
        [headers, got.statusCode, got.body, got.headers['content-range']],
        [headers, status, body, range],
      );
    }
    const empty = await archived.get('r1/files/artifacts/empty');
    assert.deepEqual([empty.statusCode, empty.body], [200, '']);
    const url = `/api/v1/rollouts/${file}`;
    const head = await archived.serving.ask({ method: 'HEAD', url });
    assert.deepEqual([head.statusCode, head.body, head.headers['content-length']], [200, '', '10']);
  });

  it('are not handed out under paths that lead elsewhere, whatever the archive says', async () => {
    const file = { path: '../outside', sizeBytes: 1, sha256: 'f', modifiedAt: new Date(0) };
    await using serving = new Serving({
      files: { list: async () => [file], locate: async () => import.meta.filename },
    });
    await serving.post('/rollout', rolloutBody('r1'));
    const got = await serving.ask({ url: '/api/v1/rollouts/r1/files/..%2foutside' });
    assert.equal(got.statusCode, 404);
  });

  const tricks = [
    '..%2foutside',
    '%2e%2e/outside',
    '..%2f..%2f..%2foutside',
    'artifacts/../../../outside',
    'artifacts/%2e%2e/outcome.json',
    'artifacts/..%5c..%5coutside',
    '%252e%252e/outside',
    'artifacts/link',
    'artifacts/',
    'artifacts',
    '/etc/passwd',
    '%2fetc%2fpasswd',
    'artifacts//empty',
    './outcome.json',
    'outcome.json%00',
    'artifacts/ten%20bytes.txt%00.png',
    '',
  ];
  const ids = ['r2%2f..%2fr1', '..%2fr1', 'r2/../r1', '.', '..', '%2e%2e', 'r2/files/../../r1'];

  it('are not found by any way around their paths or their rollout', async () => {
    await using archived = await Archived.open();
    const origin = await archived.serving.app.listen({ host: '127.0.0.1', port: 0 });
    const asked = [
      ...tricks.map((trick) => `r1/files/${trick}`),
      ...ids.map((id) => `${id}/files/outcome.json`),
    ];
    assert.deepEqual(await getRaw(origin, 'r1/files/outcome.json'), 200);
    for (const below of asked) assert.deepEqual([below, await getRaw(origin, below)], [below, 404]);
  });
});

/** The status of a GET whose path goes out as it is: other clients tidy it first. */
async function getRaw(origin: string, below: string): Promise<number | undefined> {
  const path = `/api/v1/rollouts/${below}`;
  const [answer] = (await once(get(origin, { path, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  answer.resume();
  await once(answer, 'end');
  return answer.statusCode;
}

describe('a range', () => {
  const rows = [
    [undefined, 10, { kind: 'whole' }],
    ['bytes=-', 10, { kind: 'whole' }],
    ['items=1-2', 10, { kind: 'whole' }],
    ['bytes=5-2', 10, { kind: 'whole' }],
    ['bytes=0-0', 10, { kind: 'part', first: 0, last: 0 }],
    ['bytes=-99', 10, { kind: 'part', first: 0, last: 9 }],
    ['bytes=-0', 10, { kind: 'unsatisfiable' }],
    ['bytes=0-', 0, { kind: 'unsatisfiable' }],
    ['bytes=-5', 0, { kind: 'unsatisfiable' }],
    ['bytes=99999999999999999999-', 10, { kind: 'unsatisfiable' }],
  ] as const;
  for (const [header, size, expected] of rows)
    it(`${String(header)} of ${size} bytes is ${JSON.stringify(expected)}`, () => {
      assert.deepEqual(readRange(header, size), expected);
    });
});
