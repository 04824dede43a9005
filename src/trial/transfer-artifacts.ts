import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Environment } from '../environments/environment.ts';
import { artifactDestination } from '../tasks/artifacts.ts';
import type { Artifact } from '../tasks/task.ts';
import { asRoot, takeBackFolders, workingFolder } from './sandbox-folders.ts';
import { quote } from './shell-quote.ts';

/**
 * Brings collected artifacts to where they came from, in the sandbox of a separate verifier. A folder is emptied first; what was not
 * collected is left out. Relative sources lie in the working folder of both sandboxes.
 */
export async function transferArtifacts(
  environment: Environment,
  from: { readonly artifactsDir: string; readonly artifacts: readonly Artifact[] },
  signal: AbortSignal,
): Promise<void> {
  for (const artifact of from.artifacts) {
    const host = path.join(from.artifactsDir, ...artifactDestination(artifact).split('/'));
    const found = await stat(host).catch(() => null);
    if (found === null) continue;
    const target = artifact.source.startsWith('/')
      ? artifact.source
      : path.posix.join(await workingFolder(environment, { user: null }, signal), artifact.source);
    if (found.isDirectory()) {
      await takeBackFolders(environment, [{ dir: target, mode: '0777' }], signal);
      await environment.uploadDir(host, target, signal);
    } else {
      const parent = quote(path.posix.dirname(target));
      await asRoot(
        environment,
        `[ -d ${parent} ] || { mkdir -p ${parent} && chmod 0777 ${parent}; }`,
        signal,
      );
      await environment.uploadFile(host, target, signal);
    }
  }
}
