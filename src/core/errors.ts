import { errorRegistry, type ErrorCode } from './error-registry.ts';

export type { ErrorCode } from './error-registry.ts';

/** Where in the life of a trial, or of the rollout around it, an error arose. */
export type Phase =
  | 'config'
  | 'resolve'
  | 'queue'
  | 'environment'
  | 'agent-setup'
  | 'agent'
  | 'model-call'
  | 'agent-stop'
  | 'collect'
  | 'verifier'
  | 'cleanup'
  | 'callback'
  | 'server';

export interface RolloutErrorOptions {
  readonly phase: Phase;
  /** Dotted path of the field, flag or file that is wrong, in the reader's own document: `environment.cpus`, `--env`. */
  readonly field?: string;
  /** What the reader can do about it, as one imperative sentence. */
  readonly remedy?: string;
  readonly cause?: unknown;
  /** Overrides the registry row, where the edge knows better. */
  readonly retryable?: boolean;
  /** Name of the exception that it was elsewhere, where that says more than the registry's; it stands in `result.json`. */
  readonly exceptionType?: string;
  /** How long whoever refused wants to be left alone, in milliseconds. */
  readonly retryAfterMs?: number;
  /** More for diagnosis, for example the last lines of a build log. Never secrets. */
  readonly detail?: string;
}

/** The one error type that crosses borders between parts. Branch on `code`, never on the message. */
export class RolloutError extends Error {
  override readonly name = 'RolloutError';
  readonly code: ErrorCode;
  readonly phase: Phase;
  readonly retryable: boolean;
  readonly field: string | null;
  readonly remedy: string | null;
  readonly detail: string | null;
  readonly retryAfterMs: number | null;
  readonly exceptionType: string;

  constructor(code: ErrorCode, message: string, options: RolloutErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.phase = options.phase;
    this.retryable = options.retryable ?? errorRegistry[code].retryable;
    this.field = options.field ?? null;
    this.remedy = options.remedy ?? null;
    this.detail = options.detail ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.exceptionType = options.exceptionType ?? errorRegistry[code].harborType;
  }

  /** One line for a person: code, message, field and remedy. No stack. */
  describe(): string {
    const field = this.field === null ? '' : ` [${this.field}]`;
    const remedy = this.remedy === null ? '' : ` — ${this.remedy}`;
    return `${this.code}${field}: ${this.message}${remedy}`;
  }
}

export function isRolloutError(value: unknown, code?: ErrorCode): value is RolloutError {
  return value instanceof RolloutError && (code === undefined || value.code === code);
}

/** The message of anything that was thrown. */
export function messageOf(value: unknown): string {
  return value instanceof Error ? value.message : String(value);
}

/** Of anything that was thrown, for the log: where it comes from, or what it is. */
export function traceOf(value: unknown): string {
  return value instanceof Error ? (value.stack ?? value.message) : String(value);
}

const noSpaceCodes = new Set(['ENOSPC', 'EDQUOT']);

/** Attributes a foreign failure to a phase, once; typed errors pass through unchanged. A full disk is recognised everywhere. */
export function attribute(
  error: unknown,
  code: ErrorCode,
  phase: Phase,
  what: string,
): RolloutError {
  if (error instanceof RolloutError) return error;
  const system = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  if (system !== undefined && noSpaceCodes.has(system))
    return new RolloutError('DISK_FULL', `${what}: no space left`, {
      phase,
      cause: error,
      remedy: 'Free disk space on the host, then run the job again: it resumes.',
    });
  return new RolloutError(code, `${what}: ${messageOf(error)}`, { phase, cause: error });
}

/** Runs `work` and attributes what it throws; see {@link attribute}. */
export async function boundary<T>(
  at: { readonly code: ErrorCode; readonly phase: Phase; readonly what: string },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw attribute(error, at.code, at.phase, at.what);
  }
}
