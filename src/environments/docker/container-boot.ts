import * as tar from 'tar-stream';
import type { Readable } from 'node:stream';
import { RolloutError } from '../../core/errors.ts';
import type { NetworkPolicy } from '../../wire/network-policy.ts';
import type { EnvironmentSpec } from '../environment.ts';
import { caBundle, caFile, caVariables } from '../shared/extra-ca.ts';
import { isLostBeforeStart } from '../shared/lost-process.ts';
import { containerSettings } from './container-settings.ts';
import type { DockerParts } from './docker-parts.ts';
import { createdId } from './engine/engine-answers.ts';
import { EngineError, engineFailure } from './engine/engine-error.ts';
import type { ImageRequest } from './images/docker-images.ts';
import { needsChange, planNetwork, type NetworkPlan } from './network/network-plan.ts';
import { SandboxNetwork } from './network/sandbox-network.ts';
import type { SandboxBoot } from './sandbox-boot.ts';

const callLimitMs = 120_000;

/** One container, made through the engine alone. */
export class ContainerBoot implements SandboxBoot {
  readonly #spec: EnvironmentSpec;
  readonly #parts: DockerParts;
  readonly #plan: NetworkPlan;
  readonly #network: SandboxNetwork | null;
  #image = '';
  #isPublic = false;

  constructor(spec: EnvironmentSpec, parts: DockerParts) {
    this.#spec = spec;
    this.#parts = parts;
    this.#plan = planNetwork(spec);
    this.#network =
      this.#plan.kind === 'own'
        ? new SandboxNetwork({
            engine: parts.engine,
            logger: parts.ports.logger,
            sandbox: spec.name,
            labels: spec.labels,
            pool: parts.options.networkPool,
            prefix: 29,
            resolveName: parts.ports.resolveName,
            allowLocalEgress: parts.ports.allowLocalEgress,
          })
        : null;
  }

  get hostEndpointUrl(): string | null {
    return this.#network?.hostEndpointUrl ?? null;
  }

  async prepare(request: ImageRequest): Promise<void> {
    const { image, forceBuild } = this.#spec;
    switch (image.kind) {
      case 'prebuilt':
        await this.#parts.images.ensurePrebuilt(image.reference, request);
        this.#image = image.reference;
        break;
      case 'dockerfile':
        this.#image = await this.#parts.images.ensureBuilt({ ...request, ...image, forceBuild });
        break;
      case 'compose':
        throw new RolloutError('INTERNAL', 'a compose file was given to the container boot', {
          phase: 'environment',
        });
    }
  }

  async boot(abandoned: AbortSignal): Promise<string> {
    const { network, hostEndpoint } = this.#spec;
    if (this.#plan.kind === 'own')
      await this.#network?.open({
        policy: network,
        wantsProxy: this.#plan.wantsProxy,
        hostEndpoint,
      });
    abandoned.throwIfAborted();
    const id = await this.#create();
    abandoned.throwIfAborted();
    await putCertificates(this.#parts, this.#caBundle(), id);
    if (this.#plan.kind === 'own' && network.mode === 'public') await this.#join();
    abandoned.throwIfAborted();
    await this.#start(id, abandoned);
    return id;
  }

  async setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!needsChange(this.#plan, this.#spec.network, policy)) return;
    // Narrowing comes first, widening last: in between the sandbox has less, never more.
    if (policy.mode !== 'public') await this.#leave();
    this.#network?.setPolicy(policy);
    if (policy.mode === 'public') await this.#join();
  }

  serviceContainer(name: string): Promise<string> {
    return Promise.reject(
      new RolloutError('SERVICE_UNSUPPORTED', `this sandbox has no side service "${name}"`, {
        phase: 'environment',
        remedy: 'Side services come from a docker-compose.yaml beside the Dockerfile.',
      }),
    );
  }

  containers(): Promise<readonly string[]> {
    return Promise.resolve([this.#spec.name]);
  }

  async release(): Promise<void> {
    await this.#network?.close();
  }

  async #create(): Promise<string> {
    const hasCa = this.#caBundle() !== null;
    const isSecluded = this.#plan.kind === 'own' && !this.#plan.hasPublicPhase;
    const settings = containerSettings({
      spec: this.#spec,
      image: this.#image,
      networkMode: this.#network?.name ?? this.#plan.kind,
      isSecluded,
      engineCpus: this.#parts.engineCpus,
      variables: {
        ...(hasCa ? caVariables : {}),
        ...this.#network?.variables(),
        ...this.#spec.env,
      },
    });
    const { name } = this.#spec;
    const platform = this.#parts.options.platform ?? undefined;
    const query = { name, platform };
    const what = 'creating the container';
    return createdId.parse(await this.#call(what, '/containers/create', settings, query)).Id;
  }

  #caBundle(): string | null {
    return this.#spec.extraCaBundle ?? this.#parts.options.extraCaBundle;
  }

  async #join(): Promise<void> {
    if (this.#isPublic) return;
    await this.#call('joining the public network', '/networks/bridge/connect', {
      Container: this.#spec.name,
    });
    this.#isPublic = true;
  }

  async #leave(): Promise<void> {
    if (!this.#isPublic) return;
    await this.#call('leaving the public network', '/networks/bridge/disconnect', {
      Container: this.#spec.name,
      Force: true,
    });
    this.#isPublic = false;
  }

  /** On a crowded host the engine's runtime now and then loses the process it has just made: one more try is cheap. */
  async #start(id: string, abandoned: AbortSignal): Promise<void> {
    const start = (): Promise<unknown> =>
      this.#call('starting the container', `/containers/${id}/start`, undefined);
    try {
      await start();
    } catch (error) {
      abandoned.throwIfAborted();
      const { cause } = error as RolloutError;
      if (!(cause instanceof EngineError && isRuntimeHiccup(cause))) throw error;
      this.#parts.ports.logger.log('warn', 'the container did not start, trying once more', {
        sandbox: this.#spec.name,
        reason: cause.message,
      });
      await start();
    }
  }

  async #call(
    what: string,
    path: string,
    json: unknown,
    query: Readonly<Record<string, string | undefined>> = {},
  ): Promise<unknown> {
    const signal = AbortSignal.timeout(callLimitMs);
    try {
      return await this.#parts.engine.json({
        method: 'POST',
        path,
        query,
        json,
        signal,
        timeoutMs: callLimitMs,
      });
    } catch (error) {
      throw startFailure(error, what);
    }
  }
}

function startFailure(error: unknown, what: string): RolloutError {
  const isNoImage = error instanceof EngineError && /no such image/i.test(error.message);
  const isRefused = error instanceof EngineError && error.status === 400;
  const failure = engineFailure(error, {
    code: isNoImage ? 'IMAGE_NOT_FOUND' : 'ENVIRONMENT_START_FAILED',
    phase: 'environment',
    what,
  });
  if (!isRefused || failure.code !== 'ENVIRONMENT_START_FAILED') return failure;
  return new RolloutError(failure.code, failure.message, {
    phase: 'environment',
    cause: error,
    retryable: false,
    remedy:
      'Correct what the engine refuses: a limit, the working folder, or the image (it needs "sh").',
  });
}

function isRuntimeHiccup(error: EngineError): boolean {
  return (
    error.status >= 400 &&
    (isLostBeforeStart(error.message) || error.message.includes('context deadline'))
  );
}

/** Brings the host's extra certificates into a container; nothing when there are none. */
export async function putCertificates(
  parts: DockerParts,
  file: string | null,
  containerId: string,
): Promise<void> {
  if (file === null) return;
  const pack = tar.pack();
  pack.entry({ name: caFile.slice(1), mode: 0o644 }, await caBundle(file));
  pack.finalize();
  try {
    await parts.engine.json({
      method: 'PUT',
      path: `/containers/${containerId}/archive`,
      query: { path: '/' },
      tar: pack as unknown as Readable,
      signal: AbortSignal.timeout(callLimitMs),
    });
  } catch (error) {
    throw startFailure(error, 'bringing certificates into the container');
  }
}
