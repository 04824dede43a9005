/**
 * How members are rolled out: the one thing that the drivers ask of the world. Adapters: `server/` (our HTTP API, as any trainer uses it), a plugin's `run`
 * (`plugins/`), and whatever a program implements in its own process.
 */
import type { MemberEnd, MemberRequest } from './member.ts';

export interface RolloutPort {
  /**
   * Runs one rollout to its end. How it ended is a value, also a failure: it rejects only for a defect, which counts as an infrastructure loss of this
   * member and costs no other. When `signal` fires nobody waits for the result any more: it is to settle soon, as `aborted`, and what runs
   * elsewhere is cancelled. The signal is the last resort: the abort first ends rollouts through engines and agent hook.
   */
  run(request: MemberRequest, signal: AbortSignal): Promise<MemberEnd>;
  /** Frees what the port holds. Idempotent; called when no rollout runs any more. */
  close(): Promise<void>;
}
