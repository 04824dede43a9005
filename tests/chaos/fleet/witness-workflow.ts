/**
 * An agent that writes down that it is at work: a line when it begins, one every moment, and one when it ends. They go straight to a file that outlives
 * its process, so that what a killed or cut-off worker did is known too.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  AgentWorkflow,
  Grader,
  GraderContext,
  WorkflowAnswer,
  WorkflowContext,
} from '../../../src/backends/local/user-code.ts';
import type { WorkSight } from './judge-fleet.ts';

/** Of the worker. */
export interface WitnessConfig {
  readonly host: string;
  readonly file: string;
}

/** Of the rollout. */
export interface WitnessMetadata {
  /** Its own. */
  readonly key: string;
  readonly tenant: string;
  readonly duration_ms: number;
  readonly reward: number;
}

const beatMs = 25;

export class WitnessedWork implements AgentWorkflow<WitnessConfig> {
  async run({ config, metadata, signal }: WorkflowContext<WitnessConfig>): Promise<WorkflowAnswer> {
    const { key, tenant, duration_ms: durationMs } = metadata as unknown as WitnessMetadata;
    const { host, file } = config;
    const tell = (what: WorkSight['what']): void => {
      const at = performance.timeOrigin + performance.now();
      const sight: WorkSight = { key, tenant, host, pid: process.pid, what, at };
      appendFileSync(file, `${JSON.stringify(sight)}\n`);
    };
    tell('begin');
    const until = performance.now() + durationMs;
    try {
      for (let left = durationMs; left > 0; left = until - performance.now()) {
        await delay(Math.min(beatMs, left), undefined, { signal });
        tell('beat');
      }
    } finally {
      tell('end');
    }
    return [{ role: 'assistant', content: 'done' }];
  }
}

export class AskedGrade implements Grader {
  grade({ metadata, setReward }: GraderContext): Promise<void> {
    setReward((metadata as unknown as WitnessMetadata).reward);
    return Promise.resolve();
  }
}
