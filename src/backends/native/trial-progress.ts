/** What a trial does, as the progress of its rollout: which part of it is waited for, who has to act, and until when. */
import { cutText } from '../../core/cut-text.ts';
import type { Task } from '../../tasks/task.ts';
import {
  agentLimitMs,
  agentSetupLimitMs,
  environmentLimitMs,
  healthcheckLimitMs,
  ownLimits,
  verifierLimitMs,
} from '../../trial/timeouts.ts';
import type { TrialEvent } from '../../trial/trial-events.ts';
import type { TrialConfig } from '../../wire/harbor/trial-config.ts';
import type { RolloutProgress, WaitKind } from '../../wire/rollout/progress.ts';

/** What is waited for in a stage, by its name. */
const waits: Readonly<Record<string, WaitKind>> = {
  'checking agent': 'agent-setup',
  'starting environment': 'sandbox-create',
  'bringing environment files': 'sandbox-create',
  'checking health': 'healthcheck',
  'bringing skills': 'agent-setup',
  'setting up agent': 'agent-setup',
  'preparing step': 'agent-setup',
  'running agent': 'agent',
  'stopping agent': 'collect',
  'saving agent logs': 'collect',
  'collecting artifacts': 'collect',
  'cleaning verifier folders': 'collect',
  'running verifier': 'verifier',
  'running separate verifier': 'verifier',
  'archiving step': 'collect',
};

export interface TrialFacts {
  readonly config: TrialConfig;
  /** null = not loaded. */
  readonly task: Task | null;
}

export class TrialProgressMap {
  #current: RolloutProgress | null = null;

  /** The progress after an event; null = it says nothing new. */
  after(event: TrialEvent, facts: TrialFacts, now: Date): RolloutProgress | null {
    switch (event.type) {
      case 'trial:started':
        return this.#set({ stage: 'loading task', kind: 'task', limitMs: null }, facts, now);
      case 'stage:started': {
        const { stage, step } = event;
        const name = step === null ? stage : `${step}: ${stage}`;
        const kind = waits[stage] ?? 'collect';
        return this.#set({ stage: name, kind, limitMs: limitMs(kind, step, facts) }, facts, now);
      }
      case 'stage:progress':
        return this.#line(event.line, now);
      case 'stage:ended':
        // What follows the verdict is the end of the sandbox, which is no stage of its own.
        return event.phase === 'verifier'
          ? this.#set(
              { stage: 'cleaning up', kind: 'sandbox-destroy', limitMs: ownLimits.destroyMs },
              facts,
              now,
            )
          : null;
      case 'trial:cancelled':
      case 'trial:ended':
        return null;
    }
  }

  #set(
    at: { readonly stage: string; readonly kind: WaitKind; readonly limitMs: number | null },
    facts: TrialFacts,
    now: Date,
  ): RolloutProgress {
    const { stage, kind, limitMs: limit } = at;
    const deadline = limit === null ? null : new Date(now.getTime() + limit);
    this.#current = {
      stage,
      waitingOn: { kind, owner: ownerOf(kind, facts), detail: null, since: now, deadline },
      lastProgressAt: now,
    };
    return this.#current;
  }

  /** Only building and pulling an image tell lines. */
  #line(line: string, now: Date): RolloutProgress | null {
    const { waitingOn, stage } = this.#current ?? {};
    if (stage === undefined || waitingOn == null) return null;
    const isStarting = waitingOn.kind === 'sandbox-create' || waitingOn.kind === 'image-build';
    const kind = isStarting ? 'image-build' : waitingOn.kind;
    this.#current = {
      stage,
      waitingOn: { ...waitingOn, kind, detail: cutText(line, 200) },
      lastProgressAt: now,
    };
    return this.#current;
  }
}

function ownerOf(kind: WaitKind, { config }: TrialFacts): string {
  if (kind === 'task') return 'task';
  if (kind === 'verifier') return 'verifier';
  if (kind === 'agent' || kind === 'agent-setup') return `agent ${config.agent.name ?? ''}`.trim();
  return `environment ${config.environment.type ?? ''}`.trim();
}

function limitMs(kind: WaitKind, stepName: string | null, facts: TrialFacts): number | null {
  const { config, task } = facts;
  if (kind === 'agent-setup') return agentSetupLimitMs(config);
  if (kind === 'collect') return ownLimits.artifactsMs;
  if (task === null) return null;
  const step = task.steps.find(({ name }) => name === stepName) ?? null;
  const { healthcheck } = task.environment;
  if (kind === 'sandbox-create') return environmentLimitMs(config, task);
  if (kind === 'healthcheck') return healthcheck === null ? null : healthcheckLimitMs(healthcheck);
  if (kind === 'agent') return agentLimitMs(config, task, step);
  return kind === 'verifier' ? verifierLimitMs(config, task, step) : null;
}
