/**
 * A task's compose files, resolved by the compose CLI into one model, and what we make of it: one document that is given back to the
 * CLI on its standard input, so that no file of ours lies on the disk. Dollar signs in a resolved model are escaped already; ours are
 * escaped here.
 */
import { z } from 'zod';
import type { EnvironmentLayer, ResourceLimits } from '../../environment.ts';
import { noNameOptions, noNameServer } from '../container-settings.ts';

const build = z.looseObject({
  context: z.string(),
  dockerfile: z.string().optional(),
  dockerfile_inline: z.string().optional(),
  target: z.string().optional(),
  args: z.record(z.string(), z.string().nullable()).optional(),
});

const service = z.looseObject({
  image: z.string().optional(),
  build: build.optional(),
  environment: z.record(z.string(), z.string().nullable()).nullish(),
  labels: z.record(z.string(), z.string()).nullish(),
  networks: z
    .record(z.string(), z.looseObject({ aliases: z.array(z.string()).optional() }).nullable())
    .nullish(),
  network_mode: z.string().optional(),
  volumes: z.array(z.unknown()).nullish(),
});

export const composeModel = z.looseObject({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.looseObject({}).nullable()).nullish(),
  volumes: z
    .record(z.string(), z.looseObject({ external: z.unknown().optional() }).nullable())
    .nullish(),
});

export type ComposeModel = z.output<typeof composeModel>;
export type ComposeService = z.output<typeof service>;
export type ComposeBuild = z.output<typeof build>;

export const mainService = 'main';

export interface SandboxOverlay {
  readonly labels: Readonly<Record<string, string>>;
  /** Image per service, when it is one that we made. */
  readonly images: Readonly<Record<string, string>>;
  /** For `main`; literal. */
  readonly env: Readonly<Record<string, string>>;
  /** For every service, below what it sets itself; literal. */
  readonly sharedEnv: Readonly<Record<string, string>>;
  readonly workdir: string | null;
  readonly limits: ResourceLimits;
  /** For `main`. */
  readonly layers: readonly EnvironmentLayer[];
  /** The sandbox's own network, on which then all services are and nothing else; null = the networks of the task. */
  readonly network: string | null;
  /** Never public: only names of services are resolved. */
  readonly isSecluded: boolean;
}

/** The model that is run. Published ports and fixed container names are dropped: attempts of one task run side by side. */
export function withOverlay(model: ComposeModel, overlay: SandboxOverlay): Record<string, unknown> {
  const services = Object.fromEntries(
    Object.entries(model.services).map(([name, one]) => [name, overlaid(name, one, overlay)]),
  );
  const networks =
    overlay.network === null
      ? labelled(model.networks, overlay.labels)
      : { default: { name: overlay.network, external: true } };
  const volumes = labelled(model.volumes, overlay.labels);
  return {
    ...model,
    name: undefined, // the project's name is given on the command line
    services,
    networks,
    ...(volumes === undefined ? {} : { volumes }),
  };
}

function overlaid(
  name: string,
  one: ComposeService,
  overlay: SandboxOverlay,
): Record<string, unknown> {
  const image = overlay.images[name] ?? one.image;
  const isMain = name === mainService;
  const environment = {
    ...escaped(overlay.sharedEnv),
    ...one.environment,
    ...(isMain ? escaped(overlay.env) : {}),
  };
  return {
    ...one,
    build: undefined,
    ports: undefined,
    container_name: undefined,
    ...(image === undefined ? {} : { image }),
    pull_policy: 'never', // images are here already, also those without a registry
    labels: { ...one.labels, ...escaped(overlay.labels) },
    environment,
    ...(isMain ? mainSettings(overlay) : {}),
    ...(isMain && overlay.layers.length > 0
      ? { volumes: [...(one.volumes ?? []), ...overlay.layers.map(layerVolume)] }
      : {}),
    ...(overlay.network === null ? {} : isolated(name, one, overlay)),
  };
}

function mainSettings(overlay: SandboxOverlay): Record<string, unknown> {
  const { cpus, memoryMb, pids } = overlay.limits;
  return {
    init: true,
    ...(overlay.workdir === null ? {} : { working_dir: escape(overlay.workdir) }),
    ...(cpus === null ? {} : { cpus }),
    ...(memoryMb === null ? {} : { mem_limit: `${memoryMb}m`, memswap_limit: `${memoryMb}m` }),
    ...(pids === null ? {} : { pids_limit: pids }),
  };
}

function layerVolume({ hostDir, at }: EnvironmentLayer): Record<string, unknown> {
  return { type: 'bind', source: escape(hostDir), target: escape(at), read_only: true };
}

/** The service on the sandbox's network only, under the names that it had on its own networks. */
function isolated(
  name: string,
  one: ComposeService,
  overlay: SandboxOverlay,
): Record<string, unknown> {
  const mode = one.network_mode ?? '';
  // Sharing another service's network, or having none, is as closed as the other service.
  if (mode === 'none' || mode.startsWith('service:')) return { networks: undefined };
  return {
    network_mode: undefined,
    networks: { default: { aliases: namesOfService(name, one) } },
    ...(overlay.isSecluded
      ? { dns: [noNameServer], dns_opt: noNameOptions, dns_search: ['.'] }
      : {}),
  };
}

/** Every name under which a service of the project is reached. */
export function namesOf(model: ComposeModel): readonly string[] {
  const names = Object.entries(model.services).flatMap(([name, one]) => namesOfService(name, one));
  return [...new Set(names)];
}

function namesOfService(name: string, one: ComposeService): readonly string[] {
  const aliases = Object.values(one.networks ?? {}).flatMap((network) => network?.aliases ?? []);
  return [...new Set([name, ...aliases])];
}

function labelled(
  things: Readonly<Record<string, Record<string, unknown> | null>> | null | undefined,
  labels: Readonly<Record<string, string>>,
): Record<string, unknown> | undefined {
  if (things === null || things === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(things).map(([key, value]) => {
      const isExternal = value?.['external'] !== undefined && value['external'] !== false;
      const own = (value?.['labels'] ?? {}) as Record<string, string>;
      return [key, isExternal ? value : { ...value, labels: { ...own, ...escaped(labels) } }];
    }),
  );
}

/** `$` begins an interpolation in a compose document; `$$` is a literal one. */
export function escape(value: string): string {
  return value.replaceAll('$', '$$$$');
}

function escaped(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, escape(value)]));
}
