import { caAssignments } from './extra-ca.ts';

/**
 * A Dockerfile whose stages find extra CA certificates while they build. Each stage gets build arguments for the variables: arguments
 * are set for `RUN` and do not stay in the image. `before` are instructions for each stage that bring the file itself.
 */
export function withCaCertificates(dockerfile: string, before: readonly string[] = []): string {
  const insertion = [...before, ...caAssignments.map((assignment) => `ARG ${assignment}`)];
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
