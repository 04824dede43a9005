/** One injected fault and everything that must be said of it: on our API, and on the wire of both callbacks. */
import type { ControllerRequest } from '../../../src/callbacks/rollout-controller.ts';
import type { Fault } from '../../fakes/environment/faults.ts';
import type { FolderFiles } from '../../fakes/task-folder.ts';

/** How the model's address answers a call. */
export type EngineAnswer =
  'well' | 'status-500' | 'status-429' | 'status-401' | 'overflow' | 'nothing' | 'garbage' | 'cut';

export interface WireSide {
  readonly status: 'success' | 'failure';
  readonly category: string | null;
}

export interface OutcomeRow {
  /** Part of ids, folders and sandbox names. */
  readonly name: string;
  /**
   * `native`: sandboxes in memory. `crowded`: one running place, which another rollout holds. `sandbox`: real sandboxes, the agent as everywhere.
   * `terminus`: real sandboxes and terminus-2.
   */
  readonly server: 'native' | 'local' | 'crowded' | 'sandbox' | 'terminus';
  /** Of the task; its first word of the instruction is what the agent does. */
  readonly files?: FolderFiles;
  readonly agentDoes?: string;
  /** Strikes where the subject holds `in`, in the row's own sandboxes only. */
  readonly fault?: Omit<Fault, 'when'> & { readonly in?: string };
  readonly engine?: EngineAnswer;
  readonly request?: Partial<ControllerRequest>;
  /** In the sandbox, by the agent `command`; its exit code is the agent's. */
  readonly command?: string;
  /** No callback is taken: nobody listens. */
  readonly isDeaf?: boolean;
  readonly api: {
    readonly stage: string;
    readonly cause: string | null;
    readonly trainable: boolean;
    readonly retryable: boolean;
    /** Channels of the verdict; null = none. */
    readonly verdict: Readonly<Record<string, number>> | null;
  };
  readonly completion: WireSide;
  readonly grader: WireSide & {
    readonly reward: number | null;
    readonly hasSample: boolean;
  };
  readonly message: string | RegExp | null;
}

/** What was seen of one rollout. */
export interface OutcomeEvidence {
  readonly api: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
  readonly callbacks: readonly {
    readonly channel: string;
    readonly key: string | null;
    readonly text: string;
  }[];
  /** States of the deliveries on the API, by channel. */
  readonly deliveries: Readonly<Record<string, string>>;
}
