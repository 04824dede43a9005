/** The backend with its binding, through its own start; and whether what it runs is graded. */
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import { makeBackend } from '../serve/open-backend.ts';
import { noteLogger } from '../note-logger.ts';
import type { AppPorts } from '../ports.ts';
import { passed, warned, type Verdict } from './verdict.ts';

/** Settings of the backend that is chosen, as the configuration has them. */
export function backendSection({ backend }: ServeConfig): Readonly<Record<string, unknown>> {
  const section: unknown = Object.entries(backend).find(([name]) => name === backend.kind)?.[1];
  return typeof section === 'object' && section !== null
    ? (section as Readonly<Record<string, unknown>>)
    : {};
}

/** Health as it would say it; what it prepares in its folder goes to `scratchDir`. */
export async function checkBackend(
  config: ServeConfig,
  at: {
    readonly ports: AppPorts;
    readonly scratchDir: string;
  },
  signal: AbortSignal,
): Promise<Verdict> {
  const notes: string[] = [];
  const logger = noteLogger((text) => notes.push(text));
  const backend = await makeBackend(
    { ...withoutTasks(config), dataDir: at.scratchDir },
    { ports: at.ports, logger, onLost: () => undefined },
  );
  let health: Readonly<Record<string, unknown>>;
  try {
    await backend.start(signal);
    health = backend.health();
  } catch (error) {
    if (!isRolloutError(error, 'WORKFLOW_PACKAGE_MISSING')) throw error;
    const { message, field, remedy } = error;
    return warned(`the workflow is not looked at: ${message}`, {
      ...(field !== null && { field }),
      remedy: remedy ?? '',
    });
  } finally {
    await backend.close();
  }
  const summary = summaryOf(backend.kind, health);
  return notes.length === 0
    ? passed(summary)
    : warned(`${summary}; ${notes.join('; ')}`, { remedy: 'See docs/backends.md.' });
}

/** Its tasks are checked one by one: the backend itself would only say that one of them failed. */
function withoutTasks(config: ServeConfig): ServeConfig {
  const { native, harbor } = config.backend;
  return {
    ...config,
    backend: {
      ...config.backend,
      native: 'prewarm' in native ? { ...native, prewarm: null } : native,
      harbor: 'prewarm' in harbor ? { ...harbor, prewarm: null, requirements: null } : harbor,
    },
  };
}

function summaryOf(kind: string, health: Readonly<Record<string, unknown>>): string {
  const { binding, evaluation_supported: evaluates, training_supported: trains } = health;
  if (typeof binding !== 'string') return `the backend ${kind} starts`;
  const uses = [evaluates === true ? 'evaluation' : '', trains === true ? 'training' : ''].filter(
    (use) => use !== '',
  );
  return `the backend ${kind} starts; agent ${binding}, good for ${uses.join(' and ') || 'nothing'}`;
}

/** Backends that run a workflow of the user, which somebody has to grade. */
const workflowBackends: readonly string[] = ['local', 'harbor'];

export function checkGrader(
  config: ServeConfig,
  { needsNone }: { readonly needsNone: boolean },
): Verdict {
  const { kind } = config.backend;
  if (kind === 'native') return passed('none is needed: the verifier of each task grades');
  if (!workflowBackends.includes(kind)) return passed(`none is needed by the backend ${kind}`);
  const { grader, agent } = backendSection(config);
  if (kind === 'harbor' && typeof agent === 'string' && !agent.includes(':'))
    return passed('none is needed by an agent: the tests of each task grade');
  if (typeof grader === 'string' && grader !== '') return passed(`${grader} grades`);
  if (needsNone) return passed('there is none, as --no-grader says: rollouts get no reward');
  throw new RolloutError('CONFIG_INVALID', `the backend ${kind} has a workflow and no grader`, {
    phase: 'config',
    field: `backend.${kind}.grader`,
    remedy: 'Name the class of a grader, or say --no-grader where rewards come from elsewhere.',
  });
}
