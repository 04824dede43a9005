/** The work behind `slipway sessions audit`. */
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { boundary } from '../core/errors.ts';
import { SamplesAudit, type AuditedSamples } from '../sessions/samples/audit.ts';
import { spillLines } from '../trajectory/spill.ts';

export type { AuditedSamples };

/** SAMPLES_INVALID for what cannot be read or does not agree with itself. */
export async function auditSamples(file: string, signal: AbortSignal): Promise<AuditedSamples> {
  return await boundary(
    { code: 'SAMPLES_INVALID', phase: 'config', what: `reading ${file}` },
    async () => {
      await using handle = await open(resolve(file), 'r');
      const audit = new SamplesAudit(file);
      for await (const line of spillLines(file, handle)) {
        signal.throwIfAborted();
        audit.line(line);
      }
      return audit.end();
    },
  );
}
