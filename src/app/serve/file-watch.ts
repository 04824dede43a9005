import { stat } from 'node:fs/promises';
import type { Clock } from '../../core/clock.ts';

const everyMs = 2_000;

/**
 * Calls `changed` when one of the files is another than before. It looks at times and sizes now and then: notifications of the system get lost where a
 * file is a link into a folder that is replaced, which is how secrets are mounted into containers.
 */
export async function watchFiles(
  files: readonly string[],
  changed: () => Promise<void>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  let before = await marksOf(files);
  while (!signal.aborted) {
    try {
      await clock.sleep(everyMs, signal);
    } catch {
      return;
    }
    const now = await marksOf(files);
    if (now === before) continue;
    before = now;
    await changed();
  }
}

async function marksOf(files: readonly string[]): Promise<string> {
  const marks = await Promise.all(
    files.map(async (file) => {
      const found = await stat(file).catch(() => null);
      return found === null ? 'none' : `${found.ino} ${found.size} ${found.mtimeMs}`;
    }),
  );
  return marks.join('\n');
}
