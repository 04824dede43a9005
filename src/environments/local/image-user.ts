/** Who a command runs as, looked up in the image's own /etc/passwd and /etc/group as Docker does it. */
import { RolloutError } from '../../core/errors.ts';

export interface ImageUser {
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups. */
  readonly groups: readonly number[];
  readonly home: string;
}

export interface AccountFiles {
  /** Content of /etc/passwd and /etc/group; empty when absent. */
  readonly passwd: string;
  readonly group: string;
}

const maxId = 2 ** 32 - 2;

/**
 * @param wanted `name`, `uid`, `name:group`, `uid:gid`, a number, or empty for root. A number needs no entry. EXEC_FAILED when a
 *   name has none.
 */
export function lookUpUser(wanted: string | number, accounts: AccountFiles): ImageUser {
  const [userPart = '', groupPart] = String(wanted).trim().split(':', 2);
  const user = userPart === '' ? '0' : userPart;
  const entries = rows(accounts.passwd);
  // A name that looks like a number is tried as a name first, as in Docker.
  const entry =
    entries.find(([name]) => name === user) ??
    entries.find(([, , uid]) => isId(user) && uid === String(Number(user)));
  if (entry === undefined && !isId(user)) throw unknown('user', user);
  const uid = entry === undefined ? Number(user) : id(entry[2]);
  const gid = groupPart ? groupId(groupPart, accounts) : id(entry?.[3]);
  const name = entry?.[0];
  const groups = groupPart || name === undefined ? [] : memberships(name, accounts, gid);
  const home = entry?.[5];
  return { uid, gid, groups, home: home === undefined || home === '' ? '/' : home };
}

function groupId(group: string, accounts: AccountFiles): number {
  const entry = rows(accounts.group).find(([name]) => name === group);
  if (entry !== undefined) return id(entry[2]);
  if (!isId(group)) throw unknown('group', group);
  return Number(group);
}

function memberships(user: string, accounts: AccountFiles, primary: number): readonly number[] {
  const ids = rows(accounts.group)
    .filter(([, , , members = '']) => members.split(',').includes(user))
    .map(([, , gid]) => id(gid));
  return [...new Set(ids)].filter((gid) => gid !== primary);
}

function rows(text: string): string[][] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(':'));
}

function isId(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) <= maxId;
}

function id(text: string | undefined): number {
  return text !== undefined && isId(text) ? Number(text) : 0;
}

function unknown(what: 'user' | 'group', name: string): RolloutError {
  return new RolloutError('EXEC_FAILED', `the image has no ${what} "${name}"`, {
    phase: 'environment',
    field: what,
    retryable: false,
    remedy: `Create the ${what} in the task's Dockerfile, or name one of the image's.`,
  });
}
