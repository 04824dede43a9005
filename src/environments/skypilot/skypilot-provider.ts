import { isRolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import type {
  DestroyReceipt,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
} from '../environment.ts';
import { SkyBridge } from './bridge/sky-bridge.ts';
import {
  compileSkyOptions,
  skyPorts,
  type CompiledSkyOptions,
  type SkyOptions,
  type SkyPorts,
} from './options.ts';
import { RegistryImages } from './registry-images.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import type { SkyParts } from './sandbox-boot.ts';
import { isSkyError, skyFailure } from './sky-error.ts';
import { decodeLabels, isSkyName, labelsVariable } from './sky-names.ts';
import { SkyService } from './sky-service.ts';
import { SkypilotEnvironment } from './skypilot-environment.ts';

const looksAtOnce = 16;
const lookSec = 15;

/**
 * Sandboxes of SkyPilot, pods on the user's Kubernetes clusters, through its official SDK. Experimental: the SDK is in early access, is
 * published with SkyPilot Platform only, and was never met by this code; a fake of its calls was.
 */
export class SkypilotProvider implements EnvironmentProvider {
  readonly kind = 'skypilot';
  readonly isolation = 'strict';
  readonly isRemote = true;
  readonly #options: CompiledSkyOptions;
  readonly #ports: SkyPorts;
  readonly #bridge: SkyBridge;
  readonly #parts: SkyParts;
  /** What is known of sandboxes by their name at the service: labels do not change. */
  readonly #labels = new Map<string, FoundSandbox>();
  #preflight: Promise<void> | null = null;

  constructor(options: SkyOptions, ports: Partial<SkyPorts> = {}) {
    this.#options = compileSkyOptions(options);
    this.#ports = skyPorts(ports);
    const { logger, clock, hostVariables: variables } = this.#ports;
    this.#bridge = new SkyBridge({ python: this.#options.python, variables, logger });
    this.#parts = {
      service: new SkyService(this.#bridge, clock),
      images: new RegistryImages(this.#options, this.#ports),
      options: this.#options,
      ports: this.#ports,
    };
  }

  /** Of the process that holds the SDK; null while there is none. */
  get bridgePid(): number | null {
    return this.#bridge.pid;
  }

  get capabilities(): EnvironmentCapabilities {
    const isOwnShape = this.#options.pool === null;
    return {
      compose: false,
      cpuLimit: isOwnShape,
      memoryLimit: isOwnShape,
      pidsLimit: false,
      diskQuota: false,
      gpus: false,
      tpus: false,
      users: true,
      noNetwork: true,
      allowlist: false,
      dynamicNetworkPolicy: false,
      hostEndpoint: false,
      build: true,
      layers: false,
      windows: false,
    };
  }

  async preflight(signal: AbortSignal): Promise<void> {
    this.#preflight ??= this.#look(signal).catch((error: unknown) => {
      this.#preflight = null; // a later call looks again
      throw error;
    });
    await this.#preflight;
  }

  environment(spec: EnvironmentSpec): SkypilotEnvironment {
    return new SkypilotEnvironment(spec, this.#parts);
  }

  destroyByName(
    name: string,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    return removeSandbox(this.#parts.service, name, options.deadlineMs ?? defaultDestroyMs);
  }

  /** A sandbox that takes no commands cannot show its labels and is left out: its run's journal knows its name, and the service its lifetime. */
  async list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    try {
      const names = (await this.#parts.service.list(signal))
        .map(({ name }) => name)
        .filter(isSkyName);
      for (const known of this.#labels.keys())
        if (!names.includes(known)) this.#labels.delete(known);
      const limiter = new Limiter(looksAtOnce);
      const found = await Promise.all(
        names.map((name) => limiter.run(signal, () => this.#labelsOf(name, signal))),
      );
      return found.filter((sandbox) => sandbox !== null);
    } catch (error) {
      signal.throwIfAborted();
      throw skyFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'cleanup',
        what: 'listing sandboxes',
      });
    }
  }

  close(): Promise<void> {
    return this.#bridge.close();
  }

  async #look(signal: AbortSignal): Promise<void> {
    try {
      const { sdk } = await this.#parts.service.ready(signal);
      await this.#parts.service.list(signal);
      this.#ports.logger.log('warn', 'the skypilot environment is experimental', { sdk });
    } catch (error) {
      signal.throwIfAborted();
      throw skyFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'environment',
        what: 'the SkyPilot API server',
      });
    }
  }

  async #labelsOf(name: string, signal: AbortSignal): Promise<FoundSandbox | null> {
    const known = this.#labels.get(name);
    if (known !== undefined) return known;
    try {
      const argv = ['printenv', labelsVariable];
      const request = { name, argv, limitSec: lookSec, repeatable: true };
      const { stdout } = await this.#parts.service.execute(request, signal);
      const found = decodeLabels(stdout.toString('latin1'));
      if (found !== null) this.#labels.set(name, found);
      return found;
    } catch (error) {
      signal.throwIfAborted();
      if (isRolloutError(error) || !isSkyError(error, 'not-found', 'refused', 'failed'))
        throw error;
      return null;
    }
  }
}
