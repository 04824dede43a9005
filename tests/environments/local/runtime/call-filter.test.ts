import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import {
  callFilter,
  underCallFilter,
} from '../../../../src/environments/local/runtime/call-filter.ts';

const hasPerl = spawnSync('perl', ['-e', '1']).status === 0;
const skip = hasPerl && process.arch === 'x64' ? false : 'needs perl, and numbers of x86-64';

/** `errno` of a call made under the filter. */
function errnoOf(call: string): number {
  const script = `my $r = syscall(${call}); print $r == -1 ? $!+0 : 0`;
  const [file = '', ...args] = underCallFilter(['perl', '-e', script]);
  return Number(execFileSync(file, args, { encoding: 'utf8' }));
}

for (const [title, call, errno] of [
  [
    'statx, which proot does not translate, is not implemented',
    '332, -100, (my $p = "/"), 0, 0, 0',
    38,
  ],
  ['openat2 and every later call are not implemented', '437, -100, (my $p = "/"), 0, 0', 38],
  ['mount is forbidden', '165, (my $f = "none"), (my $p = "/mnt"), (my $k = "tmpfs"), 0, 0', 1],
  ['close_range works', '436, 1000, 1000, 0', 0],
  ['an old call works', '39', 0],
] as const)
  test(`under the filter ${title}`, { skip }, () => {
    assert.equal(errnoOf(call), errno);
  });

test('a processor without numbers has no filter', () => {
  assert.equal(callFilter('riscv64'), null);
  assert.notEqual(callFilter('arm64'), null);
});
