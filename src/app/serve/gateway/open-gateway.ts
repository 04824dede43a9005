import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Logger } from '../../../core/logger.ts';
import type { GatewayControl } from '../../../gateway/gateway-control.ts';
import { ModelGateway, type RelayedCall } from '../../../gateway/model-gateway.ts';
import { registerGateway } from '../../../gateway/register-gateway.ts';
import { registerSessions } from '../../../gateway/sessions/register-sessions.ts';
import { sessionIdentity, type SessionServer } from '../../../gateway/sessions/session-server.ts';
import type { ChatCodec } from '../../../sessions/codec.ts';
import { buildDataServer } from '../../../server/data-server.ts';
import { defaultServerLimits } from '../../../server/ports.ts';
import type { GatewayFacts } from '../../../telemetry/facts.ts';
import type { UrlPolicy } from '../../../wire/url-policy.ts';
import type { AppPorts } from '../../ports.ts';
import { noteGatewayWorkers } from '../left-processes.ts';
import { closeServer, listen } from '../listen.ts';
import { captureOf, gatewaySettings } from './gateway-parts.ts';
import { GatewayWorkers } from './gateway-workers.ts';
import { openSessions } from './open-sessions.ts';
import { OpenedTokens } from './open-tokens.ts';

export interface OpenGatewayParts {
  readonly ports: Pick<AppPorts, 'clock' | 'openEngine' | 'composition' | 'machine'>;
  readonly logger: Logger;
  readonly policy: UrlPolicy;
  /** What `/health` says. */
  readonly health: () => Readonly<Record<string, unknown>>;
  readonly onCall: (call: RelayedCall) => void;
}

/** The gateway with its listeners, in this process or in its own ones. */
export interface ServedGateway {
  readonly control: GatewayControl;
  /** Binds; answers where, one address for each process. LISTEN_REFUSED. */
  listen(): Promise<readonly string[]>;
  facts(): readonly GatewayFacts[];
  /** Resolves when nothing is under way any more, or soon. */
  stopListening(): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

export function openGateway(config: ServeConfig, parts: OpenGatewayParts): ServedGateway {
  const { composition } = parts.ports;
  return config.gateway.workers === 0 || composition === null
    ? gatewayHere(config, parts)
    : gatewayInProcesses(config, parts);
}

function gatewayHere(config: ServeConfig, parts: OpenGatewayParts): ServedGateway {
  const { ports, logger, policy, health, onCall } = parts;
  const { clock, openEngine } = ports;
  const { dataHost: host, dataPort: port } = config.listen;
  let url = '';
  const tokens = new OpenedTokens(config, clock);
  const gateway = new ModelGateway({
    ...{ clock, logger, policy, openEngine, onCall },
    ...gatewaySettings(config, { clock, logger }),
    tokens: tokens.mode,
    baseUrl: () => `${url}/v1`,
  });
  let sessions: SessionServer | null = null;
  const server = buildDataServer({
    health: () => ({ ...health(), ...sessionIdentity(sessions) }),
    logger,
    limits: { ...defaultServerLimits, bodyBytes: config.limits.bodyBytes },
    mountGateway: (app) => registerGateway(app, gateway),
  });
  return {
    control: gateway,
    listen: async () => {
      const sources = { variables: ports.machine.variables, baseDir: config.baseDir };
      await tokens.ready();
      const openCodec = (): Promise<ChatCodec> => tokens.codec();
      sessions = await openSessions(config, { clock, logger, sources, openCodec });
      if (sessions !== null) registerSessions(server, sessions);
      url = await listen(server, { host, port }, 'listen.data_port');
      return [url];
    },
    facts: () => {
      const { liveRoutes: routes, runningCalls: callsRunning } = gateway;
      return [{ worker: 'server', routes, callsRunning, own: null }];
    },
    stopListening: () => closeServer(server),
    close: async () => {
      await gateway.close();
      await sessions?.close();
      await tokens[Symbol.asyncDispose]();
    },
  };
}

function gatewayInProcesses(config: ServeConfig, parts: OpenGatewayParts): ServedGateway {
  const { ports, logger, health, onCall } = parts;
  const { clock } = ports;
  const workers = new GatewayWorkers({
    ...{ config, clock, logger, health, onCall },
    capture: captureOf(config, { clock, logger }),
    note: (pids) => noteGatewayWorkers(config.dataDir, pids),
  });
  return {
    control: workers,
    listen: () => workers.start(),
    facts: () => workers.facts(),
    stopListening: () => workers.stopListening(),
    close: () => workers.close(),
  };
}
