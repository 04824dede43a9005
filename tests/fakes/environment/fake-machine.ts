import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { systemClock, type Clock } from '../../../src/core/clock.ts';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { SingleFlight } from '../../../src/core/single-flight.ts';
import type {
  EnvironmentCapabilities,
  EnvironmentSpec,
  ImageSource,
} from '../../../src/environments/environment.ts';
import type { FakeCommand } from './fake-commands.ts';
import { baseFiles } from './fake-files.ts';
import { buildImage, type FakeImage, type RunStep } from './fake-image.ts';
import { FakeSandbox } from './fake-sandbox.ts';
import { Faults } from './faults.ts';

export interface FakeMachineOptions {
  readonly clock?: Clock;
  /** References that `prebuilt` and FROM find, all the same small base. */
  readonly images?: readonly string[];
  readonly capabilities?: Partial<EnvironmentCapabilities>;
  /** Kind of the providers; default `fake`. */
  readonly kind?: string;
}

const commonImages = [
  'debian:bookworm-slim',
  'ubuntu:24.04',
  'python:3.13-slim-bookworm',
  'node:20-slim',
];

const declared: EnvironmentCapabilities = {
  compose: true,
  cpuLimit: true,
  memoryLimit: true,
  pidsLimit: true,
  diskQuota: false,
  gpus: false,
  tpus: false,
  users: true,
  noNetwork: true,
  allowlist: true,
  dynamicNetworkPolicy: true,
  hostEndpoint: true,
  build: true,
  layers: true,
  windows: false,
};

const composeSchema = z.object({
  services: z.record(
    z.string(),
    z.object({
      environment: z.union([z.array(z.string()), z.record(z.string(), z.string())]).optional(),
    }),
  ),
});

/** What lives on after a provider: sandboxes, images and planted faults, shared by all providers of the machine. */
export class FakeMachine {
  readonly kind: string;
  readonly clock: Clock;
  readonly capabilities: EnvironmentCapabilities;
  readonly faults = new Faults();
  /** Programs by name that every sandbox has, over those of the shell. */
  readonly commands = new Map<string, FakeCommand>();
  readonly sandboxes = new Map<string, FakeSandbox>();
  /** How many builds were begun. */
  builds = 0;
  readonly #references: ReadonlySet<string>;
  readonly #base: Promise<FakeImage>;
  readonly #built = new Map<string, FakeImage | RolloutError>();
  readonly #building = new SingleFlight<FakeImage>();

  constructor(options: FakeMachineOptions = {}) {
    this.kind = options.kind ?? 'fake';
    this.clock = options.clock ?? systemClock;
    this.capabilities = { ...declared, ...options.capabilities };
    this.#references = new Set(options.images ?? commonImages);
    this.#base = baseFiles().then((files) => ({
      files,
      env: {},
      workdir: '/',
      user: 'root',
      entrypoint: [],
    }));
  }

  /** The image of a spec, built when it is not yet. The file tree is the caller's to change. */
  async image(spec: EnvironmentSpec, signal: AbortSignal): Promise<FakeImage> {
    const { image } = spec;
    if (image.kind === 'prebuilt') return await copyOf(await this.#byReference(image.reference));
    if (image.kind === 'dockerfile') return await copyOf(await this.#build(spec, image, signal));
    return await copyOf(await this.#byReference(image.mainImage ?? 'debian:bookworm-slim'));
  }

  async create(spec: EnvironmentSpec, image: FakeImage, signal: AbortSignal): Promise<FakeSandbox> {
    const sandbox = new FakeSandbox(spec, image, this);
    if (spec.image.kind === 'compose')
      for (const file of spec.image.composeFiles)
        for (const [name, env] of await sideServices(file))
          sandbox.services.set(
            name,
            new FakeSandbox({ ...spec, env, workdir: null }, await copyOf(await this.#base), this),
          );
    signal.throwIfAborted();
    if (this.sandboxes.has(spec.name))
      throw new RolloutError('ENVIRONMENT_START_FAILED', `${spec.name} exists already`, {
        phase: 'environment',
      });
    this.sandboxes.set(spec.name, sandbox);
    return sandbox;
  }

  remove(name: string): void {
    this.sandboxes.get(name)?.stop();
    this.sandboxes.delete(name);
  }

  /** Command lines of all sandboxes that contain the marker. */
  processesWith(marker: string): readonly string[] {
    return [...this.sandboxes.values()]
      .flatMap(({ processes }) => processes.list())
      .map(({ argv }) => argv.join(' '))
      .filter((line) => line.includes(marker));
  }

  async #byReference(reference: string): Promise<FakeImage> {
    if (this.#references.has(reference)) return await this.#base;
    throw new RolloutError('IMAGE_NOT_FOUND', `no image ${reference}`, {
      phase: 'environment',
      remedy: 'Name an image of the fake machine.',
    });
  }

  async #build(
    spec: EnvironmentSpec,
    image: Extract<ImageSource, { kind: 'dockerfile' }>,
    signal: AbortSignal,
  ): Promise<FakeImage> {
    const known = spec.forceBuild ? undefined : this.#built.get(image.contextHash);
    if (known instanceof RolloutError) throw known;
    if (known !== undefined) return known;
    return await this.#building.run(image.contextHash, signal, async (building) => {
      this.builds += 1;
      const base = await this.#base;
      try {
        const world = {
          contextDir: image.contextDir,
          base: (reference: string) => {
            if (this.#references.has(reference)) return base;
            throw new RolloutError('IMAGE_NOT_FOUND', `no image ${reference}`, {
              phase: 'environment',
            });
          },
          run: this.#runStep(spec, building),
        };
        const built = await buildImage(world, building);
        this.#built.set(image.contextHash, built);
        return built;
      } catch (error) {
        if (isRolloutError(error)) this.#built.set(image.contextHash, error);
        throw error;
      }
    });
  }

  #runStep(spec: EnvironmentSpec, signal: AbortSignal): RunStep {
    return async (image, command) => {
      const step = { ...spec, workdir: null, env: {}, network: { mode: 'public' } as const };
      const builder = new FakeSandbox(step, image, this);
      const { exitCode, stdout, stderr } = await builder.exec({ command }, signal);
      builder.stop();
      return { exitCode, log: stdout + stderr };
    };
  }
}

async function copyOf(image: FakeImage): Promise<FakeImage> {
  return { ...image, files: await image.files.copy() };
}

/** Names and variables of the services beside `main`. */
async function sideServices(file: string): Promise<[string, Record<string, string>][]> {
  const { services } = composeSchema.parse(parse(await readFile(file, 'utf8')));
  return Object.entries(services)
    .filter(([name]) => name !== 'main')
    .map(([name, { environment = [] }]) => {
      const pairs = Array.isArray(environment)
        ? environment.map((line) => line.split(/=(.*)/s).slice(0, 2))
        : Object.entries(environment);
      return [name, Object.fromEntries(pairs) as Record<string, string>];
    });
}
