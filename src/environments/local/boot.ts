/** The stages from "image ready" to "commands can run". */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import type { LoopTurns } from '../../core/loop-turns.ts';
import type { EnvironmentSpec } from '../environment.ts';
import { caBundle } from '../shared/extra-ca.ts';
import { mountLimitedDisk } from './disk-quota.ts';
import type { StoredImage } from './images/image-store.ts';
import type { Machine } from './machine.ts';
import { networkFiles, planNetwork } from './network-plan.ts';
import { SandboxNetwork } from './network/sandbox-network.ts';
import { makePrivateDir, type CompiledLocalOptions } from './options.ts';
import type { HostScan } from './processes/host-scan.ts';
import { childPids, readProcess } from './processes/process-table.ts';
import { SandboxProcesses } from './processes/sandbox-processes.ts';
import { TracedProcesses } from './processes/traced-processes.ts';
import { Sandbox } from './sandbox.ts';
import type { SandboxFolder } from './sandbox-folder.ts';
import { hostnameOf, ociSandbox } from './sandbox-plan.ts';

export interface BootRequest {
  readonly spec: EnvironmentSpec;
  readonly image: StoredImage;
  readonly folder: SandboxFolder;
  readonly machine: Machine;
  readonly scan: HostScan;
  readonly turns: LoopTurns;
  readonly options: CompiledLocalOptions;
}

/** How long an ENTRYPOINT is watched for ending at once. */
const entrypointMs = 150;
const firstChildMs = 1_000;

/** ENVIRONMENT_START_FAILED, CAPABILITY_UNSUPPORTED, DISK_FULL. What is half made is removed by name. */
export async function bootSandbox(request: BootRequest, signal: AbortSignal): Promise<Sandbox> {
  const { spec, image, folder, machine, scan, turns, options } = request;
  const networkKind = planNetwork(spec, machine, options);
  const network =
    networkKind === 'host'
      ? null
      : new SandboxNetwork({
          folder,
          policy: spec.network,
          later: spec.laterNetworks,
          hostEndpoint: spec.hostEndpoint,
          hasUserNamespace: machine.runtime.abilities.hasUserNamespace,
        });
  await makeFolder(request, signal);
  writeEtc(folder, networkFiles(hostnameOf(spec), networkKind));
  const extraCaBundle = spec.extraCaBundle ?? options.extraCaBundle;
  if (extraCaBundle !== null)
    writeFileSync(folder.caFile, await caBundle(extraCaBundle), { mode: 0o644 });
  const input = {
    ...{ spec, image, folder, extraCaBundle },
    network: networkKind,
    networkVariables: network?.variables ?? [],
  };
  const sandbox = ociSandbox(input, machine);
  const initPid = await machine.runtime.start({ folder, image, sandbox }, signal);
  if (image.config.entrypoint.length > 0) await watchEntrypoint(folder, initPid, signal);
  await untilInitHasChild(initPid, signal);
  const started = new Sandbox({
    initPid,
    network,
    rootOutlivesInit: machine.runtime.abilities.rootOutlivesInit,
    hasOwnRoot: machine.runtime.abilities.ownRoot,
    processes: new SandboxProcesses(initPid, {
      cgroup: machine.cgroups?.group(spec.name) ?? null,
      hasNamespace: machine.runtime.abilities.pidNamespace,
      traced: machine.runtime.abilities.tracer ? new TracedProcesses(folder, scan) : null,
      ...{ scan, turns },
    }),
    commands: { spec, image, folder, scan, turns, runtime: machine.runtime, extraCaBundle },
  });
  try {
    await network?.attach(initPid, signal);
  } catch (error) {
    await started.release();
    throw error;
  }
  return started;
}

/** The labels come first: from then on a cleaning finds the sandbox whatever happens. */
async function makeFolder({ spec, folder }: BootRequest, signal: AbortSignal): Promise<void> {
  makePrivateDir(path.dirname(folder.dir));
  try {
    mkdirSync(folder.dir, { mode: 0o700 });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? nameTaken(spec.name) : error;
  }
  writeFileSync(folder.labels, JSON.stringify({ name: spec.name, labels: spec.labels }));
  mkdirSync(folder.disk);
  mkdirSync(folder.rootfs);
  if (spec.limits.storageMb !== null) await mountLimitedDisk(folder, spec.limits.storageMb, signal);
  for (const dir of [folder.upper, folder.work, folder.etc]) mkdirSync(dir, { mode: 0o755 });
}

function writeEtc(folder: SandboxFolder, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files))
    writeFileSync(path.join(folder.etc, name), content, { mode: 0o644 });
}

/** What the init starts first belongs to the sandbox itself: it must be there when the sandbox's own processes are counted. */
async function untilInitHasChild(initPid: number, signal: AbortSignal): Promise<void> {
  const until = performance.now() + firstChildMs;
  while (performance.now() < until && childPids(initPid).length === 0 && isRunning(initPid))
    await delay(1, undefined, { signal });
}

function isRunning(pid: number): boolean {
  return readProcess(pid)?.isEnded === false;
}

async function watchEntrypoint(
  folder: SandboxFolder,
  initPid: number,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + entrypointMs;
  while (performance.now() < until) {
    if (!isRunning(initPid)) throw entrypointEnded(folder);
    await delay(15, undefined, { signal });
  }
}

function entrypointEnded(folder: SandboxFolder): RolloutError {
  return new RolloutError('ENVIRONMENT_START_FAILED', "the image's ENTRYPOINT ended at once", {
    phase: 'environment',
    retryable: false,
    field: 'environment/Dockerfile',
    detail: readFileSync(folder.initLog, 'utf8').slice(-4096),
    remedy: 'Make it run the command that it is given (`exec "$@"`), or leave it out.',
  });
}

function nameTaken(name: string): RolloutError {
  return new RolloutError('ENVIRONMENT_START_FAILED', `a sandbox ${name} exists already`, {
    phase: 'environment',
    retryable: false,
    remedy: 'Remove it with `slipway cleanup`, or use another name.',
  });
}
