import { RolloutError } from '../core/errors.ts';
import type { DocumentProblem } from '../wire/harbor/problems.ts';
import { parseTaskConfig, type TaskConfig } from '../wire/harbor/task-config.ts';
import { taskTomlName, type TomlDocument } from './read-task-toml.ts';

/** Checks a document of task.toml. TASK_CONFIG_INVALID names the first wrong field and lists every problem. */
export function compileTaskConfig(document: TomlDocument): TaskConfig {
  const result = parseTaskConfig(document);
  if ('value' in result) return result.value;
  throw invalidConfig(result.problems);
}

function invalidConfig(problems: readonly DocumentProblem[]): RolloutError {
  const lines = problems.map(({ field, message }) => `${field || taskTomlName}: ${message}`);
  const [first] = problems;
  const count = problems.length === 1 ? '' : `${problems.length} problems: `;
  const message = `${count}${lines.join('; ')}`;
  return new RolloutError('TASK_CONFIG_INVALID', message, {
    phase: 'resolve',
    field: first?.field === undefined || first.field === '' ? taskTomlName : first.field,
    remedy:
      problems.length === 1
        ? `Correct the field in ${taskTomlName}.`
        : `Correct these fields in ${taskTomlName}.`,
    detail: lines.join('\n'),
  });
}
