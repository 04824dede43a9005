import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProgram } from '../../../src/environments/local/host-command.ts';
import { lackOfUserNetwork, noRuntime } from '../../../src/environments/local/preflight.ts';

test(
  'a machine without the tunnel device cannot give sandboxes a network, and says how to get it',
  { skip: findProgram('slirp4netns') === null ? 'slirp4netns is not installed' : false },
  () => {
    const device = '/dev/no-such-tunnel';
    const lack = lackOfUserNetwork(device) ?? '';
    assert.match(lack, /ENOENT/);
    assert.ok(lack.includes(`--device ${device}`));
    assert.equal(lackOfUserNetwork('/dev/null'), null);
  },
);

for (const [title, isAllowed, remedy] of [
  ['is told of both ways', false, /runc.*--env docker.*--allow-unsandboxed/],
  ['but plain processes, which are allowed, is told of proot', true, /runc.*install proot/],
] as const)
  test(`a machine where nothing can be used ${title}`, () => {
    const error = noRuntime(['runc: needs root', 'unshare: not allowed'], isAllowed);
    assert.equal(error.code, 'ENVIRONMENT_UNAVAILABLE');
    assert.match(error.message, /runc: needs root; unshare: not allowed/);
    assert.match(error.remedy ?? '', remedy);
  });
