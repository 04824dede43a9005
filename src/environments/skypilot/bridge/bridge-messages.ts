/** What the bridge says (`python/slipway_skypilot/bridge.py`): one JSON document a line. */
import { z } from 'zod';

const failure = z.object({
  kind: z.enum([
    'not-found',
    'exists',
    'auth',
    'rate-limited',
    'refused',
    'unavailable',
    'unsupported',
    'failed',
    'cancelled',
  ]),
  message: z.string(),
  status: z.number().nullish(),
  /** Seconds. */
  retry_after: z.number().nullish(),
});

export type BridgeFailure = z.infer<typeof failure>;

export const fromBridgeSchema = z.union([
  z.object({ ready: z.object({ python: z.string(), sdk: z.string().nullable() }) }),
  z.object({ broken: z.object({ missing: z.boolean(), message: z.string() }) }),
  z.object({ id: z.number().int(), error: failure }),
  z.object({ id: z.number().int(), value: z.unknown() }),
]);

export const sandboxRecord = z.object({
  name: z.string(),
  status: z.string(),
  error: z.string().nullish(),
});

export type SandboxRecord = z.infer<typeof sandboxRecord>;

export const executed = z.object({
  exit_code: z.number().int(),
  stdout: z.base64(),
  stderr: z.base64(),
});

export type BridgeMethod = 'create' | 'list' | 'execute' | 'write' | 'read' | 'terminate';

/** A line holds at most what one file part or one piece of output makes in base64, and a little. */
export const maxBridgeLineBytes = 64 * 1024 * 1024;
