import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  endDeliveries,
  failureDeliveries,
  ownDiagnostics,
  type Addressee,
} from '../../src/scheduler/deliveries.ts';
import { failedOutcome, failureOf, queueTimeout } from '../../src/scheduler/outcomes.ts';
import { success } from './scheduler-bench.ts';

const to = (over: Partial<Addressee> = {}): Addressee => ({
  id: 'r1',
  acceptedAt: new Date('2030-01-01T00:00:00.000Z'),
  request: {
    completion_callback_url: 'http://c/completion',
    grader_callback_url: 'http://c/grader',
    controller_api_key: 'key',
  },
  ...over,
});

const keysOf = (addressee: Addressee): readonly string[] =>
  endDeliveries(addressee, { result: success(1), hasCompleted: false }).map(
    ({ delivery }) => delivery.key,
  );

describe('the callbacks of a rollout', () => {
  it('have one key per channel, which stays the same and is fit for a header', () => {
    const keys = keysOf(to({ id: 'größe ☃' }));
    assert.deepEqual(keys, keysOf(to({ id: 'größe ☃' })));
    assert.equal(new Set(keys).size, 2);
    for (const key of keys) assert.match(key, /^(completion|grader)-[0-9a-f]{40}$/);
  });

  it('have other keys for a rollout of the same id that came when the first was forgotten', () => {
    const later = to({ acceptedAt: new Date('2030-01-02T00:00:00.000Z') });
    assert.equal(new Set([...keysOf(to()), ...keysOf(later)]).size, 4);
  });

  it('leave out a channel that is fixed, and one that nobody asked for', () => {
    const failure = queueTimeout(1_000);
    const channels = (addressee: Addressee, hasCompleted: boolean): readonly string[] =>
      failureDeliveries(addressee, { failure, diagnostics: null, hasCompleted }).map(
        ({ delivery }) => delivery.channel,
      );
    const ungraded = to({ request: { ...to().request, grader_callback_url: '' } });
    assert.deepEqual(channels(to(), false), ['completion', 'grader']);
    assert.deepEqual(channels(to(), true), ['grader']);
    assert.deepEqual(channels(ungraded, false), ['completion']);
    assert.deepEqual(channels(ungraded, true), []);
  });

  it('carry no authorisation when the controller has no key', () => {
    for (const controller_api_key of [null, '']) {
      const addressee = to({ request: { ...to().request, controller_api_key } });
      const [made] = endDeliveries(addressee, { result: success(1), hasCompleted: true });
      assert.equal(made?.delivery.authorization, null);
    }
  });

  it('say nothing of a defect but that it was one', () => {
    const failure = failureOf(new TypeError('at /home/somebody/secret'), 'server');
    assert.equal(failure.errMessage, 'Internal server error');
    assert.equal(ownDiagnostics(failedOutcome(failure), 'null'), null);
  });
});
