/** What tests of the local environment share: a provider on a state folder of its own, and a look at what is left on the machine. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { createHash, randomUUID } from 'node:crypto';
import { systemClock } from '../../../src/core/clock.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';
import { findProgram } from '../../../src/environments/local/host-command.ts';
import { LocalProvider } from '../../../src/environments/local/local-provider.ts';
import type { LocalOptions } from '../../../src/environments/local/options.ts';
import { mountsBelow } from '../../../src/environments/local/removal.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';

export const baseImage = 'debian:bookworm-slim';

export const cacheDir =
  process.env['SLIPWAY_CACHE_DIR'] ??
  path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'slipway');

const imageArchivesDir =
  process.env['SLIPWAY_IMAGE_ARCHIVES'] ?? path.join(cacheDir, 'base-images');

/** Why sandboxes of this kind cannot be made here; null when they can. */
export function whyNoRunc(): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  try {
    execFileSync('runc', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'runc is not installed';
  }
  return whyNoImage();
}

/** Why plain processes cannot be run here; null when they can. */
export function whyNoProot(): string | null {
  const absent = ['proot', 'perl'].find((name) => findProgram(name) === null);
  return absent === undefined ? whyNoImage() : `${absent} is not installed`;
}

function whyNoImage(): string | null {
  return existsSync(imageArchivesDir) ? null : 'no base image (npm run setup)';
}

export class LocalBench implements Disposable {
  readonly stateDir: string;

  constructor(parent: string = tmpdir()) {
    this.stateDir = mkdtempSync(path.join(parent, 'slipway-local-'));
  }

  provider(options: Partial<LocalOptions> = {}): LocalProvider {
    return new LocalProvider(
      { stateDir: this.stateDir, cacheDir, imageArchivesDir, ...options },
      { locks: new FileLocks(systemClock) },
    );
  }

  spec(overrides: Partial<EnvironmentSpec> = {}): EnvironmentSpec {
    return {
      name: `local-${randomUUID().slice(0, 13)}`,
      labels: {
        storeId: 'tests',
        runId: 'tests-run',
        trial: 'tests__trial',
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      },
      image: { kind: 'prebuilt', reference: baseImage },
      forceBuild: false,
      workdir: null,
      env: {},
      limits: { cpus: null, memoryMb: null, storageMb: null, pids: null },
      network: { mode: 'no-network' },
      laterNetworks: [],
      hostEndpoint: null,
      extraCaBundle: null,
      layers: [],
      ...overrides,
    };
  }

  /** Sandboxes' folders, mounts, cgroups, loop devices and processes that belong to this state folder. */
  leftovers(): readonly string[] {
    return [
      ...names(path.join(this.stateDir, 'sandboxes')).map((name) => `folder ${name}`),
      ...names(path.join(this.stateDir, 'runtime')).map((name) => `record ${name}`),
      ...mountsBelow(this.stateDir).map((point) => `mount ${point}`),
      ...cgroups(this.stateDir).map((dir) => `cgroup ${dir}`),
      ...processes(this.stateDir).map((line) => `process ${line}`),
    ];
  }

  [Symbol.dispose](): void {
    rmSync(this.stateDir, { recursive: true, force: true });
  }
}

function names(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Groups under the parent group of this state folder, whose name the provider derives from it. */
function cgroups(stateDir: string): readonly string[] {
  const id = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  const roots = [
    '/sys/fs/cgroup',
    ...names('/sys/fs/cgroup').map((one) => `/sys/fs/cgroup/${one}`),
  ];
  return roots
    .flatMap((root) => names(root).map((name) => path.join(root, name)))
    .filter((dir) => path.basename(dir) === `slipway-${id}`);
}

function processes(mark: string): readonly string[] {
  return names('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(mark));
}
