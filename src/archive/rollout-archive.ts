/**
 * What a finished rollout leaves on disk: `trajectory.json`, `diagnostics.json`, `outcome.json` and the files that its backend kept, in one folder per
 * rollout. Saving never fails a rollout: it answers what could not be kept.
 */
import type { KeptFile } from '../wire/rollout/kept-file.ts';

export interface ArchivedRollout {
  readonly rolloutId: string;
  /** Documents by file name, as JSON values; written pretty, by temporary name and rename. */
  readonly documents: Readonly<Record<string, unknown>>;
  readonly files: readonly KeptFile[];
  /** Replaced by `[REDACTED]` in everything that is kept. */
  readonly secrets: readonly string[];
}

export interface ArchivedFile {
  /** Relative, with `/`; never `..`, never absolute. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly modifiedAt: Date;
}

export interface RolloutArchive {
  /** Answers the names that could not be kept, with why; all else is on disk by then. Called again with more documents, it adds and replaces. */
  save(
    rollout: ArchivedRollout,
  ): Promise<readonly { readonly name: string; readonly problem: string }[]>;
  /** Sorted by path; empty = nothing is kept. */
  list(rolloutId: string): Promise<readonly ArchivedFile[]>;
  /** Host path of a file that `list` names; null for anything else, links included. */
  locate(rolloutId: string, path: string): Promise<string | null>;
  /** A document that was saved before; null = none. */
  document(rolloutId: string, name: string): Promise<unknown>;
  remove(rolloutId: string): Promise<void>;
  /** Removes the oldest until no more than `maxBytes` are kept; answers whose. */
  trim(maxBytes: number): Promise<readonly string[]>;
}
