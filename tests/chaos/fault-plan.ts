/** What goes wrong with the engine of one seed: the rules of its fault script, and what an operator does to it while the trial runs. */
import type { FaultRuleInput } from '../../src/engines/server/fault-script.ts';
import { seededRandom } from '../support/random.ts';

export type EngineEvent = 'none' | 'killed' | 'paused' | 'updated' | 'aborted' | 'left paused';

export interface FaultPlan {
  readonly seed: number;
  readonly rules: readonly FaultRuleInput[];
  readonly event: EngineEvent;
  /** The event happens when the engine has answered this many requests. */
  readonly afterRequests: number;
  /** How long the engine is away or paused. */
  readonly awayMs: number;
  readonly latencyMs: number;
  readonly agentLimitMs: number;
  readonly retryWaitSec: { readonly min: number; readonly max: number };
  /** The agent's script writes what the task wants. */
  readonly isSolved: boolean;
}

const events: readonly EngineEvent[] = [
  'none',
  'none',
  'killed',
  'killed',
  'paused',
  'updated',
  'aborted',
  'left paused',
];

export function faultPlan(seed: number): FaultPlan {
  const random = seededRandom(seed * 104_729 + 1);
  const upTo = (limit: number): number => Math.floor(random() * limit);
  // Every kind comes by turns, so that a short run has seen most of them.
  const rules = Array.from({ length: 1 + upTo(2) }, (_, index) =>
    drawRule(seed + index * 3, random),
  );
  const isPatient = random() < 0.3;
  return {
    seed,
    rules,
    event: events[seed % events.length] ?? 'none',
    afterRequests: upTo(4),
    awayMs: 200 + upTo(2_500),
    latencyMs: upTo(3) * 60,
    agentLimitMs: 6_000 + upTo(9_000),
    retryWaitSec: isPatient ? { min: 4, max: 15 } : { min: 0.2, max: 1 },
    isSolved: random() < 0.7,
  };
}

/** Nothing goes wrong: what the others are measured against. */
export const calmPlan: FaultPlan = {
  seed: 0,
  rules: [],
  event: 'none',
  afterRequests: 0,
  awayMs: 0,
  latencyMs: 0,
  agentLimitMs: 120_000,
  retryWaitSec: { min: 0.2, max: 1 },
  isSolved: true,
};

function drawRule(kind: number, random: () => number): FaultRuleInput {
  const match = drawMatch(random);
  const afterTokens = Math.floor(random() * 20);
  const kinds: readonly FaultRuleInput[] = [
    { match, fault: 'status-500' },
    { match, fault: 'overload', status: random() < 0.5 ? 429 : 503, retryAfterSeconds: 1 },
    { match, fault: 'reset', afterTokens },
    { match, fault: 'stall', afterTokens, ms: 'forever' },
    { match, fault: 'malformed-chunk', afterTokens },
    { match, fault: 'truncate-body', afterTokens },
    { match, fault: 'context-overflow' },
    { match, fault: 'slow', ms: 300 + Math.floor(random() * 3_000) },
    { match, fault: 'stall', afterTokens: 0, ms: 1_500 },
  ];
  return kinds[kind % kinds.length] ?? { match, fault: 'status-500' };
}

function drawMatch(random: () => number): FaultRuleInput['match'] {
  const kind = random();
  if (kind < 0.4) return { nth: 1 + Math.floor(random() * 4) };
  if (kind < 0.6) return { every: 2 + Math.floor(random() * 2) };
  return { share: [0.2, 0.5, 1][Math.floor(random() * 3)] ?? 0.5 };
}

/** In one line. */
export function planText({ rules, event, agentLimitMs, retryWaitSec }: FaultPlan): string {
  const faults = rules.map(({ match, fault }) => {
    const [name = '', value = ''] = Object.entries(match)[0] ?? [];
    return `${fault} (${name} ${String(value)})`;
  });
  const waits = `waits ${retryWaitSec.min}–${retryWaitSec.max} s`;
  return `${faults.join(', ')}; engine ${event}; limit ${agentLimitMs} ms, ${waits}`;
}
