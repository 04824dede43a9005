import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProgram } from '../../../src/environments/local/host-command.ts';
import { lackOfUserNetwork } from '../../../src/environments/local/preflight.ts';

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
