import type { EnvironmentLayer } from '../../environment.ts';

/** What a sandbox sees besides its image: /proc, /dev, /sys as Docker gives them, and our files. */
export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

/** A host file at a place in the sandbox. */
export interface FileMount {
  readonly from: string;
  readonly to: string;
  readonly isReadOnly: boolean;
}

const mount = (
  type: string,
  destination: string,
  options: readonly string[],
  source: string = type,
): OciMount => ({ destination, type, source, options });

export function systemMounts(options: { readonly hasCgroupMount: boolean }): readonly OciMount[] {
  return [
    mount('proc', '/proc', ['nosuid', 'noexec', 'nodev']),
    mount('tmpfs', '/dev', ['nosuid', 'strictatime', 'mode=755', 'size=65536k']),
    mount('devpts', '/dev/pts', [
      ...['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
    ]),
    mount('sysfs', '/sys', ['nosuid', 'noexec', 'nodev', 'ro']),
    ...(options.hasCgroupMount
      ? [mount('cgroup', '/sys/fs/cgroup', ['nosuid', 'noexec', 'nodev', 'relatime', 'ro'])]
      : []),
    mount('mqueue', '/dev/mqueue', ['nosuid', 'noexec', 'nodev']),
    mount('tmpfs', '/dev/shm', ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'], 'shm'),
  ];
}

export function fileMount(file: FileMount): OciMount {
  const access = file.isReadOnly ? 'ro' : 'rw';
  return mount('bind', file.to, ['bind', 'rprivate', 'nosuid', 'nodev', access], file.from);
}

/** Only the folder itself: what is mounted below it on the host is not shown. */
export function layerMount({ hostDir, at }: EnvironmentLayer): OciMount {
  return mount('bind', at, ['bind', 'rprivate', 'nosuid', 'nodev', 'ro'], hostDir);
}

export const maskedPaths = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
] as const;

export const readonlyPaths = [
  '/proc/bus',
  '/proc/fs',
  '/proc/irq',
  '/proc/sys',
  '/proc/sysrq-trigger',
] as const;
