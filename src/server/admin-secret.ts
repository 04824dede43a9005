/** A secret of its own beside the keys: Miles sends it as bearer to the routes that end trials. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** null = there is none: whoever may call may call those routes. Whitespace around it does not count, and nothing but that is none. */
export type AdminSecret = { readonly fits: (authorization: string | undefined) => boolean } | null;

export function adminSecretOf(secret: string | null): AdminSecret {
  const trimmed = secret?.trim() ?? '';
  if (trimmed === '') return null;
  const digest = digestOf(trimmed);
  return {
    fits: (authorization) => {
      const [, given = ''] = /^bearer\s+(.*)$/is.exec(authorization?.trim() ?? '') ?? [];
      return timingSafeEqual(digestOf(given.trim()), digest);
    },
  };
}

/** Of one length, whatever was given. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
