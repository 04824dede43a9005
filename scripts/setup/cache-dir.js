import { homedir } from 'node:os';
import { join } from 'node:path';

/** Slipway's cache folder: `$SLIPWAY_CACHE_DIR`, else `slipway` in the user's cache folder. */
export function cacheDir() {
  const own = process.env['SLIPWAY_CACHE_DIR'];
  if (own) return own;
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'slipway');
}
