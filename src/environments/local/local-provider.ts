import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { LockPort } from '../../core/lock.ts';
import { LoopTurns } from '../../core/loop-turns.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
  Isolation,
} from '../environment.ts';
import { CgroupTree } from './cgroups/cgroup-tree.ts';
import { ImageResolver } from './images/image-resolver.ts';
import { ImageStore, type StoredImage } from './images/image-store.ts';
import { LocalEnvironment } from './local-environment.ts';
import type { Machine } from './machine.ts';
import {
  compileLocalOptions,
  localPorts,
  makePrivateDir,
  type CompiledLocalOptions,
  type LocalOptions,
  type LocalPorts,
} from './options.ts';
import { inspectMachine } from './preflight.ts';
import { HostScan } from './processes/host-scan.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import { SandboxFolder, sandboxesDir } from './sandbox-folder.ts';
import { SharedUnmount } from './shared-unmount.ts';

const sandboxName = /^[a-z0-9][a-z0-9-]{0,62}$/;

const labelsSchema = z.object({
  name: z.string(),
  labels: z.object({
    storeId: z.string(),
    runId: z.string(),
    trial: z.string(),
    expiresAt: z.string(),
  }),
});

/** The embedded environment: sandboxes on this machine without a daemon. */
export class LocalProvider implements EnvironmentProvider {
  readonly kind = 'local';
  readonly #options: CompiledLocalOptions;
  readonly #ports: LocalPorts;
  readonly #images: ImageResolver;
  readonly #cgroups: CgroupTree | null;
  readonly #scan = new HostScan();
  readonly #turns = new LoopTurns();
  readonly #mounts = new SharedUnmount(this.#turns);
  #machine: Machine | null = null;
  #inspecting: Promise<Machine> | null = null;

  /** CONFIG_INVALID when the options are wrong. Touches nothing. */
  constructor(options: LocalOptions, ports: Partial<LocalPorts> & { readonly locks: LockPort }) {
    this.#options = compileLocalOptions(options);
    this.#ports = localPorts(ports);
    const store = new ImageStore(path.join(this.#options.cacheDir, 'images'), ports.locks);
    this.#images = new ImageResolver(this.#options, this.#ports, store);
    // One parent group per state folder: another one's sandboxes are foreign, whatever their names.
    const id = createHash('sha256').update(this.#options.stateDir).digest('hex').slice(0, 12);
    this.#cgroups = CgroupTree.detect(`slipway-${id}`);
  }

  /** Of the weakest sandbox: a public one that shares the host's network reaches the services of its loopback. */
  get isolation(): Isolation {
    const { runtime, userNetworkLack } = this.#inspected;
    const sharesNetwork = this.#options.publicNetwork === 'host' || userNetworkLack !== null;
    return runtime.isolation === 'strict' && sharesNetwork ? 'weak' : runtime.isolation;
  }

  get capabilities(): EnvironmentCapabilities {
    return this.#inspected.capabilities;
  }

  async preflight(signal: AbortSignal): Promise<void> {
    await this.#inspect(signal);
  }

  environment(spec: EnvironmentSpec): Environment {
    return new LocalEnvironment(spec, {
      options: this.#options,
      machine: (signal) => this.#inspect(signal),
      cgroups: this.#cgroups,
      images: this.#images,
      scan: this.#scan,
      turns: this.#turns,
      mounts: this.#mounts,
      folder: this.#folder(spec.name),
    });
  }

  async destroyByName(
    name: string,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    const receipt = await removeSandbox(this.#folder(name), {
      cgroup: this.#cgroups?.group(name) ?? null,
      scan: this.#scan,
      turns: this.#turns,
      mounts: this.#mounts,
      deadlineMs: options.deadlineMs ?? defaultDestroyMs,
    });
    this.#cgroups?.removeParent();
    return receipt;
  }

  list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const names = namesIn(sandboxesDir(this.#options.stateDir));
    const found = names.map((name) => readLabels(this.#folder(name)));
    return Promise.resolve(found.filter((sandbox) => sandbox !== null));
  }

  close(): Promise<void> {
    this.#cgroups?.removeParent();
    return Promise.resolve();
  }

  /** Brings the images of an archive into the store, under the tags that it carries. IMAGE_INVALID, DISK_FULL. */
  loadArchive(archive: string, signal: AbortSignal): Promise<readonly StoredImage[]> {
    makePrivateDir(this.#options.cacheDir);
    return this.#images.store.loadArchive(archive, { signal });
  }

  get #inspected(): Machine {
    if (this.#machine !== null) return this.#machine;
    throw new Error('the capabilities of an environment are known after its preflight');
  }

  #folder(name: string): SandboxFolder {
    if (!sandboxName.test(name))
      throw new RolloutError('CONFIG_INVALID', `"${name}" cannot name a sandbox`, {
        phase: 'environment',
        field: 'name',
        remedy: 'Use up to 63 lower-case letters, digits and dashes.',
      });
    return new SandboxFolder(this.#options.stateDir, name);
  }

  async #inspect(signal: AbortSignal): Promise<Machine> {
    this.#inspecting ??= this.#inspectOnce().catch((error: unknown) => {
      this.#inspecting = null; // the next call looks again: something may have been installed
      throw error;
    });
    const machine = await this.#inspecting;
    signal.throwIfAborted();
    return machine;
  }

  async #inspectOnce(): Promise<Machine> {
    makePrivateDir(this.#options.stateDir);
    makePrivateDir(this.#options.cacheDir);
    using limit = new LinkedAbort([], { ms: inspectMs, reason: notInTime });
    const machine = await inspectMachine(
      {
        options: this.#options,
        cgroups: this.#cgroups,
        canBuild: this.#images.canBuild,
        turns: this.#turns,
      },
      limit.signal,
    );
    this.#machine = machine;
    this.#ports.logger.log('debug', 'local environment', {
      runtime: machine.runtime.name,
      isolation: this.isolation,
    });
    if (machine.userNetworkLack !== null)
      this.#ports.logger.log('warn', 'public sandboxes share the network of the host', {
        why: machine.userNetworkLack,
      });
    return machine;
  }
}

const inspectMs = 20_000;

function notInTime(): RolloutError {
  return new RolloutError('ENVIRONMENT_UNAVAILABLE', 'the runtime does not answer', {
    phase: 'environment',
    remedy: 'Look for hanging `runc` or `mount` processes.',
  });
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir).filter((name) => sandboxName.test(name));
  } catch {
    return []; // no sandbox was ever made here
  }
}

/** null while the sandbox is only just being made, or already half removed: the journal knows its name. */
function readLabels(folder: SandboxFolder): FoundSandbox | null {
  try {
    return labelsSchema.parse(JSON.parse(readFileSync(folder.labels, 'utf8')));
  } catch {
    return null;
  }
}
