/**
 * Removes all that carries a sandbox's name as our label, from the name alone, and looks afterwards. Things without the label are
 * somebody else's, whatever they are called.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError, messageOf } from '../../core/errors.ts';
import type { DestroyReceipt } from '../environment.ts';
import { containerList, networkDetails, networkList, volumeList } from './engine/engine-answers.ts';
import type { EngineClient } from './engine/engine-client.ts';
import { EngineError, engineFailure } from './engine/engine-error.ts';
import { reopenHost } from './network/gateway-firewall.ts';
import { bridgeName, labelKeys } from './sandbox-names.ts';

export const defaultDestroyMs = 60_000;

interface Leftovers {
  readonly containers: readonly string[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
}

/** ENVIRONMENT_DESTROY_FAILED names what is left at the deadline; ENVIRONMENT_UNAVAILABLE when the engine does not answer at all. */
export async function removeSandbox(
  engine: EngineClient,
  name: string,
  options: { readonly deadlineMs: number },
): Promise<DestroyReceipt> {
  const started = performance.now();
  const signal = AbortSignal.timeout(Math.max(1_000, Math.round(options.deadlineMs)));
  let last: unknown;
  for (let round = 0; ; round += 1) {
    try {
      const left = await leftovers(engine, name, signal);
      const isClear = [left.containers, left.networks, left.volumes].every(
        (ids) => ids.length === 0,
      );
      if (isClear && (await reopenHost(bridgeName(name)))) break;
      await removeAll(engine, left, signal);
    } catch (error) {
      last = error;
      if (!(error instanceof EngineError) && !signal.aborted)
        throw engineFailure(error, {
          code: 'ENVIRONMENT_DESTROY_FAILED',
          phase: 'cleanup',
          what: `removing ${name}`,
        });
    }
    if (signal.aborted) throw await leftBehind(engine, name, last);
    if (round > 0) await delay(Math.min(25 * round, 500));
  }
  return {
    name,
    confirmedGone: ['container', 'process', 'network', 'proxy'],
    durationMs: performance.now() - started,
  };
}

/** Whether anything carries the name. */
export async function existsByName(
  engine: EngineClient,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  const left = await leftovers(engine, name, signal);
  return left.containers.length + left.networks.length + left.volumes.length > 0;
}

async function leftovers(
  engine: EngineClient,
  name: string,
  signal: AbortSignal,
): Promise<Leftovers> {
  const filters = JSON.stringify({ label: [`${labelKeys.name}=${name}`] });
  const get = (path: string, query: Record<string, string | number>): Promise<unknown> =>
    engine.json({ method: 'GET', path, query, signal, timeoutMs: 20_000 });
  const [containers, networks, volumes] = await Promise.all([
    get('/containers/json', { all: 1, filters }),
    get('/networks', { filters }),
    get('/volumes', { filters }),
  ]);
  return {
    containers: containerList.parse(containers).map((entry) => entry.Id),
    networks: networkList.parse(networks).map((entry) => entry.Id),
    volumes: (volumeList.parse(volumes).Volumes ?? []).map((entry) => entry.Name),
  };
}

async function removeAll(
  engine: EngineClient,
  left: Leftovers,
  signal: AbortSignal,
): Promise<void> {
  await each(left.containers, async (id) => {
    try {
      await remove(engine, `/containers/${id}`, { force: 1, v: 1 }, signal);
    } catch (error) {
      await engine
        .json({ method: 'POST', path: `/containers/${id}/unpause`, signal, timeoutMs: 10_000 })
        .catch(() => undefined); // it was not frozen, then this was not the reason
      throw error;
    }
  });
  await each(left.networks, async (id) => {
    await detachAll(engine, id, signal);
    await remove(engine, `/networks/${id}`, {}, signal);
  });
  await each(left.volumes, async (id) => remove(engine, `/volumes/${id}`, { force: 1 }, signal));
}

async function detachAll(engine: EngineClient, id: string, signal: AbortSignal): Promise<void> {
  const path = `/networks/${id}`;
  const answer = await engine
    .json({ method: 'GET', path, signal, timeoutMs: 20_000 })
    .catch((error: unknown) => absent(error));
  if (answer === undefined) return;
  await each(Object.keys(networkDetails.parse(answer).Containers ?? {}), async (container) => {
    await engine.json({
      method: 'POST',
      path: `${path}/disconnect`,
      json: { Container: container, Force: true },
      signal,
      timeoutMs: 20_000,
    });
  });
}

async function remove(
  engine: EngineClient,
  path: string,
  query: Readonly<Record<string, number>>,
  signal: AbortSignal,
): Promise<void> {
  await engine.json({ method: 'DELETE', path, query, signal }).catch(absent);
}

/** Gone already, or on its way out by another call: both are what was wanted, the next look tells. */
function absent(error: unknown): undefined {
  const isAbsent =
    error instanceof EngineError &&
    (error.status === 404 || /already in progress/i.test(error.message));
  if (!isAbsent) throw error;
}

async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const results = await Promise.allSettled(items.map(work));
  for (const result of results) if (result.status === 'rejected') throw result.reason as Error;
}

async function leftBehind(
  engine: EngineClient,
  name: string,
  cause: unknown,
): Promise<RolloutError> {
  const left = await leftovers(engine, name, AbortSignal.timeout(5_000)).catch(() => null);
  const kinds = Object.entries(left ?? { things: ['?'] })
    .filter(([, ids]) => (ids as readonly string[]).length > 0)
    .map(([kind]) => kind);
  return new RolloutError(
    'ENVIRONMENT_DESTROY_FAILED',
    `${kinds.join(', ') || 'packet filter rules'} of ${name} could not be removed in time: ${messageOf(cause)}`,
    {
      phase: 'cleanup',
      cause,
      remedy: 'Run "slipway cleanup" once the Docker engine is well again.',
    },
  );
}
