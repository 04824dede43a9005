/** Whether a response follows every instruction of its prompt. Read from the metadata: `instruction_id_list` and `kwargs`, one object for each id. */
import { RolloutError } from '../core/errors.ts';
import { ifbenchChecks } from './instructions/ifbench-checks.ts';
import { ifevalChecks } from './instructions/ifeval-checks.ts';
import { InstructionArguments, type InstructionCheck } from './instructions/instruction.ts';
import type { RewardSample } from './reward.ts';

const checks: ReadonlyMap<string, InstructionCheck> = new Map(
  Object.entries({ ...ifevalChecks, ...ifbenchChecks }),
);

/** 1 or 0; 0 where no instruction is named. REWARD_LABEL_INVALID for one that cannot be checked, or lacks an argument. */
export function ifbenchReward({ response, metadata }: RewardSample): number {
  const ids = idsOf(metadata['instruction_id_list']);
  if (response === null || ids.length === 0) return 0;
  // Each is read even of a blank response: a row that cannot be scored is never a 0.
  const named = ids.map((id) => checkOf(id));
  const values = argumentsOf(metadata['kwargs'], ids);
  if (response.trim() === '') return 0;
  return named.every((check, index) => {
    const args = values[index];
    return args !== undefined && check(response, args);
  })
    ? 1
    : 0;
}

function idsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.map((id) => (typeof id === 'string' ? id.trim() : '')).filter((id) => id !== '');
}

function checkOf(id: string): InstructionCheck {
  const check = checks.get(id);
  if (check !== undefined) return check;
  throw new RolloutError('REWARD_LABEL_INVALID', `There is no check for the instruction ${id}.`, {
    ...{ phase: 'verifier', field: 'metadata.instruction_id_list' },
    remedy:
      'Leave the row away, or score it by a function of your own; docs/rewards.md lists the instructions.',
  });
}

/** One object may stand for all, and the last one for those that have none. */
function argumentsOf(kwargs: unknown, ids: readonly string[]): readonly InstructionArguments[] {
  const objects = (Array.isArray(kwargs) ? kwargs : [kwargs]).map(recordOf);
  return ids.map(
    (id, index) => new InstructionArguments(id, objects[index] ?? objects.at(-1) ?? {}),
  );
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
