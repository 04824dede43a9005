import { caAssignments, caFile } from '../../shared/extra-ca.ts';

/** Name of the certificates in the build context. */
export const caContextFile = '.slipway-ca-certificates.pem';

/**
 * A Dockerfile whose stages see extra CA certificates while they build. The engine's classic builder has neither secrets nor mounts, so
 * each stage gets the file, and build arguments for the variables: arguments are set for `RUN` and do not stay in the image.
 * What stays is one public file at the place where sandboxes have theirs.
 */
export function withCaCertificates(dockerfile: string): string {
  const lines = dockerfile.split('\n');
  const result: string[] = [];
  let isContinued = false;
  let from: string | null = null;
  for (const line of lines) {
    result.push(line);
    const isComment = line.trim().startsWith('#');
    if (!isContinued && /^\s*from\s/i.test(line)) from = line;
    else if (from !== null && !isComment) from += line;
    isContinued = isComment ? isContinued : /\\\s*$/.test(line);
    if (isContinued || from === null || isComment) continue;
    if (!/^\s*from\s+(?:--\S+\s+)*scratch(?:\s|$)/i.test(from)) result.push(...insertion);
    from = null;
  }
  return result.join('\n');
}

const insertion = [
  `COPY ${caContextFile} ${caFile}`,
  ...caAssignments.map((assignment) => `ARG ${assignment}`),
];
