/** Files of results over a real NATS server that dies and is cut off on the way. */
import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, readFile, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { jetstream } from '@nats-io/jetstream';
import { Objm, type ObjectStore } from '@nats-io/obj';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { putFiles, takeFiles } from '../../../src/scheduler/jetstream/file-carrier.ts';
import { NatsCluster, whyNoNats, type ClientDoors } from '../../support/nats/nats-cluster.ts';

const requestMs = 1_000;

describe('files of a result', { skip: whyNoNats }, () => {
  let nats: NatsCluster;
  let doors: ClientDoors;
  let connection: NatsConnection;
  let store: ObjectStore;
  before(async () => {
    nats = await NatsCluster.start();
    doors = await nats.clientDoors();
    connection = await connect({
      servers: [...doors.urls],
      ...{ maxReconnectAttempts: -1, reconnectTimeWait: 50 },
    });
    store = await new Objm(jetstream(connection, { timeout: requestMs })).create('files');
  });
  after(async () => {
    await connection.close();
    await doors[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  it('arrive as they were, folders too and links not, and nothing of them stays', async () => {
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'carried-'));
    const from = path.join(root.path, 'from');
    await mkdir(path.join(from, 'deep'), { recursive: true });
    await writeFile(path.join(from, 'deep', 'a'), 'a');
    await writeFile(path.join(from, 'none'), '');
    await symlink('/etc/passwd', path.join(from, 'link'));
    const files = [
      { name: 'folder', path: from },
      { name: 'gone', path: path.join(root.path, 'gone') },
    ];
    const parts = { store, signal: never };
    const carried = await putFiles(files, 'one', parts);
    const [folder, ...rest] = await takeFiles(carried, path.join(root.path, 'to'), parts);
    assert.ok(folder !== undefined && rest.length === 0);
    assert.equal(await readFile(path.join(folder.path, 'deep', 'a'), 'utf8'), 'a');
    assert.equal(await readFile(path.join(folder.path, 'none'), 'utf8'), '');
    await assert.rejects(readFile(path.join(folder.path, 'link')));
    assert.deepEqual(await store.list(), []);
  });

  it('arrive although their server is dead when they are sent', async () => {
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'carried-'));
    const file = path.join(root.path, 'file');
    await writeFile(file, 'text');
    const parts = { store, signal: never };
    await nats.nodes[0]?.kill();
    const putting = putFiles([{ name: 'file', path: file }], 'two', parts);
    putting.catch(() => undefined);
    await nats.nodes[0]?.start();
    await nats.ready();
    const taken = await takeFiles(await putting, path.join(root.path, 'to'), parts);
    assert.equal(await readFile(taken[0]?.path ?? '', 'utf8'), 'text');
  });

  it('arrive although nothing came any more in the middle of them', async () => {
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'carried-'));
    const file = path.join(root.path, 'file');
    const bytes = Buffer.alloc(8 * 1024 ** 2, 'bytes of a file ');
    await writeFile(file, bytes);
    const carried = await putFiles([{ name: 'file', path: file }], 'three', {
      ...{ store, signal: never },
    });
    let gets = 0;
    const cut = new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (name !== 'get')
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        return async (object: string) => {
          doors.set('open');
          const found = await target.get(object);
          if ((gets += 1) === 1) doors.set('silent');
          return found;
        };
      },
    });
    const parts = { store: cut, signal: never, stallMs: 300 };
    const taken = await takeFiles(carried, path.join(root.path, 'to'), parts);
    assert.equal(gets, 2);
    assert.ok(bytes.equals(await readFile(taken[0]?.path ?? '')));
  });

  it('that are nowhere are told of, typed, and no longer asked for than the signal says', async () => {
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'carried-'));
    const parts = [{ path: '', object: 'never/1' }];
    const carried = [{ name: 'file', isFolder: false, parts }];
    const take = (signal: AbortSignal) => takeFiles(carried, root.path, { store, signal });
    await assert.rejects(take(never), (error) => isRolloutError(error, 'QUEUE_UNAVAILABLE'));
    await assert.rejects(take(AbortSignal.timeout(100)), { name: 'TimeoutError' });
  });
});
