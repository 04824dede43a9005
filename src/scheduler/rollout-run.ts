/**
 * One rollout from its running place to the moment when nothing of it is left: begin, route, execute, fix the end and its callbacks, archive, free the
 * place, wait for the callbacks. Whoever claims the rollout meanwhile ends it instead; the run then only waits until that is done.
 */
import type { RolloutFacts } from '../archive/rollout-documents.ts';
import type { ExecutionHooks, ExecutionResult } from '../backends/execution-backend.ts';
import { isRolloutError, messageOf, traceOf } from '../core/errors.ts';
import type { MadeSamples } from '../gateway/samples/sample-maker.ts';
import type { KeptFile } from '../wire/rollout/kept-file.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import { rolloutRequestSchema, type RolloutRequest } from '../wire/rollout/rollout-request.ts';
import { isTerminal } from '../wire/rollout/rollout-state.ts';
import { routeRulesOf } from '../wire/rollout/route-rules.ts';
import { sampleRulesOf, trainsNothing, type SampleRules } from '../wire/rollout/train-rules.ts';
import {
  archiveRollout,
  archiveWithCalls,
  forgetCalls,
  rolloutFacts,
  secretsOf,
} from './archiving.ts';
import {
  completionDeliveries,
  endDeliveries,
  failureDeliveries,
  ownDiagnostics,
  type Addressee,
} from './deliveries.ts';
import type { Step } from './ledger.ts';
import type { LiveRollout } from './live-rollout.ts';
import { failedOutcome, failureOf, outcomeOf, withSpentBudget } from './outcomes.ts';
import { ProgressOfRun } from './progress-of-run.ts';
import { queueAgain } from './queue-again.ts';
import { endWithoutSamples, SamplesOfRun, withSamples } from './samples-of-run.ts';
import { backendName, type SchedulerCore } from './scheduler-core.ts';

interface Ending {
  readonly result: ExecutionResult;
  /** null = nobody wants any. */
  readonly made: MadeSamples | null;
}

export class RolloutRun {
  readonly #core: SchedulerCore;
  readonly #rollout: LiveRollout;
  #request: RolloutRequest | null = null;
  /** What the workflow said, before grading. */
  #workflow: ExecutionResult | null = null;
  /** null = no samples are wanted. */
  #sampleRules: SampleRules | null = null;
  readonly #samples: SamplesOfRun;
  readonly #progress: ProgressOfRun;
  #facts: RolloutFacts | null = null;
  #secrets: readonly string[] = [];
  readonly #unmask: (() => void)[] = [];

  constructor(rollout: LiveRollout, core: SchedulerCore) {
    this.#rollout = rollout;
    this.#core = core;
    this.#samples = new SamplesOfRun(rollout.id, core.parts);
    this.#progress = new ProgressOfRun(rollout, core.parts);
  }

  /** Resolves when the running place is free; `again` = its host was lost before the agent began, and it is a queued one again. Never rejects. */
  async untilFree(): Promise<'done' | 'again'> {
    const rollout = this.#rollout;
    let isReturned = false;
    try {
      await this.#run();
    } catch (error) {
      isReturned = isRolloutError(error, 'WORKER_LOST') && (await this.#returned());
      if (!isReturned) await this.#broken(error);
    }
    // What a claimer ends may still run: the place is not free before.
    if (rollout.ending !== null) await this.#endedByOther(rollout.ending);
    this.#core.pause.withdrawn(rollout.id);
    rollout.execution = null;
    rollout.progress = null;
    return isReturned && rollout.endedBy === null ? 'again' : 'done';
  }

  /** Resolves when its callbacks are settled and the archive knows what they brought. Never rejects. */
  async untilSettled(): Promise<void> {
    const { callbacks, store, logger } = this.#core.parts;
    const rollout = this.#rollout;
    await callbacks.settled(rollout.id);
    try {
      const report = (await store.rollout(rollout.id))?.controllerReport ?? null;
      if (report !== null && this.#facts !== null) {
        const facts = { ...this.#facts, report: JSON.parse(report) as unknown };
        await archiveRollout(facts, { files: [], secrets: this.#secrets }, this.#core.parts);
      }
    } catch (error) {
      // A store that is closed keeps the report for whoever asks for it later.
      logger.log('warn', 'the report of a controller was not archived', {
        rolloutId: rollout.id,
        error: messageOf(error),
      });
    }
    for (const unmask of this.#unmask) unmask();
  }

  async #run(): Promise<void> {
    const { parts } = this.#core;
    const rollout = this.#rollout;
    this.#request = await this.#begin();
    if (this.#request === null) return;
    const route = await this.#route(this.#request);
    // Whoever claimed it waits for nothing that starts now; the route goes with the rest.
    if (rollout.endedBy !== null) return;
    const execution = parts.backend.execute(
      {
        id: rollout.id,
        prompt: this.#request.initial_messages,
        label: this.#request.label,
        metadata: this.#request.metadata,
        agentTimeoutMs: inMs(this.#request.agent_timeout_sec),
        graderTimeoutMs: inMs(this.#request.grader_timeout_sec),
        queuedMs: Math.max(0, parts.clock.monotonicMs() - rollout.acceptedMs),
        route,
        wantsGrade: this.#wantsGrade(this.#request),
        secrets: this.#secrets,
      },
      this.#hooks(this.#request),
    );
    rollout.execution = execution;
    execution.result.catch(() => undefined);
    const result = await Promise.race([execution.result, rollout.claimed()]);
    if (result === undefined) return;
    const ending = await this.#claim(result);
    if (ending === null) return;
    await this.#end(ending, this.#request);
    await this.#clear(result.files);
  }

  /** null = somebody else ends it. Samples are made before: a cancellation waits for none. */
  async #claim(result: ExecutionResult): Promise<Ending | null> {
    const rollout = this.#rollout;
    const rules = this.#sampleRules;
    if (rules === null) {
      if (!rollout.claim('backend')) return null;
      return { result: await this.#told(result), made: null };
    }
    const told = await this.#told(result);
    await this.#closeRoute();
    this.#progress.show('making samples');
    const made = await Promise.race([this.#samples.make(told, rules), rollout.claimed()]);
    return made !== undefined && rollout.claim('backend') ? { result: told, made } : null;
  }

  /** Reads the request and makes the rollout a running one; null = it was claimed before. */
  async #begin(): Promise<RolloutRequest | null> {
    const { ledger, parts } = this.#core;
    const rollout = this.#rollout;
    // Asked for together, they are one message to the store and one back.
    const [hasBegun, stored] = await Promise.all([
      ledger.advance(rollout, () =>
        rollout.endedBy === null
          ? {
              to: 'running',
              by: 'dispatcher',
              set: { startedAt: parts.clock.now(), attempt: rollout.attempt + 1 },
            }
          : null,
      ),
      ledger.patiently(rollout, () => parts.store.rollout(rollout.id)),
    ]);
    if (stored === null) throw new TypeError('the store does not know a rollout that waits');
    this.#progress.show('starting');
    return hasBegun ? rolloutRequestSchema.parse(JSON.parse(stored.request)) : null;
  }

  async #route(request: RolloutRequest): Promise<ModelRoute | null> {
    const { gateway } = this.#core.parts;
    const upstreamKey = request.llm_api_key ?? request.controller_api_key;
    this.#secrets = secretsOf(request);
    this.#mask(this.#secrets);
    this.#sampleRules = sampleRulesOf(request.metadata, this.#core.options.train ?? trainsNothing);
    if (request.chat_completions_url === '') return null;
    const train = this.#sampleRules;
    const route = await gateway.register({
      rolloutId: this.#rollout.id,
      upstreamUrl: request.chat_completions_url,
      upstreamKey: upstreamKey === '' ? null : upstreamKey,
      rules: routeRulesOf(request.metadata),
      ...(train !== null && { train }),
    });
    this.#secrets = [...this.#secrets, route.apiKey];
    this.#mask([route.apiKey]);
    return route;
  }

  /** No line of the log shows them until the rollout is settled. */
  #mask(secrets: readonly string[]): void {
    const unmask = this.#core.parts.maskSecrets?.(secrets);
    if (unmask !== undefined) this.#unmask.push(unmask);
  }

  #hooks(request: RolloutRequest): ExecutionHooks {
    const { ledger, parts } = this.#core;
    const rollout = this.#rollout;
    return {
      agentBegins: () => ledger.agentBegins(rollout),
      progress: (progress) => this.#progress.note(progress),
      workflowCompleted: async (completed) => {
        const result = await this.#told(completed);
        this.#workflow = result;
        this.#samples.agentEnded();
        const isFixed = await ledger.advance(rollout, () =>
          rollout.endedBy === null
            ? {
                to: 'grading',
                by: 'backend',
                set: { completedAt: parts.clock.now() },
                deliveries: completionDeliveries(this.#addressee(request), result),
              }
            : null,
        );
        if (!isFixed) throw new TypeError('the rollout is being ended');
      },
    };
  }

  /** While its route lives: with the budget that its agent ran into. */
  async #told(result: ExecutionResult): Promise<ExecutionResult> {
    const { gateway } = this.#core.parts;
    const activity = await gateway.activity(this.#rollout.id);
    this.#samples.note(activity?.capture ?? null);
    return withSpentBudget(result, activity?.spent ?? null);
  }

  async #end(ending: Ending, request: RolloutRequest): Promise<void> {
    const { ledger, pause } = this.#core;
    const rollout = this.#rollout;
    await this.#closeRoute();
    const samples = ending.made === null ? null : await this.#samples.keep(ending.made);
    const result = samples === null ? ending.result : withSamples(ending.result, samples);
    const outcome = { ...outcomeOf(result), ...(samples !== null && { samples }) };
    await ledger.advance(rollout, () => ({
      to: result.status,
      by: 'backend',
      outcome,
      diagnostics: result.diagnostics,
      figures: figuresOf(result),
      ...this.#fixed(),
      deliveries: endDeliveries(this.#addressee(request), {
        result,
        hasCompleted: rollout.hasCompleted,
      }),
    }));
    pause.ended(rollout.id, outcome.cause);
    this.#setFacts(outcome, result);
  }

  /** Whether it waits again, the attempt not counted: nothing of its agent has happened, and nobody ends it. */
  async #returned(): Promise<boolean> {
    await this.#closeRoute();
    const waits = { again: false };
    await this.#attempt('it could not be queued again', async () => {
      waits.again = await queueAgain(this.#rollout, 'dispatcher', this.#core);
    });
    if (waits.again) for (const unmask of this.#unmask) unmask();
    return waits.again;
  }

  /** A defect, of a backend or of ours: only this rollout pays for it. */
  async #broken(error: unknown): Promise<void> {
    const { ledger, parts, pause } = this.#core;
    const rollout = this.#rollout;
    const rolloutId = rollout.id;
    const isOurs = rollout.claim('dispatcher') || rollout.endedBy === 'backend';
    if (!isOurs || isTerminal(rollout.state)) {
      // What waited for a host ends with the cancellation that asked for it.
      if (!isRolloutError(error, 'CANCELLED'))
        parts.logger.log('error', 'the end of a rollout broke', {
          ...{ rolloutId, error: traceOf(error) },
        });
      return;
    }
    const failure = failureOf(error, 'server');
    if (failure.cause === 'INTERNAL')
      parts.logger.log('error', 'a rollout broke', { rolloutId, error: traceOf(error) });
    await this.#attempt('what it ran was not ended', async () => {
      await rollout.execution?.abort(new Error('the rollout broke'));
    });
    await this.#closeRoute();
    await this.#attempt('a broken rollout was not ended', async () => {
      const outcome = endWithoutSamples(failedOutcome(failure), rollout);
      const told = this.#workflow?.diagnostics ?? null;
      const diagnostics = ownDiagnostics(outcome, backendName(this.#core)) ?? told;
      const request = this.#request;
      await ledger.advance(rollout, () => ({
        to: 'failure',
        by: 'dispatcher',
        outcome,
        diagnostics,
        ...this.#fixed(),
        ...(request !== null && {
          deliveries: failureDeliveries(this.#addressee(request), {
            failure,
            diagnostics,
            hasCompleted: rollout.hasCompleted,
          }),
        }),
      }));
      pause.ended(rolloutId, failure.cause);
      this.#setFacts(outcome, { sample: null, diagnostics, trajectory: null });
    });
    await this.#clear(null);
  }

  async #endedByOther(ending: Promise<unknown>): Promise<void> {
    const rollout = this.#rollout;
    await ending.catch(() => undefined);
    if (isTerminal(rollout.state) && rollout.outcome !== null)
      this.#setFacts(rollout.outcome, {
        ...{ sample: null, diagnostics: rollout.diagnostics, trajectory: null },
      });
    await this.#clear(null);
  }

  /** The end is durable and its callbacks are out: what the rollout held goes. `files` null = it did not end by its result, which nobody has archived. */
  async #clear(files: readonly KeptFile[] | null): Promise<void> {
    const rollout = this.#rollout;
    await this.#closeRoute();
    this.#progress.show('saving the archive', 'archive');
    const isKept = await this.#archiveAll(files ?? []);
    const isComplete = isKept && files !== null;
    await this.#attempt('what it held on disk was not freed', async () => {
      await rollout.execution?.release({ isComplete });
    });
  }

  /** Before the end is told: who has seen a terminal state finds the key dead. */
  async #closeRoute(): Promise<void> {
    await this.#attempt('the route was not revoked', () =>
      this.#core.parts.gateway.revoke(this.#rollout.id),
    );
  }

  async #archiveAll(files: readonly KeptFile[]): Promise<boolean> {
    const { parts } = this.#core;
    if (this.#facts !== null)
      return await archiveWithCalls(this.#facts, { files, secrets: this.#secrets }, parts);
    // It never got as far as a call that somebody could ask for.
    await forgetCalls(this.#rollout.id, parts);
    return true;
  }

  #setFacts(outcome: RolloutOutcome, result: Parameters<typeof rolloutFacts>[1][number]): void {
    const request = this.#request;
    if (request === null) return;
    const { version } = this.#core.options;
    const results = this.#workflow === null ? [result] : [result, this.#workflow];
    this.#facts = rolloutFacts({ id: this.#rollout.id, request, outcome, version }, results);
  }

  #addressee(request: RolloutRequest): Addressee {
    return { id: this.#rollout.id, acceptedAt: this.#rollout.acceptedAt, request };
  }

  /** The end fixes the completion callback, unless it is fixed already. */
  #fixed(): { readonly set?: { readonly completedAt: Date } } {
    return this.#rollout.hasCompleted ? {} : { set: { completedAt: this.#core.parts.clock.now() } };
  }

  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const fields = { rolloutId: this.#rollout.id, error: messageOf(error) };
      this.#core.parts.logger.log('warn', what, fields);
    }
  }

  /** Whoever is not called back at all waits for the end. */
  #wantsGrade(request: RolloutRequest): boolean {
    const { grader_callback_url: url, completion_callback_url: completion } = request;
    const isAsked = (url !== null && url !== '') || completion === '';
    return isAsked || this.#core.parts.backend.capturesFinalResult;
  }
}

function figuresOf({ sample, agentMetadata }: ExecutionResult): NonNullable<Step['figures']> {
  return {
    metrics: sample?.metrics ?? {},
    ...(agentMetadata !== undefined && { agentMetadata }),
  };
}

function inMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}
