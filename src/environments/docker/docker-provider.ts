import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from 'node:net';
import { RolloutError } from '../../core/errors.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
} from '../environment.ts';
import { listenOn } from '../shared/listen-address.ts';
import { ComposeBoot } from './compose/compose-boot.ts';
import { findComposeCommand } from './compose/compose-command.ts';
import { ContainerBoot } from './container-boot.ts';
import { DockerEnvironment } from './docker-environment.ts';
import type { DockerParts } from './docker-parts.ts';
import {
  containerList,
  engineSettings,
  networkDetails,
  networkList,
} from './engine/engine-answers.ts';
import { EngineClient } from './engine/engine-client.ts';
import { parseEngineEndpoint } from './engine/engine-endpoint.ts';
import { engineFailure } from './engine/engine-error.ts';
import { DockerImages } from './images/docker-images.ts';
import {
  compileDockerOptions,
  dockerPorts,
  type CompiledDockerOptions,
  type DockerOptions,
  type DockerPorts,
} from './options.ts';
import { NamespaceScan } from './processes/host-processes.ts';
import { defaultDestroyMs, existsByName, removeSandbox } from './removal.ts';
import { labelKeys, sandboxLabels } from './sandbox-names.ts';

/** A create call of a dead process may still be under way in the engine: what is absent is looked for once more after this. */
const lateCreateMs = 400;

/** Sandboxes as containers of a Docker engine, or of podman's service. */
export class DockerProvider implements EnvironmentProvider {
  readonly kind = 'docker';
  readonly isolation = 'strict';
  readonly #options: CompiledDockerOptions;
  readonly #ports: DockerPorts;
  readonly #engine: EngineClient;
  readonly #images: DockerImages;
  readonly #namespaces = new NamespaceScan();
  #ready: { readonly capabilities: EnvironmentCapabilities; readonly parts: DockerParts } | null =
    null;

  constructor(options: DockerOptions, ports: Partial<DockerPorts> = {}) {
    this.#options = compileDockerOptions(options);
    this.#ports = dockerPorts(ports);
    this.#engine = new EngineClient(
      parseEngineEndpoint(this.#options.host, this.#options.certPath),
    );
    this.#images = new DockerImages(this.#engine, this.#options, this.#ports);
  }

  get capabilities(): EnvironmentCapabilities {
    return this.#prepared().capabilities;
  }

  async preflight(signal: AbortSignal): Promise<void> {
    if (this.#ready !== null) return;
    try {
      await this.#engine.negotiate(signal);
      const answer = await this.#engine.json({ method: 'GET', path: '/info', signal });
      const settings = engineSettings.parse(answer);
      if (settings.OSType !== 'linux')
        throw new RolloutError(
          'ENVIRONMENT_UNAVAILABLE',
          `the engine runs ${settings.OSType} containers`,
          { phase: 'environment', remedy: 'Switch the Docker engine to Linux containers.' },
        );
      const composeCommand =
        this.#options.composeCommand ??
        (await findComposeCommand(this.#options.dockerConfigDir, this.#ports.hostVariables));
      const hasGateway = await this.#isGatewayHere(signal);
      this.#ready = {
        capabilities: {
          compose: composeCommand !== null,
          cpuLimit: settings.CpuCfsQuota,
          memoryLimit: settings.MemoryLimit,
          pidsLimit: settings.PidsLimit,
          diskQuota: false,
          gpus: false,
          tpus: false,
          users: true,
          noNetwork: true,
          allowlist: hasGateway,
          dynamicNetworkPolicy: hasGateway,
          hostEndpoint: hasGateway,
          build: true,
          layers: true,
          windows: false,
        },
        parts: {
          engine: this.#engine,
          images: this.#images,
          options: this.#options,
          ports: this.#ports,
          namespaces: this.#namespaces,
          engineCpus: settings.NCPU,
          composeCommand,
        },
      };
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'environment',
        what: 'the Docker engine',
      });
    }
  }

  environment(spec: EnvironmentSpec): Environment {
    const { parts } = this.#prepared();
    const boot =
      spec.image.kind === 'compose'
        ? new ComposeBoot(spec, spec.image, parts)
        : new ContainerBoot(spec, parts);
    return new DockerEnvironment(spec, parts, boot);
  }

  async destroyByName(
    name: string,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    const deadlineMs = options.deadlineMs ?? defaultDestroyMs;
    const signal = AbortSignal.timeout(Math.max(1_000, Math.round(deadlineMs)));
    try {
      if (!(await existsByName(this.#engine, name, signal))) await delay(lateCreateMs);
    } catch (error) {
      throw engineFailure(error, {
        code: 'ENVIRONMENT_DESTROY_FAILED',
        phase: 'cleanup',
        what: `looking for ${name}`,
      });
    }
    return removeSandbox(this.#engine, name, { deadlineMs });
  }

  async list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    const filters = JSON.stringify({ label: [labelKeys.name] });
    try {
      const [containers, networks] = await Promise.all([
        this.#engine.json({
          method: 'GET',
          path: '/containers/json',
          query: { all: 1, filters },
          signal,
        }),
        this.#engine.json({ method: 'GET', path: '/networks', query: { filters }, signal }),
      ]);
      const found = new Map<string, FoundSandbox>();
      for (const entry of [...containerList.parse(containers), ...networkList.parse(networks)]) {
        const sandbox = sandboxLabels(entry.Labels);
        if (sandbox !== null) found.set(sandbox.name, sandbox);
      }
      return [...found.values()];
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'cleanup',
        what: 'listing sandboxes',
      });
    }
  }

  close(): Promise<void> {
    this.#engine.close();
    return Promise.resolve();
  }

  #prepared(): { readonly capabilities: EnvironmentCapabilities; readonly parts: DockerParts } {
    if (this.#ready === null)
      throw new RolloutError('INTERNAL', 'the docker environment is used before its preflight', {
        phase: 'environment',
      });
    return this.#ready;
  }

  /** Whether networks of the engine have their gateway on this machine and in our network namespace: tried by listening there. */
  async #isGatewayHere(signal: AbortSignal): Promise<boolean> {
    const answer = await this.#engine
      .json({ method: 'GET', path: '/networks/bridge', signal })
      .catch(() => null); // podman calls its network otherwise
    if (answer === null) return false;
    const [config] = networkDetails.parse(answer).IPAM?.Config ?? [];
    const gateway = config?.Gateway ?? config?.Subnet?.replace(/\.0\/\d+$/, '.1');
    if (gateway === undefined) return false;
    const server = createServer();
    try {
      await listenOn(server, { host: gateway, port: 0 });
      return true;
    } catch {
      return false;
    } finally {
      server.close();
    }
  }
}
