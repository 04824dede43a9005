/** What a run of the local environment left behind below its own folder: unlike a look at the whole machine, blind to what others run here. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { mountsBelow } from '../../src/environments/local/removal.ts';

/** One line each; looked for again until nothing is left or the time is over. */
export async function ownLeftovers(
  root: string,
  options: { readonly stateDir: string; readonly withinMs: number },
): Promise<readonly string[]> {
  const until = performance.now() + options.withinMs;
  for (;;) {
    const left = [
      ...mountsBelow(root).map((point) => `mount ${point}`),
      ...(await processesNaming(root)),
      ...(await entriesOf(options.stateDir, ['sandboxes', 'runs', 'runtime'])),
    ];
    if (left.length === 0 || performance.now() > until) return left;
    await delay(100);
  }
}

async function processesNaming(root: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      if (Number(pid) === process.pid) return [];
      const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return words.includes(root) ? [`process ${pid} ${words.replaceAll('\0', ' ')}`] : [];
    }),
  );
  return found.flat();
}

/** Folders of these parts, and files that hold something. */
async function entriesOf(stateDir: string, parts: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const part of parts)
    for (const name of await readdir(path.join(stateDir, part)).catch(() => [])) {
      const entry = await stat(path.join(stateDir, part, name)).catch(() => null);
      if (entry !== null) found.push(`${part}/${name}`);
    }
  return found;
}
