import { z } from 'zod';
import { instant } from './common.ts';

export const fileDocument = z.object({
  /** Relative, with `/`. */
  path: z.string(),
  size_bytes: z.int(),
  /** Hexadecimal; also the ETag of the file. */
  sha256: z.string(),
  modified_at: instant,
});
export type FileDocument = z.output<typeof fileDocument>;

export const filesDocument = z.object({ rollout_id: z.string(), files: z.array(fileDocument) });
export type FilesDocument = z.output<typeof filesDocument>;
