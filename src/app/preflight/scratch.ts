import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Scope } from '../../core/scope.ts';

/** A folder for one check, gone with the scope. */
export async function scratchFolder(scope: Scope): Promise<string> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-preflight-'));
  scope.defer(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
