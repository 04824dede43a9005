import { lowerId, shortId } from '../core/ids.ts';

/** Name of a trial as Harbor makes it: the task's name behind its last `/`, at most 32 characters, `__`, seven random ones. */
export function generateTrialName(taskName: string): string {
  const base = taskName
    .slice(taskName.lastIndexOf('/') + 1)
    .slice(0, 32)
    .replace(/[_-]+$/, '');
  return `${base}__${shortId(7)}`;
}

const maxLength = 63;

/**
 * Name of a sandbox: lower case, at most 63 characters, with random characters of its own, so that trial names that differ only in case or
 * beyond the cut never share one. `part` tells the sandboxes of one trial apart.
 */
export function sandboxName(trialName: string, part: string): string {
  const tail = `-${slug(part)}-${lowerId(8)}`;
  const room = maxLength - 'slipway-'.length - tail.length;
  return `slipway-${slug(trialName).slice(0, room).replace(/-+$/, '')}${tail}`;
}

function slug(text: string): string {
  return (
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 40) || 'x'
  );
}
