/**
 * Brings a pod up: its policy first, then the pod, then the wait until its container runs. Each creation has a name of ours and may be asked for twice; a
 * conflict with our own mark is a creation whose answer was lost.
 */
import { randomUUID } from 'node:crypto';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { EnvironmentSpec } from '../../environment.ts';
import { ApiError, apiFailure } from '../api/api-error.ts';
import type { KubernetesParts } from '../kubernetes-parts.ts';
import { policyManifest } from '../network/policy-manifest.ts';
import { podPath, policiesPath, readPod } from '../removal.ts';
import { foundSandbox, podName } from './names.ts';
import { podManifest } from './pod-manifest.ts';
import { isUp, markOf, podDocument, startFailure, waitsFor, type Pod } from './pod-status.ts';

const createMs = 60_000;

/** Awaited before each further creation of one start. */
export type AdmitCreate = (signal: AbortSignal) => Promise<void>;

export class PodBoot {
  readonly #spec: EnvironmentSpec;
  readonly #parts: KubernetesParts;
  readonly #mark = randomUUID();

  constructor(spec: EnvironmentSpec, parts: KubernetesParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  /** Under a deadline of its own: what was begun must be known when the caller has gone. `abandoned` keeps it from going on to the next thing. */
  async create(
    reference: string,
    { abandoned, admit }: { readonly abandoned: AbortSignal; readonly admit: AdmitCreate },
  ): Promise<Pod> {
    using limit = new LinkedAbort([], { ms: createMs, reason: () => notCreated(this.#spec.name) });
    try {
      if (this.#parts.options.networkPolicies) await this.#createPolicy(limit.signal);
      abandoned.throwIfAborted();
      return await this.#createPod(reference, { signal: limit.signal, admit });
    } catch (error) {
      abandoned.throwIfAborted();
      throw apiFailure(error, {
        code: 'ENVIRONMENT_START_FAILED',
        phase: 'environment',
        what: `creating the pod ${podName(this.#spec.name)}`,
      });
    }
  }

  /** Resolves when the container runs. */
  async untilUp(
    pod: Pod,
    reference: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (line: string) => void },
  ): Promise<void> {
    let told: string | null = null;
    const look = (state: Pod | null): Pod | null => {
      if (state === null)
        throw new RolloutError('ENVIRONMENT_START_FAILED', 'the pod was removed while it started', {
          phase: 'environment',
        });
      if (isUp(state)) return state;
      const failure = startFailure(state, reference);
      if (failure !== null) throw failure;
      const waits = waitsFor(state);
      if (waits !== null && waits !== told)
        options.onProgress(`pod ${state.metadata.name}: ${waits}`);
      told = waits;
      return null;
    };
    await this.#parts.watch.until({ name: pod.metadata.name, pod }, look, options.signal);
  }

  async #createPolicy(signal: AbortSignal): Promise<void> {
    const { client } = this.#parts;
    const body = policyManifest(this.#spec, this.#spec.network);
    try {
      await client.json({ method: 'POST', path: policiesPath(client), body, signal });
    } catch (error) {
      if (!isConflict(error)) throw error;
      const path = `${policiesPath(client)}/${podName(this.#spec.name)}`;
      const found = foundSandbox(await client.json({ method: 'GET', path, signal }));
      if (found?.name !== this.#spec.name) throw taken(this.#spec.name, error);
      await client.json({ method: 'PUT', path, body, signal }); // ours, and what we want it to say
    }
  }

  async #createPod(
    reference: string,
    { signal, admit }: { readonly signal: AbortSignal; readonly admit: AdmitCreate },
  ): Promise<Pod> {
    const { client, options, ports } = this.#parts;
    const spec = this.#spec;
    const hasCa = (spec.extraCaBundle ?? options.extraCaBundle) !== null;
    const body = podManifest(
      { spec, reference, mark: this.#mark, hasCa, now: ports.clock.now() },
      options,
    );
    const path = `/api/v1/namespaces/${client.access.namespace}/pods`;
    try {
      return podDocument.parse(await client.json({ method: 'POST', path, body, admit, signal }));
    } catch (error) {
      if (!isConflict(error)) throw error;
      const found = await readPod(client, podPath(client, spec.name), signal);
      if (found === null || markOf(found) !== this.#mark) throw taken(spec.name, error);
      return found;
    }
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason === 'AlreadyExists';
}

function taken(name: string, cause: unknown): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_START_FAILED',
    `something else is called ${podName(name)} in the namespace`,
    {
      phase: 'environment',
      cause,
      retryable: false,
      remedy: 'Give Slipway a namespace of its own in environment.kwargs.namespace.',
    },
  );
}

function notCreated(name: string): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_START_FAILED',
    `the API server did not create ${podName(name)} in ${createMs} ms`,
    { phase: 'environment', remedy: 'Look whether the cluster is overloaded.' },
  );
}
