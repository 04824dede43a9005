/**
 * What people write for a repository: `org/name` (GitHub), `host/org/name`, an address, a GitHub `/tree/<ref>/<folder>` address, each
 * with an optional `@ref` behind it. Folders of this machine are refused: they have flags of their own.
 */
import { RolloutError } from '../../core/errors.ts';
import { parseGitUrl, percentDecoded, type GitRemote } from './git-url.ts';
import { gitRef, repositoryPath } from './task-reference.ts';

export interface RepositorySource {
  readonly remote: GitRemote;
  /** `host/org/name`, for names and cache folders. */
  readonly label: string;
  /** Branch, tag or commit; null = the default branch. */
  readonly ref: string | null;
  /** Folder inside the repository; null when none was written. */
  readonly subdir: string | null;
}

const scheme = /^(https?|ssh|git):\/\//i;
const scp = /^([A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:)(.+)$/;
const plainPart = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;

/** Throws REFERENCE_INVALID; `field` names the option that `text` came from. */
export function parseRepositorySource(text: string, field: string): RepositorySource {
  if (text === '' || /^[.~/-]/.test(text) || /^file:/i.test(text)) throw refused(field);
  if (scheme.test(text)) return fromUrl(text, field);
  const ssh = scp.exec(text);
  if (ssh?.[1] !== undefined && ssh[2] !== undefined) {
    const { body, ref } = splitRef(ssh[2], field);
    const remote = parseGitUrl(`${ssh[1]}${body}`, field);
    return { remote, label: labelOf(remote, body, field), ref, subdir: null };
  }
  return fromPlain(text, field);
}

function fromPlain(text: string, field: string): RepositorySource {
  const { body, ref } = splitRef(text, field);
  const parts = body.split('/');
  const [first = ''] = parts;
  if (!parts.every((part) => plainPart.test(part))) throw refused(field);
  const isHost = parts.length > 2 && first.includes('.');
  if (!isHost && parts.length !== 2) throw refused(field);
  const path = isHost ? body : `github.com/${body}`;
  const remote = parseGitUrl(`https://${path}`, field);
  return { remote, label: path.replace(/\.git$/, ''), ref, subdir: null };
}

function fromUrl(text: string, field: string): RepositorySource {
  const url = URL.parse(text);
  if (url === null) throw refused(field);
  const pathname = percentDecoded(url.pathname);
  if (pathname === null) throw refused(field);
  const { body, ref: written } = splitRef(pathname.replace(/^\/+|\/+$/g, ''), field);
  const at = body.indexOf('/tree/');
  const path = at === -1 ? body : body.slice(0, at);
  const [treeRef, ...folders] = at === -1 ? [] : body.slice(at + '/tree/'.length).split('/');
  if (treeRef !== undefined && written !== null)
    throw new RolloutError('REFERENCE_INVALID', 'a ref is given twice, by /tree/ and by @', {
      phase: 'resolve',
      field,
    });
  url.pathname = `/${path}`;
  const remote = parseGitUrl(url.href, field);
  return {
    remote,
    label: labelOf(remote, path, field),
    ref: treeRef === undefined ? written : gitRef(treeRef, field),
    subdir: folders.length === 0 ? null : repositoryPath(folders.join('/')),
  };
}

function splitRef(text: string, field: string): { body: string; ref: string | null } {
  const at = text.indexOf('@');
  if (at === -1) return { body: text, ref: null };
  return { body: text.slice(0, at), ref: gitRef(text.slice(at + 1), field) };
}

function labelOf(remote: GitRemote, path: string, field: string): string {
  const clean = path.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '');
  const parts = clean.split('/');
  if (remote.hostname === null || !parts.every((part) => plainPart.test(part) && part !== '..'))
    throw refused(field);
  return `${remote.place.replaceAll(/[^A-Za-z0-9.-]/g, '_')}/${clean}`;
}

function refused(field: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', 'this does not name a repository', {
    phase: 'resolve',
    field,
    remedy: 'Write org/name[@ref], host/org/name[@ref] or an address that git understands.',
  });
}
