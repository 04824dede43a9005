/**
 * Kills a process that runs, archives and releases native rollouts, again and again, and looks at what is left: of every trial that had ended there is
 * the trajectory in its folder or the whole one in the archive.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { seededRandom } from '../../support/random.ts';

const script = path.join(import.meta.dirname, 'archiving-process.ts');

export interface KilledArchive {
  /** Trials that had ended, of all lives. */
  readonly ended: number;
  readonly archived: number;
  readonly lost: readonly string[];
}

/** `isReversed`: releases before it archives, as it must not. */
export async function killArchiving(options: {
  readonly kills: number;
  readonly seed: number;
  readonly isReversed?: boolean;
}): Promise<KilledArchive> {
  const random = seededRandom(options.seed);
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-killed-archive-'));
  try {
    const ids: string[] = [];
    for (let life = 1; life <= options.kills; life += 1)
      ids.push(...(await oneLife(root, life, { ...options, afterMs: 150 * random() })));
    const found = await Promise.all(ids.map(async (id) => await lookFor(root, id)));
    return {
      ended: ids.length,
      archived: found.filter((place) => place === 'archive').length,
      lost: ids.filter((_, index) => found[index] === null),
    };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** Ids whose trials had ended when the process was killed, some time after the first one. */
async function oneLife(
  root: string,
  life: number,
  { afterMs, isReversed }: { readonly afterMs: number; readonly isReversed?: boolean },
): Promise<readonly string[]> {
  const order = isReversed === true ? 'reversed' : 'right';
  const child = spawn(process.execPath, [script, root, String(life), order], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // A killed process cannot remove its task.
    env: { ...process.env, TMPDIR: root },
  });
  const closed = once(child, 'close');
  let told = '';
  const first = Promise.withResolvers<undefined>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    told += text;
    first.resolve(undefined);
  });
  await Promise.race([first.promise, closed]);
  await pause(afterMs);
  child.kill('SIGKILL');
  await closed;
  return told.split('\n').slice(0, -1);
}

async function lookFor(root: string, id: string): Promise<'archive' | 'trial' | null> {
  const isWhole = async (file: string): Promise<boolean> =>
    await readFile(path.join(root, file), 'utf8').then(
      (text) => (JSON.parse(text) as { readonly notes?: unknown }).notes === id,
      () => false,
    );
  if (await isWhole(`archive/${id}/trajectory.json`)) return 'archive';
  return (await isWhole(`data/trials/native-${id}/agent/trajectory.json`)) ? 'trial' : null;
}
