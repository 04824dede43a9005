/**
 * The run as ATIF: `trajectory.json`, with one document beside it per side conversation, and one per continuation when history is linear. Every step
 * of an agent stands for exactly one call of the model (or none, when there was no answer to record), so ids are never joined.
 */
import path from 'node:path';
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { ModelResult } from '../../engines/model-call.ts';
import { openTrajectory } from '../../trajectory/file-trajectory-log.ts';
import type { NewStep, TrajectoryLog } from '../../trajectory/trajectory-log.ts';
import type { AtifAgent, AtifFinalMetrics, AtifSubagentRef } from '../../wire/atif/atif.ts';
import {
  copiedSteps,
  replyStep,
  sampledTextOf,
  spokenTextOf,
  userStep,
  type StepSource,
} from './steps.ts';

/** Every file that a recorder writes, as globs. */
export const trajectoryFiles: readonly string[] = [
  'trajectory.json',
  'trajectory.*.json',
  'trajectory*.ndjson',
];

export interface RecorderParts {
  readonly logsDir: string;
  readonly sessionId: string;
  readonly agent: AtifAgent;
  readonly secrets: readonly string[];
  readonly isLinear: boolean;
  readonly source: StepSource;
}

export interface SubagentCall {
  /** Of the summary, counted from 1. */
  readonly index: number;
  readonly role: 'summary' | 'questions' | 'answers' | 'short-summary';
  /** What it does, in a few words. */
  readonly purpose: string;
  /** What it saw of other conversations. */
  readonly copied: readonly ChatMessage[];
  readonly prompt: string;
  readonly result: ModelResult;
}

export interface HandoffRecord {
  /** What the reader is told about why the conversation was cut. */
  readonly message: string;
  readonly refs: readonly AtifSubagentRef[];
  /** The conversation as it now begins, before `prompt`. */
  readonly history: readonly ChatMessage[];
  /** The next user message; null = the conversation goes on as it was. */
  readonly prompt: string | null;
}

export class TrajectoryRecorder {
  readonly #parts: RecorderParts;
  #log: TrajectoryLog;
  #continuations = 0;

  private constructor(parts: RecorderParts, log: TrajectoryLog) {
    this.#parts = parts;
    this.#log = log;
  }

  static async open(parts: RecorderParts): Promise<TrajectoryRecorder> {
    return new TrajectoryRecorder(parts, await openSegment(parts, 0));
  }

  async addUser(message: string): Promise<void> {
    await this.#log.append(userStep(message, this.#parts.source));
  }

  /** `result` null = a step without a call of the model. */
  async addAgent(step: NewStep, result: ModelResult | null): Promise<void> {
    await this.#log.append(step, result === null ? {} : { sampledText: sampledTextOf(result) });
  }

  /** The replies of the model before anything was made of them. */
  replyStep(result: ModelResult): NewStep {
    return replyStep(result, this.#parts.source);
  }

  now(): string {
    return this.#parts.source.now().toISOString();
  }

  async checkpoint(metrics: AtifFinalMetrics): Promise<void> {
    await this.#log.checkpoint(metrics);
  }

  /** Writes the whole document of one side conversation. */
  async addSubagent(call: SubagentCall): Promise<AtifSubagentRef> {
    const { logsDir, sessionId, agent, secrets, source } = this.#parts;
    const name = `trajectory.summarization-${call.index}-${call.role}.json`;
    const ownSession = `${sessionId}-summarization-${call.index}-${call.role}`;
    const log = await openTrajectory({
      file: path.join(logsDir, name),
      secrets,
      head: {
        sessionId: ownSession,
        trajectoryId: null,
        agent: {
          ...agent,
          name: `${agent.name}-summarization-${call.role}`,
          extra: {
            ...agent.extra,
            parent_session_id: this.#sessionId,
            summarization_index: call.index,
          },
        },
        notes: null,
        extra: null,
      },
    });
    try {
      for (const step of copiedSteps(call.copied)) await log.append(step);
      await log.append(userStep(call.prompt, source));
      const step = replyStep(call.result, source);
      await log.append(step, { sampledText: sampledTextOf(call.result) });
    } finally {
      await log.close({ finalMetrics: null });
    }
    return {
      session_id: ownSession,
      trajectory_path: name,
      extra: { summary: call.purpose },
    };
  }

  /** The cut in the conversation; with linear history the document ends here and the next one begins with what the model still sees. */
  async addHandoff(handoff: HandoffRecord, metrics: AtifFinalMetrics): Promise<void> {
    const { refs, prompt, message, history } = handoff;
    await this.#log.append(
      {
        source: 'system',
        message,
        timestamp: this.now(),
        ...(refs.length > 0 && { observation: { results: [{ subagent_trajectory_ref: refs }] } }),
        ...(prompt !== null && {
          extra: { context_management: { type: 'compaction', boundary: 'replace' } },
        }),
      },
      // Part of every later prompt, though no step of this document shows it: a secret in there counts.
      { sampledText: spokenTextOf(history) },
    );
    if (prompt === null) return;
    if (this.#parts.isLinear) {
      const next = this.#continuations + 1;
      const continuedTrajectoryRef = continuationFile(next);
      await this.#log.close({ finalMetrics: this.#finalMetrics(metrics), continuedTrajectoryRef });
      this.#continuations = next;
      this.#log = await openSegment(this.#parts, next);
      for (const step of copiedSteps(history)) await this.#log.append(step);
    }
    await this.addUser(prompt);
  }

  /** Idempotent. */
  async close(metrics: AtifFinalMetrics): Promise<void> {
    await this.#log.close({ finalMetrics: this.#finalMetrics(metrics) });
  }

  get #sessionId(): string {
    return segmentSession(this.#parts.sessionId, this.#continuations);
  }

  #finalMetrics(metrics: AtifFinalMetrics): AtifFinalMetrics {
    return { ...metrics, total_steps: this.#log.stepCount };
  }
}

function continuationFile(index: number): string {
  return index === 0 ? 'trajectory.json' : `trajectory.cont-${index}.json`;
}

function segmentSession(sessionId: string, index: number): string {
  return index === 0 ? sessionId : `${sessionId}-cont-${index}`;
}

function openSegment(parts: RecorderParts, index: number): Promise<TrajectoryLog> {
  const { agent } = parts;
  return openTrajectory({
    file: path.join(parts.logsDir, continuationFile(index)),
    secrets: parts.secrets,
    head: {
      sessionId: segmentSession(parts.sessionId, index),
      trajectoryId: null,
      agent:
        index === 0 ? agent : { ...agent, extra: { ...agent.extra, continuation_index: index } },
      notes: null,
      extra: null,
    },
  });
}
