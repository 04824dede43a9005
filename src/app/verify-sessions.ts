import { families, openCodec } from '../sessions/families/registry.ts';
import { verifyFamily, type VerifyReport } from '../sessions/verify/verify-family.ts';

export interface VerifySessionsOptions {
  readonly tokenizer: string;
  readonly family: string;
  /** null = the checkpoint's own. */
  readonly templateFile: string | null;
  readonly seed: number;
  readonly conversations: number;
}

export const familyNames: readonly string[] = families.map(({ name }) => name);

/** CONFIG_INVALID for a checkpoint that is not of the family. */
export async function verifySessions(options: VerifySessionsOptions): Promise<VerifyReport> {
  const { family, tokenizer, templateFile, seed, conversations } = options;
  const codec = await openCodec({ family, tokenizer, templateFile, now: () => new Date() });
  return verifyFamily(codec, { seed, conversations });
}
