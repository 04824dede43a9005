import { z } from 'zod';
import { hangKinds } from '../rollout/diagnosis.ts';
import { instant } from './common.ts';

/** Why one rollout, or the server, is not moving. */
export const diagnosisDocument = z.object({
  /** null = the whole server. */
  rollout_id: z.string().nullable(),
  kind: z.enum([...hangKinds, 'moving', 'ended', 'unclear']),
  /** Who has to act; null = nobody. */
  owner: z.string().nullable(),
  waiting_on: z.string().nullable(),
  since: instant.nullable(),
  /** When the wait ends by itself; null = no limit of its own. */
  deadline: instant.nullable(),
  evidence: z.array(z.string()),
  remedy: z.string().nullable(),
});
export type DiagnosisDocument = z.output<typeof diagnosisDocument>;

export const doctorDocument = z.object({ findings: z.array(diagnosisDocument) });
export type DoctorDocument = z.output<typeof doctorDocument>;
