/** What a server in a process that is gone kept of its rollouts, read from its folder: nobody is there to be asked. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { z } from 'zod';
import { FileRolloutArchive } from '../../archive/file-archive.ts';
import { RolloutError } from '../../core/errors.ts';
import { silentLogger } from '../../core/logger.ts';
import { archiveDirOf } from '../serve/data-folder.ts';
import type { KeptRollouts } from './collect-item.ts';
import type { EvalItem } from './eval-items.ts';
import { ItemCollector, type CollectorParts } from './item-collector.ts';

/** As the archive writes it. */
const outcomeFile = z.object({
  cause: z.string().nullable(),
  verdict: z.object({ rewards: z.record(z.string(), z.number()) }).nullable(),
});

export class OwnArchive implements KeptRollouts {
  readonly #archive: FileRolloutArchive;

  constructor(dataDir: string) {
    this.#archive = new FileRolloutArchive({ dir: archiveDirOf(dataDir), logger: silentLogger });
  }

  async rollout(id: string) {
    const found = outcomeFile.safeParse(await this.#archive.document(id, 'outcome.json'));
    return { outcome: found.success ? found.data : null, stage: null, isFinal: true };
  }

  async files(id: string) {
    const kept = await this.#archive.list(id);
    return {
      rollout_id: id,
      files: kept.map(({ path, sizeBytes, sha256, modifiedAt }) => ({
        ...{ path, size_bytes: sizeBytes, sha256, modified_at: modifiedAt.toISOString() },
      })),
    };
  }

  /** Always the whole file. */
  async download({ id, path }: { readonly id: string; readonly path: string }): Promise<Response> {
    const place = await this.#archive.locate(id, path);
    if (place === null)
      throw new RolloutError('ARCHIVE_UNSAFE', `${id} has no file ${path} any more`, {
        phase: 'server',
      });
    return new Response(Readable.toWeb(createReadStream(place)) as ReadableStream<Uint8Array>);
  }
}

/** What ended in an earlier life of the evaluation and was not fetched any more. Never rejects. */
export async function takeUpOwn(
  items: readonly EvalItem[],
  { dataDir, ...parts }: Omit<CollectorParts, 'client'> & { readonly dataDir: string },
): Promise<void> {
  const archive = new OwnArchive(dataDir);
  const collector = new ItemCollector({ ...parts, client: archive });
  let bare = 0;
  for (const item of items) {
    const kept = item.rolloutId === null ? null : await archive.rollout(item.rolloutId);
    if (kept?.outcome === null) bare += 1;
    collector.collect(item);
    await collector.settled();
  }
  if (bare > 0)
    parts.note(
      `${bare} of the runs of an earlier life ended before their archive was written: what their trials left is in ${join(dataDir, 'trials')}`,
    );
}
