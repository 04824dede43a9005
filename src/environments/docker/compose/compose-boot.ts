import { access } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import type { NetworkPolicy } from '../../../wire/network-policy.ts';
import type { EnvironmentSpec, ImageSource } from '../../environment.ts';
import { caVariables } from '../../shared/extra-ca.ts';
import { putCertificates } from '../container-boot.ts';
import type { DockerParts } from '../docker-parts.ts';
import { containerList } from '../engine/engine-answers.ts';
import { engineFailure } from '../engine/engine-error.ts';
import type { ImageRequest } from '../images/docker-images.ts';
import { needsChange, planNetwork, type NetworkPlan } from '../network/network-plan.ts';
import { SandboxNetwork } from '../network/sandbox-network.ts';
import { keepAliveCommand } from '../processes/process-control.ts';
import { engineLabels, labelKeys } from '../sandbox-names.ts';
import type { SandboxBoot } from '../sandbox-boot.ts';
import { runCompose, type ComposeResult } from './compose-command.ts';
import {
  composeModel,
  mainService,
  namesOf,
  withOverlay,
  type ComposeBuild,
  type ComposeModel,
} from './compose-model.ts';

type ComposeSource = Extract<ImageSource, { kind: 'compose' }>;

/** Stands for "the image of the task's Dockerfile" until the model is resolved. */
const placeholder = 'slipway-main-image';
const configLimitMs = 60_000;
/** What the CLI asked of the engine when it was killed may still come into being. */
const lateCreateMs = 500;

/** A compose project: the task's files, our overlay, started by the compose CLI and removed by label through the engine. */
export class ComposeBoot implements SandboxBoot {
  readonly #spec: EnvironmentSpec;
  readonly #source: ComposeSource;
  readonly #parts: DockerParts;
  readonly #plan: NetworkPlan;
  readonly #network: SandboxNetwork | null;
  readonly #images = new Map<string, string>();
  #model: ComposeModel | null = null;
  #isPublic = false;

  constructor(spec: EnvironmentSpec, source: ComposeSource, parts: DockerParts) {
    this.#spec = spec;
    this.#source = source;
    this.#parts = parts;
    this.#plan = planNetwork(spec);
    const { options, ports, engine } = parts;
    this.#network =
      this.#plan.kind === 'bridge'
        ? null
        : new SandboxNetwork({
            engine,
            logger: ports.logger,
            sandbox: spec.name,
            labels: spec.labels,
            pool: options.networkPool,
            prefix: 26,
            resolveName: ports.resolveName,
            allowLocalEgress: ports.allowLocalEgress,
          });
  }

  get hostEndpointUrl(): string | null {
    return this.#network?.hostEndpointUrl ?? null;
  }

  async prepare(request: ImageRequest): Promise<void> {
    this.#model = await this.#resolve(request.signal);
    for (const [name, service] of Object.entries(this.#model.services)) {
      if (service.build !== undefined) await this.#build(name, service.build, request);
      else if (service.image === placeholder) await this.#buildMain(request);
      else if (service.image !== undefined)
        await this.#parts.images.ensurePrebuilt(service.image, request);
    }
  }

  async boot(abandoned: AbortSignal): Promise<string> {
    const { network, hostEndpoint } = this.#spec;
    const wantsProxy = this.#plan.kind === 'own' && this.#plan.wantsProxy;
    await this.#network?.open({ policy: network, wantsProxy, hostEndpoint });
    abandoned.throwIfAborted();
    const result = await this.#compose(['up', '--detach', '--wait', '--no-build'], {
      input: JSON.stringify(this.#document()),
      signal: abandoned,
    });
    if (abandoned.aborted) {
      await delay(lateCreateMs);
      abandoned.throwIfAborted();
    }
    if (result.exitCode !== 0)
      throw new RolloutError('ENVIRONMENT_START_FAILED', 'the compose project does not come up', {
        phase: 'environment',
        retryable: isPassing(result.stderr),
        field: 'environment/docker-compose.yaml',
        detail: result.stderr.slice(-8000),
        remedy:
          'Read the end of the output of "docker compose up"; health checks of services must pass.',
      });
    if (this.#plan.kind === 'own' && network.mode === 'public') await this.#join();
    const id = await this.serviceContainer(mainService, abandoned);
    await putCertificates(this.#parts, this.#caBundle(), id);
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

  async serviceContainer(name: string, signal: AbortSignal): Promise<string> {
    const [id] = await this.#containers([`com.docker.compose.service=${name}`], signal);
    if (id !== undefined) return id;
    throw new RolloutError('SERVICE_UNSUPPORTED', `the compose project has no service "${name}"`, {
      phase: 'environment',
      retryable: false,
      remedy: `Services: ${Object.keys(this.#model?.services ?? {}).join(', ')}.`,
    });
  }

  containers(signal: AbortSignal): Promise<readonly string[]> {
    return this.#containers([], signal);
  }

  async release(): Promise<void> {
    await this.#network?.close();
  }

  /** The task's files over our base, as the CLI reads them. */
  async #resolve(signal: AbortSignal): Promise<ComposeModel> {
    const base = {
      services: {
        [mainService]: {
          image: this.#source.mainImage ?? placeholder,
          command: ['sh', '-c', keepAliveCommand],
        },
      },
    };
    const files = this.#source.composeFiles.flatMap((file) => ['--file', file]);
    const result = await this.#compose(['config', '--format', 'json'], {
      files,
      input: JSON.stringify(base),
      signal: AbortSignal.timeout(configLimitMs),
    });
    signal.throwIfAborted();
    const parsed = result.exitCode === 0 ? composeModel.safeParse(JSON.parse(result.stdout)) : null;
    if (parsed?.success === true) return parsed.data;
    throw new RolloutError('ENVIRONMENT_START_FAILED', 'the compose file cannot be read', {
      phase: 'environment',
      retryable: false,
      field: 'environment/docker-compose.yaml',
      detail: (parsed?.error.message ?? result.stderr).slice(-4000),
      remedy: 'Check it with "docker compose config".',
    });
  }

  async #build(name: string, build: ComposeBuild, request: ImageRequest): Promise<void> {
    const { args = {}, dockerfile, dockerfile_inline: inline, target, context } = build;
    if (!path.isAbsolute(context))
      throw new RolloutError('IMAGE_BUILD_FAILED', `service "${name}" builds from ${context}`, {
        phase: 'environment',
        field: `services.${name}.build.context`,
        remedy: 'Use a folder beside the compose file as the build context.',
      });
    const tag = await this.#parts.images.ensureBuilt({
      ...request,
      contextDir: context,
      contextHash: this.#source.contextHash,
      variant: name,
      forceBuild: this.#spec.forceBuild,
      ...(dockerfile === undefined ? {} : { dockerfile }),
      ...(inline === undefined ? {} : { inline }),
      ...(target === undefined ? {} : { target }),
      args: Object.fromEntries(
        Object.entries(args).filter(([, value]) => value !== null),
      ) as Record<string, string>,
    });
    this.#images.set(name, tag);
  }

  async #buildMain(request: ImageRequest): Promise<void> {
    const { contextDir, contextHash } = this.#source;
    const hasDockerfile = await access(path.join(contextDir, 'Dockerfile')).then(
      () => true,
      () => false,
    );
    if (!hasDockerfile)
      throw new RolloutError('TASK_ENVIRONMENT_UNDEFINED', 'service "main" has no image', {
        phase: 'environment',
        field: 'environment/docker-compose.yaml',
        remedy: 'Add a Dockerfile, environment.docker_image, or an image for the service main.',
      });
    const { forceBuild } = this.#spec;
    const tag = await this.#parts.images.ensureBuilt({
      ...request,
      contextDir,
      contextHash,
      forceBuild,
    });
    this.#images.set(mainService, tag);
  }

  #document(): Record<string, unknown> {
    if (this.#model === null)
      throw new RolloutError('INTERNAL', 'a compose project is started before it is prepared', {
        phase: 'environment',
      });
    const { engineCpus } = this.#parts;
    const { limits } = this.#spec;
    const isSecluded = this.#plan.kind === 'none' || !this.#mayBePublic();
    return withOverlay(this.#model, {
      labels: engineLabels(this.#spec.name, this.#spec.labels),
      images: Object.fromEntries(this.#images),
      env: { ...(this.#caBundle() === null ? {} : caVariables), ...this.#spec.env },
      sharedEnv: this.#network?.variables(namesOf(this.#model)) ?? {},
      workdir: this.#spec.workdir,
      layers: this.#spec.layers,
      limits: {
        ...limits,
        cpus:
          limits.cpus === null || engineCpus === 0
            ? limits.cpus
            : Math.min(limits.cpus, engineCpus),
      },
      network: this.#network?.name ?? null,
      isSecluded: isSecluded && this.#network !== null,
    });
  }

  #mayBePublic(): boolean {
    return this.#plan.kind === 'bridge' || (this.#plan.kind === 'own' && this.#plan.hasPublicPhase);
  }

  #caBundle(): string | null {
    return this.#spec.extraCaBundle ?? this.#parts.options.extraCaBundle;
  }

  async #join(): Promise<void> {
    if (this.#isPublic) return;
    await this.#connectAll('connect', {});
    this.#isPublic = true;
  }

  async #leave(): Promise<void> {
    if (!this.#isPublic) return;
    await this.#connectAll('disconnect', { Force: true });
    this.#isPublic = false;
  }

  async #connectAll(verb: 'connect' | 'disconnect', extra: object): Promise<void> {
    const signal = AbortSignal.timeout(configLimitMs);
    const ids = await this.#containers([], signal);
    const path = `/networks/bridge/${verb}`;
    try {
      for (const id of ids)
        await this.#parts.engine.json({
          method: 'POST',
          path,
          json: { Container: id, ...extra },
          signal,
        });
    } catch (error) {
      throw engineFailure(error, {
        code: 'ENVIRONMENT_LOST',
        phase: 'environment',
        what: `${verb}ing the public network`,
        isRunning: true,
      });
    }
  }

  async #containers(labels: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    const label = [`${labelKeys.name}=${this.#spec.name}`, ...labels];
    try {
      const answer = await this.#parts.engine.json({
        method: 'GET',
        path: '/containers/json',
        query: { all: 1, filters: JSON.stringify({ label }) },
        signal,
      });
      return containerList.parse(answer).map((entry) => entry.Id);
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'ENVIRONMENT_LOST',
        phase: 'environment',
        what: 'looking for services',
      });
    }
  }

  #compose(
    args: readonly string[],
    run: {
      readonly files?: readonly string[];
      readonly input: string;
      readonly signal: AbortSignal;
    },
  ): Promise<ComposeResult> {
    const { composeCommand, ports } = this.#parts;
    if (composeCommand === null)
      throw new RolloutError('CAPABILITY_UNSUPPORTED', 'the task needs the compose CLI', {
        phase: 'environment',
        field: 'environment/docker-compose.yaml',
        remedy: 'Install the Docker compose plugin, version 2.',
      });
    const { contextDir } = this.#source;
    const project = ['--project-name', this.#spec.name, '--project-directory', contextDir];
    return runCompose(composeCommand, {
      args: [...project, '--file', '-', ...(run.files ?? []), ...args],
      variables: { ...ports.hostVariables, ...this.#spec.env, ...this.#infrastructure() },
      input: run.input,
      signal: run.signal,
    });
  }

  /** Variables that compose files of tasks refer to, and those that lead the CLI to our engine. */
  #infrastructure(): Record<string, string> {
    const { options } = this.#parts;
    const { cpus, memoryMb } = this.#spec.limits;
    const image = this.#source.mainImage;
    return {
      DOCKER_HOST: options.host,
      ...(options.dockerConfigDir === null ? {} : { DOCKER_CONFIG: options.dockerConfigDir }),
      ...(options.certPath === null
        ? {}
        : { DOCKER_CERT_PATH: options.certPath, DOCKER_TLS_VERIFY: '1' }),
      CONTEXT_DIR: this.#source.contextDir,
      MAIN_IMAGE_NAME: image ?? placeholder,
      ...(image === null ? {} : { PREBUILT_IMAGE_NAME: image }),
      ...(cpus === null ? {} : { CPUS: String(cpus) }),
      ...(memoryMb === null ? {} : { MEMORY: `${memoryMb}M` }),
    };
  }
}

/** Whether the engine, rather than the task, is why a project does not come up. */
function isPassing(stderr: string): boolean {
  return /OCI runtime create failed|broken pipe|connection re(?:set|fused)|deadline exceeded/i.test(
    stderr,
  );
}
