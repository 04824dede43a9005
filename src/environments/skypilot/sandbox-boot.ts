/** From a spec to a sandbox that takes commands: its image, its creation, which may be lost on the way, and what it is given before a trial. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RolloutError, type ErrorCode } from '../../core/errors.ts';
import type { EnvironmentSpec } from '../environment.ts';
import { caBundle, caFile, caVariables } from '../shared/extra-ca.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import type { SandboxRecord } from './bridge/bridge-messages.ts';
import type { CompiledSkyOptions, SkyPorts } from './options.ts';
import type { RegistryImages } from './registry-images.ts';
import { isSkyError, skyFailure } from './sky-error.ts';
import { encodeLabels, labelsVariable, skyName } from './sky-names.ts';
import type { SkyService } from './sky-service.ts';
import { uploadDir, uploadFile } from './transfers.ts';

const maxCreates = 5;
const createBackoffMs = 1_000;
const longestBackoffMs = 30_000;
const readyPollMs = 500;
/** The service's own longest lifetime, and the shortest that a trial can begin in. */
const lifetimeSec = { longest: 86_400, shortest: 60 };

export interface SkyParts {
  readonly service: SkyService;
  readonly images: RegistryImages;
  readonly options: CompiledSkyOptions;
  readonly ports: SkyPorts;
}

/** The image as the service is told of it; null = the pool's. */
export async function prepareImage(
  spec: EnvironmentSpec,
  parts: SkyParts,
  how: { readonly signal: AbortSignal; readonly onProgress: (line: string) => void },
): Promise<string | null> {
  const { image } = spec;
  refuseUnsupported(spec);
  if (parts.options.pool !== null) return null;
  switch (image.kind) {
    case 'prebuilt':
      return image.reference;
    case 'dockerfile':
      return await parts.images.ensure(image, { ...how, forceBuild: spec.forceBuild });
    case 'compose':
      throw unsupported('side services of a compose file', 'environment.docker_image');
  }
}

/** Creates the sandbox; resolves when the service says that it runs. After a lost answer it is looked for by its name. */
export async function createSandbox(
  spec: EnvironmentSpec,
  { service, options, ports }: SkyParts,
  how: {
    readonly image: string | null;
    readonly signal: AbortSignal;
    readonly admitCreate: (signal: AbortSignal) => Promise<void>;
  },
): Promise<void> {
  const { image, signal } = how;
  const name = skyName(spec.name);
  const request = {
    name,
    image,
    pool: options.pool,
    cpus: options.pool === null ? spec.limits.cpus : null,
    memoryGb:
      options.pool === null && spec.limits.memoryMb !== null ? spec.limits.memoryMb / 1024 : null,
    registry: options.registry,
    contextName: options.contextName,
    namespace: options.namespace,
    env: {
      ...spec.env,
      ...(caOf(spec, options) === null ? {} : caVariables),
      [labelsVariable]: encodeLabels(spec),
    },
    secrets: options.secrets,
    isCutOff: spec.network.mode === 'no-network',
    lifetimeSec: lifetimeOf(spec.labels.expiresAt, ports.clock.now().getTime()),
    timeoutMs: options.createTimeoutMs,
  };
  for (let attempt = 1; ; attempt += 1)
    try {
      await untilRunning(await service.create(request, signal), { service, ports, signal });
      return;
    } catch (error) {
      signal.throwIfAborted();
      const isLost = isSkyError(error, 'unavailable', 'bridge-lost', 'exists');
      const found = isLost ? await find(service, name, signal) : null;
      if (found !== null && !hasFailed(found)) {
        await untilRunning(found, { service, ports, signal });
        return;
      }
      if (found !== null) await service.terminate(name, signal);
      // A throttle is told: whoever asks for all trials of this host waits then.
      if (!isLost || attempt === maxCreates)
        throw skyFailure(error, { ...at, what: 'creating the sandbox' });
      const growing = Math.min(longestBackoffMs, createBackoffMs * 2 ** (attempt - 1));
      await ports.clock.sleep(growing * (0.5 + Math.random() / 2), signal);
      await how.admitCreate(signal);
    }
}

/** The sandbox is up when a command has run in it; then come its working folder, certificates and, in a pool, the task's own files. */
export async function furnish(
  spec: EnvironmentSpec,
  { service, options }: SkyParts,
  signal: AbortSignal,
): Promise<void> {
  const target = { service, sandbox: skyName(spec.name) };
  const folder = spec.workdir === null ? ':' : `mkdir -p ${shellQuote(spec.workdir)}`;
  const argv = ['sh', '-c', folder];
  try {
    const request = { name: target.sandbox, argv, limitSec: 60, repeatable: true };
    const { exitCode, stderr } = await service.execute(request, signal);
    if (exitCode !== 0) throw new Error(`a shell ended with ${exitCode}: ${stderr.toString()}`);
  } catch (error) {
    signal.throwIfAborted();
    throw skyFailure(error, { ...at, what: 'the first command of the sandbox' });
  }
  const bundle = caOf(spec, options);
  if (bundle !== null) await bringText(target, await caBundle(bundle), { to: caFile, signal });
  if (options.pool !== null && spec.image.kind === 'dockerfile') {
    const { contextDir } = spec.image;
    if ((await readdir(contextDir)).length > 0)
      await uploadDir(target, contextDir, spec.workdir ?? '/workspace', signal);
  }
}

function caOf(spec: EnvironmentSpec, options: CompiledSkyOptions): string | null {
  return spec.extraCaBundle ?? options.extraCaBundle;
}

async function bringText(
  target: { readonly service: SkyService; readonly sandbox: string },
  text: string,
  how: { readonly to: string; readonly signal: AbortSignal },
): Promise<void> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'slipway-ca-'));
  try {
    const file = path.join(scratch, 'bundle.pem');
    await writeFile(file, text, { mode: 0o644 });
    await uploadFile(target, file, how.to, how.signal);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function find(
  service: SkyService,
  name: string,
  signal: AbortSignal,
): Promise<SandboxRecord | null> {
  return (await service.list(signal)).find((record) => record.name === name) ?? null;
}

async function untilRunning(
  created: SandboxRecord,
  how: { readonly service: SkyService; readonly ports: SkyPorts; readonly signal: AbortSignal },
): Promise<void> {
  const { service, ports, signal } = how;
  let record: SandboxRecord | null = created;
  for (;;) {
    if (record === null) throw startFailed('ENVIRONMENT_START_FAILED', 'it is gone');
    if (hasFailed(record)) throw failedCreate(record);
    if (/^(running|ready|active)$/i.test(record.status)) return;
    await ports.clock.sleep(readyPollMs, signal);
    record = await find(service, created.name, signal);
  }
}

function hasFailed({ status }: SandboxRecord): boolean {
  return /^(failed|error|terminat\w*|deleted)$/i.test(status);
}

/** Kubernetes' own words for an image that cannot be had. */
const noImage = /\b(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)\b/;

function failedCreate({ error }: SandboxRecord): RolloutError {
  const why = error ?? 'without a reason';
  return noImage.test(why)
    ? startFailed('IMAGE_NOT_FOUND', why)
    : startFailed('ENVIRONMENT_START_FAILED', why);
}

const at = { code: 'ENVIRONMENT_START_FAILED', phase: 'environment' } as const;

function startFailed(code: ErrorCode, why: string): RolloutError {
  const isImage = code === 'IMAGE_NOT_FOUND';
  return new RolloutError(code, `SkyPilot could not make the sandbox: ${why}`, {
    phase: 'environment',
    ...(isImage ? { field: 'environment.docker_image' } : {}),
    remedy: isImage
      ? 'Check the reference, and that the cluster may pull it.'
      : 'Look at the pod in the SkyPilot dashboard; the cluster may be out of room.',
  });
}

/** Seconds until the label's expiry: the service ends a sandbox that nobody removed. */
function lifetimeOf(expiresAt: string, nowMs: number): number {
  const left = Math.ceil((Date.parse(expiresAt) - nowMs) / 1000);
  const { longest, shortest } = lifetimeSec;
  return Number.isFinite(left) ? Math.min(longest, Math.max(shortest, left)) : longest;
}

function refuseUnsupported({ network, laterNetworks, layers, limits }: EnvironmentSpec): void {
  if (network.mode === 'allowlist')
    throw unsupported('a list of allowed hosts', 'environment.network');
  if (laterNetworks.some(({ mode }) => mode !== network.mode))
    throw unsupported('another network policy later', 'environment.network');
  if (layers.length > 0) throw unsupported('read-only layers', 'environment');
  if (limits.pids !== null) throw unsupported('a limit of processes', 'environment');
}

function unsupported(what: string, field: string): RolloutError {
  return new RolloutError('CAPABILITY_UNSUPPORTED', `skypilot has no ${what}`, {
    phase: 'environment',
    field,
    remedy: 'Run the task on an environment that has it, such as docker or local.',
  });
}
