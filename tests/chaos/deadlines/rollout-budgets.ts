/**
 * Random budgets of rollouts, walked through as stages would use them up: what the controller gave the agent and the verifier they have, whatever
 * was spent before; a verifier that shares the agent's sandbox never starts before the agent is stopped; no stage ends outside of the one around it.
 */
import type { ExecutionRequest } from '../../../src/backends/execution-backend.ts';
import { workflowBudgetMs } from '../../../src/backends/local/local-result.ts';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import { nativeTrialConfig } from '../../../src/backends/native/native-trial-config.ts';
import type { Task } from '../../../src/tasks/task.ts';
import { childDeadline, rootDeadline, type Deadline } from '../../../src/trial/deadlines.ts';
import { trialSpans } from '../../../src/trial/timeouts.ts';
import { taskEntrySchema } from '../../../src/wire/harbor/task-entry.ts';
import { seededRandom } from '../../support/random.ts';

const options = compileNativeOptions({ agent: 'oracle' });
const entry = taskEntrySchema.parse({ path: '/a/task' });

interface Part {
  readonly startMs: number;
  readonly limitMs: number;
  readonly endMs: number;
}

export interface BudgetRules {
  /** What of the queue time the native agent is charged with: nothing. Another share is a control. */
  readonly chargedShare: number;
  /** Whether the local backend charges its agent with the queue time: it does. */
  readonly chargesLocally: boolean;
}

export const rightRules: BudgetRules = { chargedShare: 0, chargesLocally: true };

/** One line per rule that the budget of this seed breaks. */
export function budgetProblems(seed: number, base: Task, rules = rightRules): readonly string[] {
  const random = seededRandom(seed);
  const between = (low: number, high: number): number =>
    Math.round(Math.exp(Math.log(low) + random() * (Math.log(high) - Math.log(low))));
  const maybe = (value: number): number | null => (random() < 0.3 ? null : value);
  const asked = {
    agentMs: maybe(between(1, 1e7)),
    verifierMs: maybe(between(1, 1e7)),
    queuedMs: random() < 0.3 ? 0 : between(1, 1e7),
  };
  const task: Task = {
    ...base,
    agent: { ...base.agent, timeoutMs: maybe(between(1_000, 1e7)) },
    verifier: { ...base.verifier, timeoutMs: between(1_000, 1e7) },
    environment: { ...base.environment, buildTimeoutMs: between(1_000, 1e7) },
  };
  const request = requestOf(asked);
  const config = nativeTrialConfig(request, options, { entry, trialsDir: '/trials' });
  const parts = walk(rootDeadline(trialSpans(config, task), 0, null), random);
  const charged = asked.queuedMs * rules.chargedShare;
  const agentMs = asked.agentMs ?? task.agent.timeoutMs ?? Infinity;
  const local = workflowBudgetMs(asked.agentMs, rules.chargesLocally ? asked.queuedMs : 0);
  const expectedLocal = asked.agentMs === null ? Infinity : asked.agentMs - asked.queuedMs;
  return [
    ...parts.problems,
    ...unequal('agent', parts.named('run').limitMs, agentMs - charged),
    ...unequal(
      'verifier',
      parts.named('script').limitMs,
      asked.verifierMs ?? task.verifier.timeoutMs,
    ),
    ...unequal('workflow', local, Math.max(0, expectedLocal)),
    ...(parts.named('script').startMs < parts.named('agent-stop').endMs ||
    parts.named('agent-stop').startMs < parts.named('run').endMs
      ? ['the verifier starts before the agent is stopped']
      : []),
  ];
}

function walk(root: Deadline, random: () => number) {
  const problems: string[] = [];
  const parts = new Map<string, Part>();
  let nowMs = 0;
  const visit = (deadline: Deadline): void => {
    const { span } = deadline;
    if (span.children.length === 0) {
      const limitMs = deadline.endMs - nowMs;
      const startMs = nowMs;
      // Most stages are quick, some use up all that they have.
      const share = random() < 0.3 ? 1 : random();
      nowMs += Number.isFinite(limitMs) ? limitMs * share : random() * 1e6;
      parts.set(span.name, { startMs, limitMs, endMs: nowMs });
      return;
    }
    for (const { name } of span.children) {
      const child = childDeadline(deadline, name, nowMs);
      if (Number.isFinite(deadline.endMs) && child.endMs >= deadline.endMs)
        problems.push(`${name} ends outside of ${span.name}`);
      visit(child);
    }
  };
  visit(root);
  return {
    problems,
    named(name: string): Part {
      const part = parts.get(name);
      if (part === undefined) throw new TypeError(`no part ${name}`);
      return part;
    },
  };
}

/** Equal, but for the rounding of floating point numbers. */
function unequal(what: string, actual: number, expected: number): string[] {
  if (actual === expected || Math.abs(actual - expected) < 1e-3 * Math.max(1, expected)) return [];
  return [`${what}: ${actual} ms, not ${expected} ms`];
}

function requestOf(asked: {
  readonly agentMs: number | null;
  readonly verifierMs: number | null;
  readonly queuedMs: number;
}): ExecutionRequest {
  return {
    ...{ id: 'r', prompt: [], label: null, metadata: null, route: null },
    ...{ agentTimeoutMs: asked.agentMs, graderTimeoutMs: asked.verifierMs },
    ...{ queuedMs: asked.queuedMs, wantsGrade: true, secrets: [] },
  };
}
