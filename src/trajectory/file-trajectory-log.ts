/**
 * A trajectory on disk. Each step is cleaned of secrets, appended to the spill and forgotten; the document is put together from the spill as a
 * stream and takes its place by rename, so that a reader sees a whole document or the one before. Calls take effect in the order they are made.
 */
import { randomUUID } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../core/clock.ts';
import { systemClock } from '../core/clock.ts';
import { boundary } from '../core/errors.ts';
import { atifText } from '../wire/atif/atif-text.ts';
import type { AtifFinalMetrics, AtifStep } from '../wire/atif/atif.ts';
import { TrajectoryRedactor } from './redact.ts';
import { headFields, readSpill, spillFileOf, type SpillHead } from './spill.ts';
import type {
  NewStep,
  TrajectoryHead,
  TrajectoryLog,
  TrajectoryLogOptions,
} from './trajectory-log.ts';

/** A checkpoint waits at least this many times as long as the last one took: all of them together cost a tenth of the time. */
const restFactor = 10;
const chunkLength = 256 * 1024;

/** Opens a log for a new document; what stands in its place goes. */
export async function openTrajectory(
  options: TrajectoryLogOptions,
  clock: Pick<Clock, 'monotonicMs'> = systemClock,
): Promise<TrajectoryLog> {
  const redactor = new TrajectoryRedactor(options.secrets);
  const { sessionId, trajectoryId, agent, notes, extra } = options.head;
  const head = {
    ...(redactor.clean({ sessionId, trajectoryId, notes, extra }) as Partial<TrajectoryHead>),
    agent: redactor.agent(agent),
  };
  const whole: TrajectoryHead = {
    sessionId,
    trajectoryId: null,
    notes: null,
    extra: null,
    ...head,
  };
  const firstLine: SpillHead = { slipway_spill: 1, head: whole };
  const text = atifText(firstLine, null, 'head');
  return await written(options.file, async () => {
    const spill = spillFileOf(options.file);
    // Removed and made anew: whatever an untrusted writer put there, a link for example, is not followed.
    await rm(spill, { force: true });
    await rm(options.file, { force: true });
    const handle = await open(spill, 'wx');
    try {
      await handle.appendFile(`${text}\n`);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new FileTrajectoryLog({
      file: options.file,
      spill,
      handle,
      head: whole,
      redactor,
      clock,
    });
  });
}

interface LogParts {
  readonly file: string;
  readonly spill: string;
  readonly handle: FileHandle;
  /** Without secrets. */
  readonly head: TrajectoryHead;
  readonly redactor: TrajectoryRedactor;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

type DocumentEnd = Parameters<TrajectoryLog['close']>[0];

class FileTrajectoryLog implements TrajectoryLog {
  readonly #parts: LogParts;
  #stepCount = 0;
  /** The end of all that was asked for so far. */
  #tail: Promise<unknown> = Promise.resolve();
  #lastWrite = { endedMs: -Infinity, tookMs: 0 };
  #closing: Promise<void> | null = null;
  /** Why a step could not be spilled. Nothing is written after that: the step would be missing in what looks whole. */
  #lost: Error | null = null;

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  get stepCount(): number {
    return this.#stepCount;
  }

  async append(step: NewStep, options: { readonly sampledText?: string } = {}): Promise<number> {
    this.#assertOpen();
    const number = this.#stepCount + 1;
    const cleaned = ordered(number, this.#parts.redactor.step(step, options.sampledText));
    const line = atifText(cleaned, null, `steps.${number - 1}`);
    this.#stepCount = number;
    await this.#inTurn(async () => {
      if (this.#lost !== null) throw this.#lost;
      try {
        await this.#parts.handle.appendFile(`${line}\n`);
      } catch (error) {
        this.#lost = toError(error);
        throw error;
      }
    });
    return number;
  }

  async checkpoint(finalMetrics: AtifFinalMetrics | null): Promise<void> {
    this.#assertOpen();
    await this.#inTurn(async () => {
      const { endedMs, tookMs } = this.#lastWrite;
      if (this.#stepCount === 0) return;
      if (this.#parts.clock.monotonicMs() - endedMs < restFactor * tookMs) return;
      await this.#write({ finalMetrics });
    });
  }

  close(end: DocumentEnd): Promise<void> {
    this.#closing ??= this.#close(end);
    return this.#closing;
  }

  leave(): Promise<void> {
    this.#closing ??= this.#inTurn(() => this.#parts.handle.close());
    return this.#closing;
  }

  async #close(end: DocumentEnd): Promise<void> {
    const { handle, spill } = this.#parts;
    try {
      await this.#inTurn(async () => {
        if (this.#stepCount > 0) await this.#write(end);
      });
    } finally {
      await handle.close();
    }
    await rm(spill, { force: true });
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new Error('the trajectory is closed');
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#tail.then(() => written(this.#parts.file, work));
    this.#tail = turn.catch(() => undefined); // the caller has the failure
    return turn;
  }

  async #write(end: DocumentEnd): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    const { file, clock } = this.#parts;
    const startedMs = clock.monotonicMs();
    const draft = path.join(path.dirname(file), `.${path.basename(file)}-${randomUUID()}.tmp`);
    try {
      await using target = await open(draft, 'wx');
      await this.#writeTo(target, end);
      await target.sync();
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    const endedMs = clock.monotonicMs();
    this.#lastWrite = { endedMs, tookMs: endedMs - startedMs };
  }

  async #writeTo(target: FileHandle, end: DocumentEnd): Promise<void> {
    const { head, spill, redactor } = this.#parts;
    let pending = `{\n${fieldTexts(headFields(head))},\n  "steps": [`;
    let separator = '\n    ';
    for await (const line of readSpill(spill)) {
      if ('slipway_spill' in line) continue;
      pending += separator + atifText(line, 2, `steps.${line.step_id - 1}`);
      separator = ',\n    ';
      if (pending.length < chunkLength) continue;
      await target.appendFile(pending);
      pending = '';
    }
    const last = redactor.clean({
      notes: end.notes ?? head.notes,
      final_metrics: end.finalMetrics,
      continued_trajectory_ref: end.continuedTrajectoryRef,
      extra: head.extra,
    }) as object;
    const lastTexts = fieldTexts(last);
    await target.appendFile(`${pending}\n  ]${lastTexts === '' ? '' : `,\n${lastTexts}`}\n}\n`);
  }
}

function toError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}

function fieldTexts(fields: object): string {
  return Object.entries(fields)
    .map(([key, value]) => `  "${key}": ${atifText(value, 1, key)}`)
    .join(',\n');
}

/** The order in which the format lists the fields of a step. */
const stepFields = [
  'timestamp',
  'source',
  'model_name',
  'reasoning_effort',
  'message',
  'reasoning_content',
  'tool_calls',
  'observation',
  'metrics',
  'is_copied_context',
  'llm_call_count',
  'extra',
] as const satisfies readonly (keyof NewStep)[];

function ordered(number: number, step: NewStep): AtifStep {
  const entries = stepFields.flatMap((field) => (field in step ? [[field, step[field]]] : []));
  return { step_id: number, ...(Object.fromEntries(entries) as NewStep) };
}

function written<T>(file: string, work: () => Promise<T>): Promise<T> {
  return boundary(
    { code: 'TRAJECTORY_WRITE_FAILED', phase: 'collect', what: `writing ${path.basename(file)}` },
    work,
  );
}
