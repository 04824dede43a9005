import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ociConfig,
  type OciSandbox,
} from '../../../../src/environments/local/runtime/oci-config.ts';
import {
  overlayOptions,
  volatileOption,
} from '../../../../src/environments/local/runtime/overlay.ts';
import { seccompProfile } from '../../../../src/environments/local/runtime/seccomp-profile.ts';
import { SandboxFolder } from '../../../../src/environments/local/sandbox-folder.ts';

interface Document {
  readonly process: {
    readonly capabilities: Record<string, readonly string[] | undefined>;
    readonly user: object;
  };
  readonly mounts: readonly { readonly destination: string; readonly options: readonly string[] }[];
  readonly linux: {
    readonly namespaces: readonly { readonly type: string }[];
    readonly resources: Record<string, unknown>;
    readonly cgroupsPath?: string;
    readonly sysctl?: object;
  };
}

function document(overrides: Partial<OciSandbox> = {}, uid = 0): Document {
  return ociConfig({
    rootfs: '/r',
    hostname: 'h',
    init: {
      args: ['x'],
      cwd: '/',
      env: [],
      user: { uid, gid: 0, groups: [], home: '/' },
    },
    limits: { cpus: 1.5, memoryMb: 64, storageMb: null, pids: 9 },
    cgroupPath: '/p/n',
    network: 'own',
    hasCgroupNamespace: false,
    files: [{ from: '/f', to: '/t', isReadOnly: true }],
    layers: [],
    ...overrides,
  }) as Document;
}

test('limits are given as the runtime counts them', () => {
  const { resources } = document().linux;
  assert.deepEqual(resources['memory'], { limit: 64 * 1024 * 1024 });
  assert.deepEqual(resources['cpu'], { quota: 150_000, period: 100_000 });
  assert.deepEqual(resources['pids'], { limit: 9 });
});

test('without cgroups nothing of them is mentioned', () => {
  const { linux, mounts } = document({ cgroupPath: null });
  assert.equal(linux.cgroupsPath, undefined);
  assert.deepEqual(Object.keys(linux.resources), ['devices']);
  assert.ok(!mounts.some((mount) => mount.destination === '/sys/fs/cgroup'));
});

test('a sandbox on the network of the host gets no network namespace and no settings of one', () => {
  const { linux } = document({ network: 'host' });
  assert.ok(!linux.namespaces.some(({ type }) => type === 'network'));
  assert.equal(linux.sysctl, undefined);
});

test('a user other than root begins without capabilities', () => {
  assert.equal(document({}, 1000).process.capabilities['effective'], undefined);
  assert.ok(document().process.capabilities['effective']?.includes('CAP_CHOWN'));
});

test('files are mounted read-only where they should be', () => {
  const mount = document().mounts.find(({ destination }) => destination === '/t');
  assert.ok(mount?.options.includes('ro'));
});

const forbidden = [
  ...[
    'mount',
    'umount2',
    'unshare',
    'setns',
    'clone3',
    'bpf',
    'perf_event_open',
    'keyctl',
    'add_key',
  ],
  ...['reboot', 'init_module', 'kexec_load', 'io_uring_setup', 'userfaultfd', 'open_by_handle_at'],
  ...['pivot_root', 'swapon', 'settimeofday', 'quotactl', 'iopl', 'move_mount', 'fsopen'],
];
test('calls that reach beyond a sandbox are not allowed, ordinary ones are', () => {
  for (const architecture of ['x64', 'arm64', 'other']) {
    const { syscalls, defaultAction } = seccompProfile(architecture);
    assert.equal(defaultAction, 'SCMP_ACT_ERRNO');
    const allowed = new Set(
      syscalls.filter((rule) => rule.action === 'SCMP_ACT_ALLOW').flatMap((rule) => rule.names),
    );
    assert.deepEqual(
      forbidden.filter((name) => allowed.has(name)),
      [],
    );
    for (const name of ['read', 'openat', 'execve', 'ptrace', 'chroot', 'clone', 'socket', 'futex'])
      assert.ok(allowed.has(name), name);
  }
});

test('overlay options name layers shortly and escape what would end an option', () => {
  const folder = new SandboxFolder('/odd,path:x', 'n');
  const image = { id: '', layersDir: '/l', layers: ['b', 'a'], config: {} as never };
  assert.equal(
    overlayOptions(folder, image, ['volatile']),
    'lowerdir=b:a,upperdir=/odd\\,path\\:x/sandboxes/n/disk/upper,workdir=/odd\\,path\\:x/sandboxes/n/disk/work,volatile',
  );
});

for (const [kernel, options] of [
  ['5.9.1', []],
  ['5.10.0-8', ['volatile']],
  ['6.1', ['volatile']],
] as const)
  test(`kernel ${kernel}: ${options.length === 0 ? 'no volatile overlays' : 'volatile overlays'}`, () => {
    assert.deepEqual(volatileOption(kernel), options);
  });
