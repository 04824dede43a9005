/** A control server over a service that the test holds. */
import type { FastifyInstance, InjectOptions } from 'fastify';
import { AgentServer, type AgentServerOptions } from '../../src/agent-server/agent-server.ts';
import { RunEnds } from '../../src/agent-server/run-ends.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Logger } from '../../src/core/logger.ts';
import { buildControlServer } from '../../src/server/control-server.ts';
import { Collections } from '../../src/server/collections/collections.ts';
import type { KeyRing } from '../../src/server/key-ring.ts';
import { compileAllowFrom } from '../../src/server/may-listen.ts';
import {
  defaultServerLimits,
  type ControlServerParts,
  type ServerLimits,
} from '../../src/server/ports.ts';
import type { RolloutService } from '../../src/scheduler/rollout-service.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';

export const controlKey = 'control-key-0123456789';
export const blueKey = 'blue-key-0123456789abc';
export const greenKey = 'green-key-0123456789ab';

const tenants = new Map<string, string | null>([
  [controlKey, null],
  [blueKey, 'blue'],
  [greenKey, 'green'],
]);

export const noKeys: KeyRing = { hasKeys: false, identify: () => null };

export const threeKeys: KeyRing = {
  hasKeys: true,
  identify(key) {
    const tenant = tenants.get(key);
    return tenant === undefined ? null : { tenant };
  },
};

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** `S`: the service, for tests that hold it. */
export class Serving<S extends RolloutService = FakeRolloutService> implements AsyncDisposable {
  readonly service: S;
  readonly lines: LogLine[] = [];
  readonly app: FastifyInstance;

  constructor(
    given: Partial<Omit<ControlServerParts, 'limits' | 'allowFrom' | 'service'>> & {
      readonly limits?: Partial<ServerLimits>;
      readonly allowFrom?: readonly string[];
      readonly service?: S;
    } = {},
  ) {
    const { limits, allowFrom, service, ...rest } = given;
    this.service = service ?? (new FakeRolloutService() as RolloutService as S);
    const logger: Logger = {
      log: (level, message, fields = {}) => void this.lines.push({ level, message, fields }),
    };
    this.app = buildControlServer({
      keys: noKeys,
      files: { list: async () => [], locate: async () => null },
      milesPayload: async () => new Uint8Array(),
      metrics: { contentType: 'text/plain; version=0.0.4', text: async () => 'up 1\n' },
      doctor: { diagnose: async () => null, diagnoseServer: async () => [] },
      addresses: new UrlPolicy({ allow: [], privateAddresses: 'allow' }),
      collections: new Collections({
        ...{ clock: systemClock, logger, max: 0 },
        open: () => Promise.reject(new Error('no collector')),
      }),
      ...{ agentServer: agentServerOver(this.service, logger), adminSecret: null },
      ...{ clock: systemClock, logger, instanceId: null, version: '1.2.3' },
      ...rest,
      service: this.service,
      allowFrom: compileAllowFrom(allowFrom ?? []),
      limits: { ...defaultServerLimits, ...limits },
    });
  }

  async ask(options: InjectOptions) {
    return await this.app.inject(options);
  }

  /** `POST` of a JSON value. */
  async post(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    return await this.app.inject({
      ...{ method: 'POST', url, payload: JSON.stringify(body) },
      headers: { 'content-type': 'application/json', ...headers },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.close();
  }
}

/** Nobody asks for heartbeats, nothing is pruned, every name is this machine. */
export function agentServerOver(
  service: RolloutService,
  logger: Logger,
  options: Partial<AgentServerOptions> & { readonly ends?: RunEnds } = {},
): AgentServer {
  const { ends = new RunEnds(), ...given } = options;
  return new AgentServer(
    {
      ...{ tasksDir: null, taskKey: 'harbor_task', agent: 'oracle', agentTimeoutSec: null },
      ...{ ceilingMs: 60_000, heartbeat: { intervalMs: 1_000, threshold: 3 } },
      ...{ pruneIntervalMs: 1_000, maxWaiting: 8 },
      ...given,
    },
    {
      ...{ service, ends, logger, clock: systemClock },
      resolve: async () => ['127.0.0.1'],
      probe: async () => null,
      reclaim: async () => ['old-sandbox'],
    },
  );
}

export const bearer = (key: string): Readonly<Record<string, string>> => ({
  authorization: `Bearer ${key}`,
});

/** A request that is right, for `id`. */
export function rolloutBody(id?: string, more: Readonly<Record<string, unknown>> = {}): object {
  return {
    initial_messages: [{ role: 'user', content: 'hi' }],
    chat_completions_url: '',
    completion_callback_url: 'http://127.0.0.1:9/c',
    controller_api_key: 'controller-secret',
    ...(id === undefined ? {} : { rollout_id: id }),
    ...more,
  };
}
