import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReceiverSlots } from '../../src/callbacks/receiver-slots.ts';
import { never } from '../../src/core/linked-abort.ts';

class Requests {
  readonly slots: ReceiverSlots;
  readonly running = new Map<string, PromiseWithResolvers<{ readonly isDown: boolean }>>();

  constructor(perReceiver: number, overall: number) {
    this.slots = new ReceiverSlots({ perReceiver, overall });
  }

  start(name: string, signal: AbortSignal = never): Promise<unknown> {
    const [receiver = ''] = name;
    return this.slots.run(receiver, signal, () => {
      const work = Promise.withResolvers<{ readonly isDown: boolean }>();
      this.running.set(name, work);
      return work.promise.finally(() => this.running.delete(name));
    });
  }

  async end(name: string, isDown = false): Promise<void> {
    this.running.get(name)?.resolve({ isDown });
    await new Promise(setImmediate);
  }

  async see(names: readonly string[]): Promise<void> {
    await new Promise(setImmediate);
    assert.deepEqual([...this.running.keys()].sort(), names);
    assert.equal(this.slots.active, names.length);
  }
}

describe('the places of requests', () => {
  test('one receiver gets its limit, in order; others are not touched', async () => {
    const requests = new Requests(2, 10);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1']) void requests.start(name);
    await requests.see(['a1', 'a2', 'b1']);
    await requests.end('a2');
    await requests.see(['a1', 'a3', 'b1']);
  });

  test('a free place goes to the receiver with the fewest requests', async () => {
    const requests = new Requests(9, 3);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1']) void requests.start(name);
    await requests.see(['a1', 'a2', 'a3']);
    await requests.end('a1');
    await requests.end('a2');
    await requests.see(['a3', 'b1', 'c1']);
    await requests.end('b1');
    await requests.see(['a3', 'a4', 'c1']);
  });

  test('a receiver that does not answer gets one at a time until it does', async () => {
    const requests = new Requests(3, 9);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7']) void requests.start(name);
    await requests.see(['a1', 'a2', 'a3']);
    await requests.end('a1', true);
    await requests.see(['a2', 'a3']);
    await requests.end('a2', true);
    await requests.end('a3', true);
    await requests.see(['a4']);
    await requests.end('a4', false);
    await requests.see(['a5', 'a6', 'a7']);
  });

  test('who stops waiting leaves no trace', async () => {
    const requests = new Requests(1, 1);
    void requests.start('a1');
    const abort = new AbortController();
    const waiting = requests.start('b1', abort.signal);
    void requests.start('b2');
    abort.abort(new Error('gone'));
    await assert.rejects(waiting, /gone/);
    await assert.rejects(requests.start('c1', abort.signal), /gone/);
    await requests.end('a1');
    await requests.see(['b2']);
    await requests.end('b2');
    await requests.see([]);
  });

  test('work that fails gives its place back', async () => {
    const slots = new ReceiverSlots({ perReceiver: 1, overall: 1 });
    await assert.rejects(
      slots.run('a', never, () => Promise.reject(new Error('broken'))),
      /broken/,
    );
    assert.equal(slots.active, 0);
  });
});
