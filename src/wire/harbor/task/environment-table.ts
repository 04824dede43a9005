import { z } from 'zod';
import { laxBoolean, laxInteger, laxNumber, nullable } from '../lax.ts';
import { healthcheckTable } from './healthcheck.ts';
import { mcpServerTable } from './mcp-server.ts';
import { hostsProblems, networkFields, type NetworkMode } from './network-fields.ts';
import { readResourceSize } from './resource-size.ts';
import { crossCheck, stringMap, table, type CrossProblem, type PartlyChecked } from './table.ts';

const os = z.preprocess(
  (name) => (typeof name === 'string' ? name.toLowerCase() : name),
  z.enum(['linux', 'windows']),
);

const tpuTable = table(
  z.object({
    type: z.string().min(1, 'must not be empty'),
    topology: z
      .string()
      .trim()
      .regex(/^[1-9]\d*(x[1-9]\d*)+$/, 'expected a topology such as 2x4'),
  }),
);

const fields = {
  ...networkFields,
  build_timeout_sec: laxNumber.default(600),
  docker_image: nullable(z.string()),
  os: os.default('linux'),
  cpus: nullable(laxInteger),
  memory_mb: nullable(laxInteger),
  storage_mb: nullable(laxInteger),
  gpus: nullable(laxInteger),
  gpu_types: nullable(z.array(z.string())),
  tpu: nullable(tpuTable),
  mcp_servers: z.array(mcpServerTable).default([]),
  env: stringMap.default({}),
  skills_dir: nullable(z.string()),
  healthcheck: nullable(healthcheckTable),
  workdir: nullable(z.string()),
};

/** Older spellings. A value of the wrong type in `memory` or `storage` is dropped, as Harbor does. */
const deprecatedFields = {
  allow_internet: nullable(laxBoolean),
  memory: nullable(z.unknown()),
  storage: nullable(z.unknown()),
};

const sizes = [
  { old: 'memory', current: 'memory_mb' },
  { old: 'storage', current: 'storage_mb' },
] as const;

/** `[environment]`, `[verifier.environment]` and `[steps.verifier.environment]`; older spellings folded into the current ones. */
export const environmentTable = table(
  z
    .object({ ...fields, ...deprecatedFields })
    .check(crossCheck((table) => hostsProblems(effectiveMode(table), table['allowed_hosts'])))
    .check(crossCheck(sizeProblems))
    .transform(({ allow_internet: _, memory, storage, ...current }) => ({
      ...current,
      network_mode: effectiveMode({ ...current, allow_internet: _ }) as NetworkMode,
      memory_mb: current.memory_mb ?? sizeOf(memory),
      storage_mb: current.storage_mb ?? sizeOf(storage),
    })),
);
export type EnvironmentTable = z.output<typeof environmentTable>;

/** The written mode; else what `allow_internet` says, unless hosts are listed; else public. */
function effectiveMode(table: PartlyChecked): unknown {
  if (table['network_mode'] !== null) return table['network_mode'];
  return table['allow_internet'] === false && table['allowed_hosts'] === null
    ? 'no-network'
    : 'public';
}

function sizeOf(value: unknown): number | null {
  return typeof value === 'string' ? readResourceSize(value) : null;
}

function sizeProblems(table: PartlyChecked): readonly CrossProblem[] {
  return sizes.flatMap(({ old, current }): readonly CrossProblem[] => {
    const text = table[old];
    if (typeof text !== 'string') return [];
    const size = readResourceSize(text);
    if (size === null)
      return [{ path: [old], message: `expected a number with the suffix G, M or K, as in "4G"` }];
    const explicit = table[current];
    if (typeof explicit !== 'number' || explicit === size) return [];
    return [{ path: [old], message: `says ${size} MiB, but ${current} says ${explicit}` }];
  });
}
