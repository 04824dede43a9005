import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { ConfiguredKeyRing, type KeySource } from '../../src/server/key-ring.ts';
import { assertMayListen, compileAllowFrom } from '../../src/server/may-listen.ts';
import { noKeys, threeKeys } from './serving.ts';

const old = 'old-key-0123456789';
const fresh = 'new-key-0123456789';

function folder(): { readonly path: string } & Disposable {
  const made = mkdtempSync(path.join(os.tmpdir(), 'slipway-keys-'));
  return { path: made, [Symbol.dispose]: () => rmSync(made, { recursive: true }) };
}

const value = (tenant: string | null, key: string): KeySource => ({
  ...{ tenant, name: `keys of ${tenant ?? 'control'}`, from: { kind: 'value', value: key } },
});

describe('the key ring', () => {
  it('knows who a key belongs to, and asks for none when none is set', async () => {
    const ring = await ConfiguredKeyRing.open([value(null, old), value('blue', fresh)]);
    assert.equal(ring.hasKeys, true);
    assert.deepEqual(ring.identify(old), { tenant: null });
    assert.deepEqual(ring.identify(fresh), { tenant: 'blue' });
    for (const wrong of ['', old.slice(1), `${old} `, old.toUpperCase()])
      assert.equal(ring.identify(wrong), null);
    assert.equal((await ConfiguredKeyRing.open([])).hasKeys, false);
  });

  it('takes new keys from a file without a restart, and keeps the old ones when the file is wrong', async () => {
    using dir = folder();
    const file = path.join(dir.path, 'keys');
    writeFileSync(file, `# rotated in spring\n\n${old}\n`);
    const ring = await ConfiguredKeyRing.open([
      { tenant: null, name: 'keys.control', from: { kind: 'file', path: file } },
    ]);
    assert.deepEqual(ring.identify(old), { tenant: null });
    writeFileSync(file, `${old}\r\n${fresh}\r\n`);
    await ring.reload();
    assert.deepEqual(
      [ring.identify(old), ring.identify(fresh)],
      [{ tenant: null }, { tenant: null }],
    );
    writeFileSync(file, `${fresh}\n`);
    await ring.reload();
    assert.deepEqual([ring.identify(old), ring.identify(fresh)], [null, { tenant: null }]);
    for (const wrong of ['', 'short\n']) {
      writeFileSync(file, wrong);
      await assert.rejects(ring.reload(), (error) => isRolloutError(error, 'CONFIG_INVALID'));
      assert.deepEqual(ring.identify(fresh), { tenant: null });
    }
    rmSync(file);
    await assert.rejects(ring.reload(), {
      field: 'keys.control',
      message: `keys.control: ${file}: no such file`,
    });
    assert.deepEqual(ring.identify(fresh), { tenant: null });
  });

  it('names every source that cannot be used, and no key', async () => {
    const wrong = [value('blue', old), value('green', old), value(null, 'hunter2')];
    await assert.rejects(ConfiguredKeyRing.open(wrong), (error) => {
      assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
      assert.match(
        error.message,
        /keys of green: .*another caller; keys of control: .*at least 16/,
      );
      assert.doesNotMatch(error.describe(), /hunter2|old-key/);
      return true;
    });
  });
});

describe('the address to listen on', () => {
  const nobody = compileAllowFrom([]);
  const some = compileAllowFrom(['10.0.0.0/8']);
  const rows = [
    ['127.0.0.1', noKeys, nobody, true],
    ['127.8.8.8', noKeys, nobody, true],
    ['::1', noKeys, nobody, true],
    ['localhost', noKeys, nobody, true],
    ['0.0.0.0', noKeys, nobody, false],
    ['::', noKeys, nobody, false],
    ['::ffff:0.0.0.0', noKeys, nobody, false],
    ['10.0.0.1', noKeys, nobody, false],
    ['slipway.example', noKeys, nobody, false],
    ['', noKeys, nobody, false],
    ['0.0.0.0', threeKeys, nobody, true],
    ['0.0.0.0', noKeys, some, true],
  ] as const;
  for (const [host, keys, allowFrom, may] of rows)
    it(`${may ? 'may' : 'may not'} be ${JSON.stringify(host)} ${keys.hasKeys ? 'with' : 'without'} keys, ${allowFrom.isEmpty ? 'nobody' : 'some'} allowed`, () => {
      if (may) assertMayListen(host, keys, allowFrom);
      else
        assert.throws(
          () => assertMayListen(host, keys, allowFrom),
          (error) => isRolloutError(error, 'LISTEN_REFUSED'),
        );
    });

  it('refuses what is no address and no block', () => {
    for (const entry of [
      '10.0.0.0/33',
      '10.0.0/8',
      'host',
      '',
      '10.0.0.0/',
      '::/129',
      '1.2.3.4/8/8',
    ])
      assert.throws(
        () => compileAllowFrom([entry]),
        (error) => isRolloutError(error, 'CONFIG_INVALID'),
      );
    assert.equal(compileAllowFrom(['10.1.2.3']).has('10.1.2.3'), true);
    assert.equal(compileAllowFrom(['10.1.2.3']).has('10.1.2.4'), false);
    assert.equal(compileAllowFrom(['0.0.0.0/0']).has('::1'), false);
    assert.equal(compileAllowFrom(['fe80::/10']).has('fe80::1%eth0'), true);
    assert.equal(compileAllowFrom(['0.0.0.0/0']).has('no address'), false);
  });
});
