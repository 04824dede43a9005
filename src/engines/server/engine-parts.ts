import type { Clock } from '../../core/clock.ts';
import type { FaultChooser } from './fault-script.ts';
import type { OpenCount } from './open-count.ts';
import type { RequestLog } from './request-log.ts';
import type { Scheduler } from './scheduler.ts';
import type { TokenModel } from './token-model.ts';

/** Which engine's extensions of the chat format are honoured. `openai` refuses all of them, as OpenAI does. */
export const dialects = ['sglang', 'vllm', 'both', 'openai'] as const;
export type Dialect = (typeof dialects)[number];

/** What the routes work with. */
export interface EngineParts {
  readonly model: TokenModel;
  readonly scheduler: Scheduler;
  readonly chooseFault: FaultChooser;
  readonly log: RequestLog | null;
  /** Answers whose last byte has not gone out, and requests without their line in the log. */
  readonly open: { readonly answers: OpenCount; readonly lines: OpenCount };
  readonly clock: Clock;
  readonly dialect: Dialect;
  /** Prompt and output together. */
  readonly contextTokens: number;
  readonly maxRunning: number;
  /** Where this server listens; known once it does. */
  readonly url: () => string;
}

export function speaks(dialect: Dialect, other: 'sglang' | 'vllm'): boolean {
  return dialect === other || dialect === 'both';
}
