import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lookUpUser } from '../../../src/environments/local/image-user.ts';

const accounts = {
  passwd:
    'root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1001::/home/bob:/bin/sh\n12:x:77:77::/odd:/bin/sh\n',
  group: 'root:x:0:\nbob:x:1001:\nwheel:x:10:root,bob\nvideo:x:44:bob\n',
};

const rows = [
  ['', { uid: 0, gid: 0, groups: [10], home: '/root' }],
  ['root', { uid: 0, gid: 0, groups: [10], home: '/root' }],
  ['bob', { uid: 1000, gid: 1001, groups: [10, 44], home: '/home/bob' }],
  [1000, { uid: 1000, gid: 1001, groups: [10, 44], home: '/home/bob' }],
  ['1000', { uid: 1000, gid: 1001, groups: [10, 44], home: '/home/bob' }],
  ['4242', { uid: 4242, gid: 0, groups: [], home: '/' }],
  ['bob:video', { uid: 1000, gid: 44, groups: [], home: '/home/bob' }],
  ['5:6', { uid: 5, gid: 6, groups: [], home: '/' }],
  ['12', { uid: 77, gid: 77, groups: [], home: '/odd' }],
] as const;
for (const [wanted, user] of rows)
  test(`user ${JSON.stringify(wanted)} of the image is uid ${user.uid}, gid ${user.gid}, home ${user.home}`, () => {
    assert.deepEqual(lookUpUser(wanted, accounts), user);
  });

for (const wanted of ['eve', 'bob:nobody', '99999999999'])
  test(`${wanted} is not known to the image: EXEC_FAILED`, () => {
    assert.throws(() => lookUpUser(wanted, accounts), { code: 'EXEC_FAILED', retryable: false });
  });

test('an image without accounts still has numeric users', () => {
  assert.equal(lookUpUser(7, { passwd: '', group: '' }).uid, 7);
});
