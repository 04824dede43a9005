import type { Git, GitCommand } from './git.ts';
import { invalid, isFullHash } from './task-reference.ts';

const lookUpTimeoutMs = 30_000;

/**
 * The commit that a branch, a tag or (null) the default branch is now, asked of the remote; a full hash is itself and asks nobody.
 * Throws REFERENCE_INVALID for an unknown name and GIT_FAILED.
 */
export async function resolveCommit(
  git: Git,
  command: GitCommand,
  ref: string | null,
): Promise<string> {
  if (ref !== null && isFullHash(ref)) return ref;
  const name = ref ?? 'HEAD';
  const answer = await git.run(['ls-remote', '--', command.remote.url, name, `${name}^{}`], {
    timeoutMs: lookUpTimeoutMs,
    ...command,
  });
  const commits = new Map<string, string>();
  for (const line of answer.split('\n')) {
    const [hash, found] = line.split('\t');
    if (hash !== undefined && found !== undefined && isFullHash(hash)) commits.set(found, hash);
  }
  // An annotated tag is its own object; the line with ^{} is the commit behind it.
  const candidates = [
    name,
    `refs/${name}`,
    `refs/tags/${name}^{}`,
    `refs/tags/${name}`,
    `refs/heads/${name}`,
  ];
  for (const candidate of candidates) {
    const commit = commits.get(candidate);
    if (commit !== undefined) return commit;
  }
  throw ref === null
    ? invalid('git_url', 'the repository has no default branch: it is empty')
    : invalid(
        'git_commit_id',
        `the repository has no branch or tag ${name}`,
        'Give a branch, a tag or the full hash of a commit; git does not look up shortened hashes.',
      );
}
