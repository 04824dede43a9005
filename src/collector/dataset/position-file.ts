/** Keeps where a collector is, so that another process goes on there. */
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { boundary, RolloutError } from '../../core/errors.ts';
import { collectorBegin, type CollectorPosition } from '../group-source.ts';

const whole = z.int().min(0);

const positionSchema = z.object({
  slipway_collector: z.literal(1),
  dataset: z.object({ epoch: whole, offset: whole }),
  nextGroupIndex: whole,
  open: z.array(z.object({ groupIndex: whole, rowIndex: whole, epoch: whole, rounds: whole })),
  givenUpRows: z.array(whole),
  fingerprint: z.string().nullable().default(null),
});

/** A file that is not there is the beginning. CONFIG_INVALID for one that is something else. */
export async function readPosition(file: string): Promise<CollectorPosition> {
  const text = await boundary(
    { code: 'CONFIG_INVALID', phase: 'config', what: `reading the position ${file}` },
    async () => await readFile(file, 'utf8').catch(absent),
  );
  if (text === null) return collectorBegin;
  const position = positionSchema.safeParse(parsed(text));
  if (position.success) return position.data;
  throw new RolloutError('CONFIG_INVALID', `${file} is no position of a collector`, {
    ...{ phase: 'config', field: 'position' },
    remedy: 'Name another file, or remove this one to begin anew.',
  });
}

/** As a whole: a reader sees the old position or the new one, also after a crash. */
export async function writePosition(file: string, position: CollectorPosition): Promise<void> {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}-${randomUUID()}.tmp`);
  try {
    const text = `${JSON.stringify({ slipway_collector: 1, ...position })}\n`;
    await using handle = await open(draft, 'wx');
    await handle.writeFile(text);
    await handle.sync();
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
