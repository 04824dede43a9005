/**
 * What Miles' Harbor plugin expects behind `/run` and `/flush`. A `/run` is a rollout like any other; its client waits for the end instead of being called
 * back. It ends early when its client is flushed, stops answering heartbeats, hangs up, or would give up soon: then it is cancelled, and the answer says so.
 */
import { randomBytes } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json.ts';
import type { Clock } from '../core/clock.ts';
import { messageOf, RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Logger } from '../core/logger.ts';
import type { Caller, RolloutService, SubmitAnswer } from '../scheduler/rollout-service.ts';
import type {
  ClientsReply,
  FlushAllReply,
  FlushAllRequest,
  FlushReply,
  FlushRequest,
} from '../wire/agent-server/admin.ts';
import { replyWithout, type RunReply, type RunRequest } from '../wire/agent-server/run.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import { Clients, type Client, type ClientIdentity } from './clients.ts';
import { Door } from './door.ts';
import { flushed, overTime, refusedStatuses } from './exit-status.ts';
import { findTask, type FoundTask } from './find-task.ts';
import { keepHeartbeats, type ProbeHealth } from './heartbeats.ts';
import {
  canonicalServerId,
  checkInstanceId,
  checkServerId,
  IdentityProblem,
  serverIdOf,
  type ResolveHost,
} from './identity.ts';
import { keepPruning, pruneText, type Reclaim } from './pruning.ts';
import type { RunEnds } from './run-ends.ts';
import { replyOf } from './run-reply.ts';
import { rolloutOfRun } from './run-rollout.ts';

export interface AgentServerOptions {
  /** null = there are no tasks: every request is refused. */
  readonly tasksDir: string | null;
  readonly taskKey: string;
  readonly agent: string;
  readonly agentTimeoutSec: number | null;
  /** From a request's arrival to its answer: below the time after which its client gives up. */
  readonly ceilingMs: number;
  readonly heartbeat: { readonly intervalMs: number; readonly threshold: number };
  readonly pruneIntervalMs: number;
  /** Requests of a tenant that may wait for a place beyond the queue. */
  readonly maxWaiting: number;
}

export interface AgentServerParts {
  readonly service: RolloutService;
  /** One of the scheduler's observers. */
  readonly ends: RunEnds;
  readonly resolve: ResolveHost;
  readonly probe: ProbeHealth;
  readonly reclaim: Reclaim;
  readonly clock: Clock;
  readonly logger: Logger;
}

export type RunAnswer =
  | { readonly kind: 'reply'; readonly reply: RunReply }
  /** No trial began. */
  | Extract<SubmitAnswer, { kind: 'refused' | 'stopping' }>;

type Reason = 'flushed' | 'over time' | 'hung up';

/** One `/run` on its way. */
class Run implements Disposable {
  readonly id = `run-${randomBytes(16).toString('hex')}`;
  readonly caller: Caller;
  readonly #link: LinkedAbort;
  isSubmitted = false;
  /** Why it ends early; the first reason holds. */
  endedBy: Reason | null = null;

  constructor(caller: Caller) {
    this.caller = caller;
    this.#link = new LinkedAbort([]);
  }

  /** Fires when it is to end early. */
  get signal(): AbortSignal {
    return this.#link.signal;
  }

  end(by: Reason): void {
    this.endedBy ??= by;
    this.#link.abort(new RolloutError('CANCELLED', `the trial is ${by}`, { phase: 'server' }));
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
  }
}

const operator: Caller = { tenant: null };

export class AgentServer {
  readonly #options: AgentServerOptions;
  readonly #parts: AgentServerParts;
  readonly #runs = new Set<Run>();
  readonly #clients = new Clients<Run>();
  readonly #door: Door;

  constructor(options: AgentServerOptions, parts: AgentServerParts) {
    this.#options = options;
    this.#parts = parts;
    this.#door = new Door(options.maxWaiting, parts.clock);
  }

  /** Heartbeats and pruning, until `signal` fires. Never rejects. */
  async watch(signal: AbortSignal): Promise<void> {
    const { heartbeat, pruneIntervalMs } = this.#options;
    const { reclaim, clock, logger } = this.#parts;
    await Promise.all([
      keepHeartbeats(
        heartbeat,
        { ...this.#parts, clients: this.#clients, flush: (client) => this.#lose(client) },
        signal,
      ),
      keepPruning(pruneIntervalMs, { reclaim, clock, logger }, signal),
    ]);
  }

  /** `signal` fires when the client has hung up: nobody reads the answer then. */
  async run(
    request: RunRequest,
    { caller, signal }: { readonly caller: Caller; readonly signal: AbortSignal },
  ): Promise<RunAnswer> {
    let identity: ClientIdentity | null;
    try {
      identity = await this.#identityOf(request);
    } catch (error) {
      if (!(error instanceof IdentityProblem)) throw error;
      this.#parts.logger.log('warn', 'a trial was refused', { problem: error.message });
      return replied(refusedStatuses.identity);
    }
    using run = new Run(caller);
    const hungUp = (): void => void this.#end([run], 'hung up');
    this.#runs.add(run);
    try {
      if (identity !== null && !this.#clients.register(identity, run, caller))
        return replied(refusedStatuses.identity);
      signal.addEventListener('abort', hungUp, { once: true });
      if (signal.aborted) hungUp();
      return await this.#trial(request, run);
    } finally {
      signal.removeEventListener('abort', hungUp);
      this.#runs.delete(run);
      if (identity !== null) this.#clients.discard(identity, run, caller);
    }
  }

  /** IdentityProblem for an id that cannot be, or none. Does not wait for the trials to end. */
  flush(request: FlushRequest, caller: Caller): FlushReply {
    const { session_server_id: serverId, session_server_instance_id: instanceId } = request;
    if (instanceId !== null) {
      checkInstanceId(instanceId);
      const server = serverId === null ? null : canonicalServerId(serverId);
      return {
        ...{ session_server_instance_id: instanceId, session_server_id: server },
        cancelled: this.#flush(caller, ({ key }) => key === instanceId),
      };
    }
    if (serverId === null)
      throw new IdentityProblem('session_server_instance_id or session_server_id must be given');
    const target = canonicalServerId(serverId);
    return {
      session_server_id: target,
      cancelled: this.#flush(caller, ({ heartbeatTarget }) => heartbeatTarget === target),
    };
  }

  clients(caller: Caller): ClientsReply {
    return Object.fromEntries(
      this.#clients.visible(caller).map(({ key, heartbeatTarget, instanceId, runs }) => [
        key,
        {
          heartbeat_target: heartbeatTarget,
          session_server_instance_id: instanceId,
          active_tasks: runs.size,
        },
      ]),
    );
  }

  /** Sandboxes end with their trials; what is pruned is what dead runs of ours left. */
  async flushAll(request: FlushAllRequest, caller: Caller): Promise<FlushAllReply> {
    const { cancel_tasks, kill_containers, prune } = request;
    const runs = [...this.#runs].filter(
      (run) => caller.tenant === null || run.caller.tenant === caller.tenant,
    );
    const { count, receipts } =
      cancel_tasks || kill_containers
        ? this.#end(runs, 'flushed')
        : { count: 0, receipts: Promise.resolve([]) };
    const killed = kill_containers ? await receipts : [];
    return {
      ...(cancel_tasks && { cancelled_tasks: count }),
      ...(kill_containers && {
        killed_projects: killed.filter(hadSandbox).map(({ rolloutId }) => rolloutId),
        errors: killed.flatMap(({ rolloutId, problem }) =>
          problem === null ? [] : [{ project: rolloutId, error: problem.slice(0, 500) }],
        ),
      }),
      ...(prune && { prune: await pruneText(this.#parts.reclaim) }),
    };
  }

  /** Those of an earlier life: their clients are gone with its connections. Resolves when none of them runs. */
  async cancelLeft(): Promise<void> {
    const { service, logger } = this.#parts;
    try {
      const left = await service.list(
        { prefix: 'run-', states: ['queued', 'running', 'grading'], limit: 10_000 },
        operator,
      );
      const ids = left
        .filter(({ rollout }) => !this.#isLive(rollout.id) && hasNoCallback(rollout.request))
        .map(({ rollout }) => rollout.id);
      if (ids.length > 0) await service.cancel({ kind: 'ids', ids }, operator);
    } catch (error) {
      logger.log('warn', 'trials of an earlier life were not ended', { error: messageOf(error) });
    }
  }

  /** The rollouts that are left run no more: whoever waits for one hears that it was flushed. */
  close(): void {
    this.#parts.ends.close();
  }

  async #identityOf(request: RunRequest): Promise<ClientIdentity | null> {
    const { base_url: baseUrl, session_server_id: serverId } = request;
    const { session_server_instance_id: instanceId } = request;
    if (serverId === null && instanceId === null) return null;
    const { resolve } = this.#parts;
    const heartbeatTarget =
      serverId === null ? serverIdOf(baseUrl) : await checkServerId(serverId, { baseUrl, resolve });
    if (instanceId !== null) checkInstanceId(instanceId);
    return { key: instanceId ?? heartbeatTarget, heartbeatTarget, instanceId };
  }

  async #trial(request: RunRequest, run: Run): Promise<RunAnswer> {
    const { tasksDir, taskKey, agent, agentTimeoutSec, ceilingMs } = this.#options;
    const { service, ends, clock } = this.#parts;
    const task = tasksDir === null ? noTasks : await findTask(tasksDir, request.instance_id);
    if (task.dir === undefined) return replied(task.exitStatus);
    const plan = { id: run.id, taskDir: task.dir, taskKey, agent, agentTimeoutSec };
    const rollout = rolloutOfRun(request, plan);
    const canonicalBody = canonicalJson(rollout);
    const submit = (): Promise<SubmitAnswer> => {
      run.isSubmitted = true;
      return service.submit({ request: rollout, canonicalBody, caller: run.caller });
    };
    using timer = new LinkedAbort([run.signal]);
    clock.sleep(ceilingMs, timer.signal).then(
      () => void this.#end([run], 'over time'),
      () => undefined,
    );
    const end = ends.of(run.id);
    try {
      const answer = await this.#admitted(submit, run);
      if (answer.kind === 'refused' || answer.kind === 'stopping') return answer;
      if (answer.kind !== 'accepted') return replied(statusOf(run));
      if (run.endedBy !== null) this.#end([run], run.endedBy);
      const ended = await end;
      const reply = ended === null ? replyWithout(flushed) : replyOf(ended);
      const isCut = reply.exit_status === flushed && run.endedBy === 'over time';
      return { kind: 'reply', reply: isCut ? { ...reply, exit_status: overTime } : reply };
    } finally {
      ends.forget(run.id);
      timer.abort(new Error('not needed any more'));
    }
  }

  /** A request that ends while it waits at the door is not submitted any more. */
  async #admitted(submit: () => Promise<SubmitAnswer>, run: Run): Promise<SubmitAnswer> {
    try {
      return await this.#door.enter(submit, { ...run.caller, signal: run.signal });
    } catch (error) {
      if (run.endedBy === null) throw error;
      return { kind: 'tombstone', id: run.id };
    }
  }

  #flush(caller: Caller, isMeant: (client: Client<Run>) => boolean): number {
    const runs = this.#clients.take(caller, isMeant).flatMap((client) => [...client.runs]);
    return this.#end(runs, 'flushed').count;
  }

  #lose(client: Client<Run>): void {
    this.#flush(operator, (other) => other === client);
  }

  #end(
    runs: readonly Run[],
    by: Reason,
  ): { readonly count: number; readonly receipts: Promise<readonly CancelReceipt[]> } {
    const fresh = runs.filter(({ endedBy }) => endedBy === null);
    for (const run of runs) run.end(by);
    const ids = runs.filter(({ isSubmitted }) => isSubmitted).map(({ id }) => id);
    return { count: fresh.length, receipts: this.#cancel(ids) };
  }

  async #cancel(ids: readonly string[]): Promise<readonly CancelReceipt[]> {
    if (ids.length === 0) return [];
    const { service, logger } = this.#parts;
    try {
      return [...(await service.cancel({ kind: 'ids', ids }, operator)).values()];
    } catch (error) {
      logger.log('error', 'trials could not be ended', { ids, error: messageOf(error) });
      return [];
    }
  }

  #isLive(id: string): boolean {
    return [...this.#runs].some((run) => run.id === id);
  }
}

const noTasks: FoundTask = { exitStatus: refusedStatuses.task };

function replied(exitStatus: string): RunAnswer {
  return { kind: 'reply', reply: replyWithout(exitStatus) };
}

function statusOf(run: Run): string {
  return run.endedBy === 'over time' ? overTime : flushed;
}

function hadSandbox({ disposition, confirmedGone }: CancelReceipt): boolean {
  return disposition === 'cancelled_running' && confirmedGone.length > 0;
}

function hasNoCallback(request: string): boolean {
  const { completion_callback_url: url } = JSON.parse(request) as {
    readonly completion_callback_url?: unknown;
  };
  return url === '';
}
