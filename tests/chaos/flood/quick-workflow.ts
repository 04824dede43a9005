/** A workflow that takes the time that the metadata names and does nothing with it, and a grader that likes that. */
import { setTimeout as delay } from 'node:timers/promises';
import type {
  AgentWorkflow,
  Grader,
  GraderContext,
  WorkflowAnswer,
  WorkflowContext,
} from '../../../src/backends/local/user-code.ts';

export class QuickWorkflow implements AgentWorkflow {
  async run({ metadata, signal }: WorkflowContext): Promise<WorkflowAnswer> {
    await delay(Number(metadata?.['duration_ms']), undefined, { signal });
    return [{ role: 'assistant', content: 'done' }];
  }
}

export class KindGrader implements Grader {
  grade({ setReward }: GraderContext): Promise<void> {
    setReward(1);
    return Promise.resolve();
  }
}
