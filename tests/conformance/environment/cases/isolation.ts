import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConformanceCase, SystemCall } from '../adapter.ts';
import { output } from '../looking.ts';
import { linger } from './kill.ts';
import { newMarker } from './exec.ts';

const refusedCalls: readonly SystemCall[] = ['unshare-user', 'keyctl', 'bpf', 'mount', 'reboot'];

/** Bits of capabilities that Docker does not give by default either. */
const forbiddenCapabilities = {
  CAP_NET_ADMIN: 12n,
  CAP_SYS_MODULE: 16n,
  CAP_SYS_RAWIO: 17n,
  CAP_SYS_PTRACE: 19n,
  CAP_SYS_ADMIN: 21n,
  CAP_SYS_BOOT: 22n,
  CAP_SYS_TIME: 25n,
};

/** Writing `h` to the last one only prints its help. */
const kernelKnobs = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/pid_max',
  '/proc/sys/vm/swappiness',
  '/proc/sys/kernel/sysrq',
  '/proc/sysrq-trigger',
];

export const isolationCases: readonly ConformanceCase[] = [
  ...refusedCalls.map((call): ConformanceCase => ({
    id: `isolation.call-${call}`,
    title: `the system call for ${call} is refused`,
    async run({ shared, probes, signal }) {
      const answer = await output(await shared(), probes.systemCall(call), signal);
      assert.match(answer, /^errno=(1|38)$/); // EPERM or ENOSYS
    },
  })),
  {
    id: 'isolation.capabilities',
    title: 'root in the sandbox holds none of the capabilities that reach beyond it',
    async run({ shared, signal }) {
      const environment = await shared();
      for (const set of ['CapEff', 'CapBnd']) {
        const line = await output(environment, `grep ^${set}: /proc/self/status`, signal);
        const bits = BigInt(`0x${line.split(/\s+/)[1]}`);
        const held = Object.entries(forbiddenCapabilities).filter(([, bit]) => (bits >> bit) & 1n);
        assert.deepEqual(held, [], set);
      }
    },
  },
  {
    id: 'isolation.seccomp',
    title: 'a system call filter is in force',
    async run({ shared, signal }) {
      const line = await output(await shared(), 'grep ^Seccomp: /proc/self/status', signal);
      assert.match(line, /\b2$/);
    },
  },
  {
    id: 'isolation.host-processes',
    title: 'processes of the host are invisible',
    async run({ shared, defer, signal }) {
      const marker = newMarker();
      const child = spawn('sleep', [`300.${marker}`]);
      defer(async () => {
        child.kill('SIGKILL');
        await once(child, 'exit');
      });
      const command = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '`;
      const seen = await output(await shared(), command, signal);
      assert.ok(seen.length > 0);
      assert.ok(!seen.includes(`300.${marker}`));
    },
  },
  {
    id: 'isolation.host-files',
    title: 'files of the host are invisible',
    async run({ shared, folder, signal }) {
      const secret = join(folder, 'secret');
      await writeFile(secret, 'of the host');
      const environment = await shared();
      for (const path of [secret, `/proc/1/root${secret}`, `/proc/1/cwd/..${secret}`]) {
        const result = await environment.exec({ command: `cat "${path}"` }, signal);
        assert.notEqual(result.exitCode, 0, path);
      }
    },
  },
  {
    id: 'isolation.kernel-knobs',
    title: 'switches of the kernel cannot be written, and its memory cannot be read',
    async run({ shared, signal }) {
      const environment = await shared();
      const knobs = kernelKnobs.filter((knob) => existsSync(knob));
      assert.ok(knobs.length > 0);
      for (const knob of knobs) {
        const result = await environment.exec({ command: `printf h > ${knob}` }, signal);
        assert.notEqual(result.exitCode, 0, knob);
      }
      const memory = await environment.exec({ command: 'head -c 16 /proc/kcore' }, signal);
      assert.equal(memory.stdout, '');
    },
  },
  {
    id: 'isolation.devices',
    title: 'the disks of the host cannot be read through a device file',
    async run({ start, signal }) {
      const partitions = (await readFile('/proc/partitions', 'utf8')).split('\n').slice(2);
      const disks = partitions
        .map((line) => line.trim().split(/\s+/))
        .flatMap(([major, minor]) => (major && minor ? [`${major} ${minor}`] : []));
      const environment = await start();
      for (const disk of ['1 0', ...disks.slice(0, 3)]) {
        const command = `rm -f /tmp/disk; mknod /tmp/disk b ${disk} && head -c 512 /tmp/disk`;
        const result = await environment.exec({ command }, signal);
        assert.notEqual(result.exitCode, 0, disk);
        assert.equal(result.stdout, '');
      }
    },
  },
  {
    id: 'isolation.cgroups',
    title: 'a sandbox cannot make cgroups of its own',
    async run({ shared, signal }) {
      const command =
        'for d in /sys/fs/cgroup /sys/fs/cgroup/*/; do mkdir "$d/own" && [ -e "$d/own/cgroup.procs" ] && echo made; done';
      const result = await (await shared()).exec({ command }, signal);
      assert.equal(result.stdout, '');
    },
  },
  {
    id: 'isolation.siblings',
    title: 'two sandboxes see neither files nor processes of each other',
    async run(bench) {
      const { start, signal } = bench;
      const marker = newMarker();
      const [one, other] = await Promise.all([start(), start()]);
      await output(one, 'echo mine > /only-here', signal);
      const alive = await linger(bench, one, 'plain', marker);
      const seen = await other.exec({ command: 'cat /only-here' }, signal);
      assert.notEqual(seen.exitCode, 0);
      const command = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '`;
      assert.ok(!(await output(other, command, signal)).includes(marker));
      await other.killProcesses({ keys: new Set() }, signal);
      assert.equal(await alive(), 1);
    },
  },
];
