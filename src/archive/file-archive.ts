/** The archive as folders: `DIR/ENCODED_ID/NAME`. */
import type { Logger } from '../core/logger.ts';
import type { ArchivedFile, ArchivedRollout, RolloutArchive } from './rollout-archive.ts';

export class FileRolloutArchive implements RolloutArchive {
  /** Nothing is touched before the first call. `dir`: absolute, `archive/` of the data folder. */
  constructor(_options: { readonly dir: string; readonly logger: Logger }) {}

  save(_rollout: ArchivedRollout): ReturnType<RolloutArchive['save']> {
    throw new Error('not built yet');
  }

  list(_rolloutId: string): Promise<readonly ArchivedFile[]> {
    throw new Error('not built yet');
  }

  locate(_rolloutId: string, _path: string): Promise<string | null> {
    throw new Error('not built yet');
  }

  document(_rolloutId: string, _name: string): Promise<unknown> {
    throw new Error('not built yet');
  }

  remove(_rolloutId: string): Promise<void> {
    throw new Error('not built yet');
  }

  trim(_maxBytes: number): Promise<readonly string[]> {
    throw new Error('not built yet');
  }
}
