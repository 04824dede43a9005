/** Documents of the archive as text: pretty, arrays of numbers on one line, secrets replaced. */
import { TrajectoryRedactor } from '../trajectory/redact.ts';
import type { AtifAgent, AtifStep } from '../wire/atif/atif.ts';
import { atifText } from '../wire/atif/atif-text.ts';

/** A trajectory keeps the order of its keys and is redacted as one; other documents have sorted keys. Throws TRAJECTORY_INVALID for what JSON cannot say. */
export function documentText(name: string, value: unknown, secrets: readonly string[]): string {
  const redactor = new TrajectoryRedactor(secrets, { keepsNulls: true });
  const clean =
    name === 'trajectory.json' && isTrajectory(value)
      ? cleanTrajectory(value, secrets)
      : redactor.clean(sorted(value));
  return `${atifText(clean, 0, name)}\n`;
}

interface Trajectory {
  readonly agent: AtifAgent;
  readonly steps: readonly AtifStep[];
  readonly subagent_trajectories?: readonly unknown[] | null;
}

function isTrajectory(value: unknown): value is Trajectory {
  const { agent, steps } = (value ?? {}) as Partial<Record<keyof Trajectory, unknown>>;
  return typeof agent === 'object' && agent !== null && Array.isArray(steps);
}

function cleanTrajectory(document: Trajectory, secrets: readonly string[]): unknown {
  const { agent, steps, subagent_trajectories: subagents, ...rest } = document;
  const redactor = new TrajectoryRedactor(secrets);
  const cleaned: Readonly<Record<string, unknown>> = {
    agent: redactor.agent(agent),
    steps: steps.map((step) => redactor.step(step)),
    ...(redactor.clean(rest) as Readonly<Record<string, unknown>>),
    ...(subagents != null && {
      subagent_trajectories: subagents.map((one) =>
        isTrajectory(one) ? cleanTrajectory(one, secrets) : redactor.clean(one),
      ),
    }),
  };
  const names = Object.keys(document).filter((name) => name in cleaned);
  return Object.fromEntries(names.map((name) => [name, cleaned[name]]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]: [string, unknown]) => [key, sorted(part)]),
  );
}
