/** Sandboxes of tasks as the server's trials would have them: journalled, started, asked whether commands work, and gone afterwards. */
import { randomUUID } from 'node:crypto';
import type { AppPorts } from '../ports.ts';
import { noteLogger } from '../note-logger.ts';
import { makeProvider } from '../providers.ts';
import { RolloutError } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import { Limiter } from '../../core/limiter.ts';
import { Scope } from '../../core/scope.ts';
import type {
  Environment,
  EnvironmentProvider,
  HostEndpoint,
} from '../../environments/environment.ts';
import { ownedProvider } from '../../environments/shared/owned-provider.ts';
import { splitOptions } from '../../environments/shared/provider-settings.ts';
import { remoteGateway } from '../../environments/shared/remote-gateway.ts';
import type { TaskInputs } from '../../jobs/job-task.ts';
import { FileSandboxJournalStore } from '../../store/file/file-sandbox-journal.ts';
import type { SandboxPlan } from '../../trial/sandbox-plan.ts';
import { Sandboxes } from '../../trial/sandboxes.ts';
import { planTrial, type TrialPlan } from '../../trial/trial-plan.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { trialConfigSchema } from '../../wire/harbor/trial-config.ts';
import type { TrialSettings } from './trial-settings.ts';

const destroyMs = 30_000;
const lifetimeMs = 60 * 60_000;
/** Creations at once, as far as they are asked for at once. */
const creations = 2;

export interface TaskSandboxOptions {
  readonly settings: TrialSettings;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

export class TaskSandboxes implements AsyncDisposable {
  readonly #scope: Scope;
  readonly #provider: EnvironmentProvider;
  readonly #settings: TrialSettings;
  readonly #ports: AppPorts;
  readonly #ids: { readonly storeId: string; readonly runId: string };

  private constructor(parts: {
    readonly scope: Scope;
    readonly provider: EnvironmentProvider;
    readonly settings: TrialSettings;
    readonly ports: AppPorts;
    readonly ids: { readonly storeId: string; readonly runId: string };
  }) {
    this.#scope = parts.scope;
    this.#provider = parts.provider;
    this.#settings = parts.settings;
    this.#ports = parts.ports;
    this.#ids = parts.ids;
  }

  /** ENVIRONMENT_UNKNOWN, ENVIRONMENT_UNAVAILABLE, JOURNAL_FAILED. */
  static async open(
    { settings, note, signal }: TaskSandboxOptions,
    ports: AppPorts,
  ): Promise<TaskSandboxes> {
    const { environment, allowUnsandboxed } = settings;
    const { clock, locks, machine } = ports;
    await using scope = new Scope();
    const logger = noteLogger(note);
    const kind = environment.type ?? '';
    const { kwargs } = environment;
    const inner = await makeProvider(kind, { allowUnsandboxed, kwargs, logger }, ports);
    scope.defer(() => inner.close());
    await inner.preflight(signal);
    const journals = await FileSandboxJournalStore.open(machine.stateDir, locks);
    const runId = `run-${lowerId(16)}`;
    const journal = await journals.open(runId);
    scope.defer(() => journal.close());
    const limiter = new Limiter(creations);
    const { settings: shared } = splitOptions(kwargs);
    const provider = remoteGateway(
      ownedProvider(inner, { journal, limiter, clock, logger }),
      shared.gatewayUrl,
    );
    const ids = { storeId: journals.storeId, runId };
    return new TaskSandboxes({ scope: scope.move(), provider, settings, ports, ids });
  }

  get hasHostEndpoint(): boolean {
    return this.#provider.capabilities.hostEndpoint;
  }

  /** Everything that a trial of the task would be refused for before anything is started. */
  async plan(
    { entry, inputs }: { readonly entry: TaskEntry; readonly inputs: TaskInputs },
    warn: (text: string) => void,
    signal: AbortSignal,
  ): Promise<TrialPlan> {
    const config = trialConfigSchema.parse({
      task: entry,
      trial_name: `preflight-${randomUUID()}`,
      environment: this.#settings.environment,
      agent: { name: 'nop' },
      verifier: { disable: !this.#settings.needsTests },
    });
    return await planTrial({
      ...{ config, provider: this.#provider, warn, signal },
      inputs: { ...inputs, skills: [] },
      hostVariables: this.#ports.machine.variables,
    });
  }

  /** Starts each sandbox that the plan has, the agent's first; `inside` is called in that one. All of them are gone when it settles. */
  async tryOut(
    plan: TrialPlan,
    {
      hostEndpoint,
      inside,
    }: {
      readonly hostEndpoint: HostEndpoint | null;
      readonly inside: (environment: Environment, signal: AbortSignal) => Promise<void>;
    },
    signal: AbortSignal,
  ): Promise<{ readonly sandboxes: number; readonly imageMs: number; readonly bootMs: number }> {
    let [imageMs, bootMs] = [0, 0];
    const plans = sandboxPlans(plan);
    for (const [index, each] of plans.entries()) {
      const sandboxes = new Sandboxes({
        ...{ provider: this.#provider, clock: this.#ports.clock, ...this.#ids },
        trialName: plan.config.trial_name,
        extraCaBundle: this.#ports.machine.extraCaBundle,
        hostEndpoint: index === 0 ? hostEndpoint : null,
      });
      const forceBuild = index === 0 && plan.config.environment.force_build;
      const part = index === 0 ? 'env' : `verifier${index}`;
      try {
        const environment = sandboxes.make(each, { part, forceBuild, lifetimeMs });
        const report = await environment.start({ signal });
        imageMs += report.imageMs;
        bootMs += report.bootMs;
        await assertCommands(environment, signal);
        if (index === 0) await inside(environment, signal);
      } finally {
        await sandboxes.destroyAll(destroyMs);
      }
    }
    return { sandboxes: plans.length, imageMs, bootMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}

/** The agent's, and those of verifiers that have their own; equal ones once. */
function sandboxPlans({ sandbox, rounds }: TrialPlan): readonly SandboxPlan[] {
  const all = [sandbox, ...rounds.flatMap(({ verifier }) => verifier?.sandbox ?? [])];
  return [...new Map(all.map((plan) => [JSON.stringify(plan.image), plan])).values()];
}

async function assertCommands(environment: Environment, signal: AbortSignal): Promise<void> {
  const word = randomUUID();
  const { exitCode, stdout } = await environment.exec(
    { command: `echo ${word}`, timeoutMs: 30_000 },
    signal,
  );
  if (exitCode === 0 && stdout.trim() === word) return;
  throw new RolloutError('EXEC_FAILED', `a command in the sandbox ended with ${exitCode}`, {
    phase: 'environment',
    remedy: 'Check that the image has a shell which works.',
  });
}
