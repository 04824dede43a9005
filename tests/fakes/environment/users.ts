import { RolloutError } from '../../../src/core/errors.ts';
import type { FakeFiles, Owner } from './fake-files.ts';

export interface FakeUser extends Owner {
  readonly name: string;
  readonly group: string;
  readonly home: string;
}

/** Looks a user up as `docker exec --user` does: names must be known, numbers need not be. */
export async function findUser(files: FakeFiles, wanted: string | number): Promise<FakeUser> {
  const text = String(wanted);
  const users = (await files.readFile('/etc/passwd')).trim().split('\n');
  const groups = (await files.readFile('/etc/group')).trim().split('\n');
  for (const line of users) {
    const [name = '', , uid, gid, , home = '/'] = line.split(':');
    if (name !== text && uid !== text) continue;
    const group = groups.find((row) => row.split(':')[2] === gid)?.split(':')[0] ?? String(gid);
    return { name, uid: Number(uid), gid: Number(gid), group, home };
  }
  if (!/^\d+$/.test(text))
    throw new RolloutError('EXEC_FAILED', `the image has no user '${text}'`, {
      phase: 'environment',
    });
  return { name: text, uid: Number(text), gid: 0, group: 'root', home: '/' };
}
