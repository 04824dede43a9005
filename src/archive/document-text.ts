/** Documents of the archive as text: pretty, arrays of numbers on one line, secrets replaced. */
import { setImmediate } from 'node:timers/promises';
import { TrajectoryRedactor } from '../trajectory/redact.ts';
import type { AtifAgent, AtifStep } from '../wire/atif/atif.ts';
import { atifText, stringText } from '../wire/atif/atif-text.ts';

/** What one piece of work may take before others get their turn. */
const sliceMs = 10;

/**
 * The text in pieces, with pauses for others. A trajectory keeps the order of its keys and is redacted as one; other documents have sorted keys. Throws
 * TRAJECTORY_INVALID for what JSON cannot say.
 */
export async function* documentText(
  name: string,
  value: unknown,
  secrets: readonly string[],
): AsyncGenerator<string, undefined, undefined> {
  if (name === 'trajectory.json' && isTrajectory(value)) yield* trajectoryText(value, secrets);
  else {
    const redactor = new TrajectoryRedactor(secrets, { keepsNulls: true });
    yield `${atifText(redactor.clean(sorted(value)), 0, name)}\n`;
  }
  return undefined;
}

async function* trajectoryText(document: Trajectory, secrets: readonly string[]) {
  const { steps, ...rest } = document;
  const redactor = new TrajectoryRedactor(secrets);
  const others = cleanHead(rest, { redactor, secrets });
  const names = Object.keys(document).filter((name) => name === 'steps' || name in others);
  yield '{\n';
  for (const [at, name] of names.entries()) {
    yield `  ${stringText(name)}: `;
    if (name === 'steps') yield* stepsText(steps, redactor);
    else yield atifText(others[name], 1, name);
    yield at === names.length - 1 ? '\n}\n' : ',\n';
  }
}

async function* stepsText(steps: readonly AtifStep[], redactor: TrajectoryRedactor) {
  let since = performance.now();
  yield '[';
  for (const [at, step] of steps.entries()) {
    yield `${at === 0 ? '' : ','}\n    ${atifText(redactor.step(step), 2, `steps.${at}`)}`;
    if (performance.now() - since < sliceMs) continue;
    await setImmediate();
    since = performance.now();
  }
  yield steps.length === 0 ? ']' : '\n  ]';
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

type Head = Omit<Trajectory, 'steps'>;

/** Everything but the steps; the agent first, because its tools are part of every prompt. */
function cleanHead(
  { agent, subagent_trajectories: subagents, ...rest }: Head,
  by: { readonly redactor: TrajectoryRedactor; readonly secrets: readonly string[] },
): Readonly<Record<string, unknown>> {
  const { redactor, secrets } = by;
  return {
    agent: redactor.agent(agent),
    ...(redactor.clean(rest) as Readonly<Record<string, unknown>>),
    ...(subagents != null && {
      subagent_trajectories: subagents.map((one) =>
        isTrajectory(one) ? cleanWhole(one, secrets) : redactor.clean(one),
      ),
    }),
  };
}

function cleanWhole(document: Trajectory, secrets: readonly string[]): unknown {
  const { steps, ...rest } = document;
  const redactor = new TrajectoryRedactor(secrets);
  const head = cleanHead(rest, { redactor, secrets });
  return { ...head, steps: steps.map((step) => redactor.step(step)) };
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
