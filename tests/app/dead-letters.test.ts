/** Callbacks that nobody took: an operator sees them, over a restart too, and sends them again, byte for byte. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListenerFault } from '../../src/callbacks/callback-listener.ts';
import { never } from '../../src/core/linked-abort.ts';
import { until } from '../support/until.ts';
import { nullRollout, ServeFixture } from './serve-fixture.ts';

interface DeadLetters {
  readonly callbacks: readonly {
    readonly key: string;
    readonly rollout_id: string;
    readonly channel: string;
    readonly attempts: number;
    readonly last_error: string;
  }[];
  readonly next_after: number | null;
}

async function deadLetters(url: string, query = ''): Promise<DeadLetters> {
  return (await (await fetch(`${url}/api/v1/callbacks/dead${query}`)).json()) as DeadLetters;
}

async function replay(url: string, key: string): Promise<number> {
  const path = `/api/v1/callbacks/dead/${encodeURIComponent(key)}/replay`;
  return (await fetch(`${url}${path}`, { method: 'POST' })).status;
}

describe('dead letters', { timeout: 120_000 }, () => {
  it('wait for an operator, over a restart, and are replayed with the same bytes and key', async () => {
    await using fixture = await ServeFixture.create();
    let fault: ListenerFault | undefined = { status: 422 };
    let url = '';
    const controller = await fixture.controller({
      serverUrl: () => url,
      onReceived: () => fault,
    });
    const first = await fixture.start();
    url = first.controlUrl;
    const running = controller.run(nullRollout('refused', { reward: 0.75 }));
    await until('both are given up', async () => (await deadLetters(url)).callbacks.length === 2);
    const letters = (await deadLetters(url)).callbacks;
    assert.deepEqual(
      letters.map(({ rollout_id, channel, attempts }) => [rollout_id, channel, attempts]),
      [
        ['refused', 'completion', 1],
        ['refused', 'grader', 1],
      ],
    );
    for (const { last_error } of letters) assert.match(last_error, /^answered 422/);
    const page = await deadLetters(url, '?limit=1');
    assert.deepEqual(page.callbacks, letters.slice(0, 1));
    const rest = await deadLetters(url, `?limit=1&after=${page.next_after ?? 0}`);
    assert.deepEqual(rest.callbacks, letters.slice(1));
    const status = (await (await fetch(`${url}/rollout/refused/status`)).json()) as object;
    assert.deepEqual(status, {
      ...{ rollout_id: 'refused', status: 'success', reward: 0.75, err_message: null },
    });

    await first.stop(never);
    const second = await fixture.start();
    url = second.controlUrl;
    assert.equal(second.recovered, 0);
    assert.deepEqual((await deadLetters(url)).callbacks, letters);
    fault = undefined;
    for (const { key } of letters) assert.equal(await replay(url, key), 200);
    const { status: ended, reward } = await running;
    assert.deepEqual([ended, reward], ['success', 0.75]);
    await until('none is left', async () => (await deadLetters(url)).callbacks.length === 0);
    for (const channel of ['completion', 'grader'] as const) {
      const sent = controller.received('refused').filter((each) => each.channel === channel);
      assert.equal(sent.length, 2, channel);
      assert.equal(new Set(sent.map(({ key, text }) => `${key ?? ''} ${text}`)).size, 1, channel);
    }
    for (const key of [letters[0]!.key, 'unknown']) assert.equal(await replay(url, key), 404);
  });

  it('replayed to a receiver that refuses them again, they are dead letters again', async () => {
    await using fixture = await ServeFixture.create();
    const { controlUrl } = await fixture.start();
    const faults: number[] = [];
    const controller = await fixture.controller({
      serverUrl: controlUrl,
      onReceived: ({ channel }) => {
        const fault = faults.length < 3 && channel === 'grader' ? 410 : undefined;
        if (fault !== undefined) faults.push(fault);
        return fault === undefined ? undefined : { status: fault };
      },
    });
    const running = controller.run(nullRollout('stubborn'));
    for (let round = 1; round <= 3; round += 1) {
      await until(`round ${round}`, async () => {
        const { callbacks } = await deadLetters(controlUrl);
        return faults.length === round && callbacks.length === 1;
      });
      const [letter] = (await deadLetters(controlUrl)).callbacks;
      assert.equal(letter?.channel, 'grader');
      assert.equal(await replay(controlUrl, letter.key), 200);
    }
    assert.equal((await running).status, 'success');
    assert.equal(controller.received('stubborn').length, 5);
  });
});
