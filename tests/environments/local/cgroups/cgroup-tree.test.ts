import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { CgroupTree } from '../../../../src/environments/local/cgroups/cgroup-tree.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'slipway-cgroup-'));
after(() => rmSync(dir, { recursive: true }));

test('a host with hierarchies of version 1 is used by them, the second version only cleaned', () => {
  const root = path.join(dir, 'v1');
  const mounts = [
    `cgroup ${root}/pids cgroup rw,relatime,pids 0 0`,
    `cgroup ${root}/freezer cgroup rw,relatime,freezer 0 0`,
    `cgroup ${root}/cpu cgroup rw,relatime,cpu,cpuacct 0 0`,
    `cgroup2 ${root}/unified cgroup2 rw,relatime 0 0`,
  ].join('\n');
  const tree = CgroupTree.detect('ours', mounts);
  assert.equal(tree?.version, 1);
  for (const one of ['pids', 'freezer', 'cpu', 'unified'])
    mkdirSync(path.join(root, one, 'ours/box'), { recursive: true });
  writeFileSync(path.join(root, 'pids/ours/box/cgroup.procs'), '12\n34\n');
  writeFileSync(path.join(root, 'freezer/ours/box/freezer.state'), 'THAWED\n');
  const group = tree.group('box');
  assert.deepEqual(group.pids(), [12, 34]);
  assert.equal(group.setFrozen(true), true);
  assert.equal(readFileSync(path.join(root, 'freezer/ours/box/freezer.state'), 'utf8'), 'FROZEN');
  assert.equal(group.isFrozen, true);
  assert.equal(group.killAll(), false);
  group.hasten();
  assert.equal(readFileSync(path.join(root, 'cpu/ours/box/cpu.shares'), 'utf8'), '262144');
  rmSync(path.join(root, 'pids/ours/box/cgroup.procs'));
  rmSync(path.join(root, 'freezer/ours/box/freezer.state'));
  rmSync(path.join(root, 'cpu/ours/box/cpu.shares'));
  assert.equal(group.remove(), true);
  tree.removeParent();
  assert.ok(!existsSync(path.join(root, 'unified/ours')));
});

test('a host with version 2 only is used by it, with sub-groups counted', () => {
  const root = path.join(dir, 'v2');
  const tree = CgroupTree.detect('ours', `cgroup2 ${root} cgroup2 rw 0 0`);
  assert.equal(tree?.version, 2);
  mkdirSync(path.join(root, 'ours/box/below'), { recursive: true });
  writeFileSync(path.join(root, 'ours/box/cgroup.procs'), '1\n');
  writeFileSync(path.join(root, 'ours/box/below/cgroup.procs'), '2\n');
  writeFileSync(path.join(root, 'ours/box/cgroup.events'), 'populated 1\nfrozen 1\n');
  const group = tree.group('box');
  assert.deepEqual(group.pids(), [1, 2]);
  assert.equal(group.isFrozen, true);
  assert.equal(group.killAll(), true);
  assert.equal(readFileSync(path.join(root, 'ours/box/cgroup.kill'), 'utf8'), '1');
  group.hasten();
  assert.equal(readFileSync(path.join(root, 'ours/box/cpu.weight'), 'utf8'), '10000');
});

test('a host without cgroups has no tree', () => {
  assert.equal(CgroupTree.detect('ours', 'proc /proc proc rw 0 0'), null);
});

test('a group that does not exist has no processes and is removed', () => {
  const group = CgroupTree.detect('none', `cgroup2 ${dir}/v3 cgroup2 rw 0 0`)?.group('x');
  assert.deepEqual(group?.pids(), []);
  assert.equal(group.setFrozen(true), false);
  assert.equal(group.remove(), true);
});
