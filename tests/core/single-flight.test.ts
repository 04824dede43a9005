import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { SingleFlight } from '../../src/core/single-flight.ts';

/** Work that counts its runs and ends when told to. */
function gatedWork() {
  const gate = Promise.withResolvers<string>();
  const signals: AbortSignal[] = [];
  const work = async (signal: AbortSignal): Promise<string> => {
    signals.push(signal);
    return await gate.promise;
  };
  return { work, signals, gate };
}

test('askers of one key share one run, askers of another do not', async () => {
  const flights = new SingleFlight<string>();
  const { work, signals, gate } = gatedWork();
  const asked = [1, 2, 3].map(() => flights.run('a', never, work));
  const other = flights.run('b', never, async () => 'other');
  gate.resolve('built');
  assert.deepEqual(await Promise.all(asked), ['built', 'built', 'built']);
  assert.equal(await other, 'other');
  assert.equal(signals.length, 1);
});

test('a later ask runs again, also after a failure', async () => {
  const flights = new SingleFlight<number>();
  let runs = 0;
  const work = async (): Promise<number> => {
    runs += 1;
    if (runs === 1) throw new Error('first time');
    return runs;
  };
  const failures = [flights.run('a', never, work), flights.run('a', never, work)];
  for (const failure of failures) await assert.rejects(failure, { message: 'first time' });
  assert.equal(await flights.run('a', never, work), 2);
});

test('an asker that leaves does not disturb the others', async () => {
  const flights = new SingleFlight<string>();
  const { work, signals, gate } = gatedWork();
  const controller = new AbortController();
  const leaving = flights.run('a', controller.signal, work);
  const staying = flights.run('a', never, work);
  const reason = new Error('left');
  controller.abort(reason);
  await assert.rejects(leaving, reason);
  assert.equal(signals[0]!.aborted, false);
  gate.resolve('built');
  assert.equal(await staying, 'built');
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
});

test('the work is aborted when the last asker has left, and the next ask starts anew', async () => {
  const flights = new SingleFlight<string>();
  const { work, signals } = gatedWork();
  const controllers = [new AbortController(), new AbortController()];
  const asked = controllers.map(({ signal }) => flights.run('a', signal, work));
  controllers[0]!.abort(new Error('one'));
  controllers[1]!.abort(new Error('two'));
  await assert.rejects(asked[0]!, { message: 'one' });
  await assert.rejects(asked[1]!, { message: 'two' });
  assert.equal(signals[0]!.aborted, true);
  assert.equal(await flights.run('a', never, async () => 'anew'), 'anew');
});

test('an asker whose signal has fired starts nothing', async () => {
  const flights = new SingleFlight<string>();
  const { work, signals } = gatedWork();
  const reason = new Error('too late');
  await assert.rejects(flights.run('a', AbortSignal.abort(reason), work), reason);
  assert.equal(signals.length, 0);
});
