/** The agent server over the scheduler: names are resolved, heartbeats asked and dead runs cleaned up with the real parts. */
import { lookup } from 'node:dns';
import { AgentServer } from '../../agent-server/agent-server.ts';
import type { RunEnds } from '../../agent-server/run-ends.ts';
import { answerMarginMs, type ServeConfig } from '../../config/serve/read-serve-config.ts';
import { readSecrets, type SecretSources } from '../../config/serve/read-secrets.ts';
import type { Logger } from '../../core/logger.ts';
import type { RolloutService } from '../../scheduler/rollout-service.ts';
import { adminSecretOf, type AdminSecret } from '../../server/admin-secret.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';
import type { UrlPolicy } from '../../wire/url-policy.ts';
import type { AppPorts } from '../ports.ts';
import { cleanDeadRuns } from './clean-dead-runs.ts';
import { healthProbe } from './health-probe.ts';
import { resolveHost } from './resolve-host.ts';

/** Whoever asks for a trial waits for it. */
const resolveMs = 5_000;

export interface AgentServerSources {
  readonly service: RolloutService;
  readonly ends: RunEnds;
  readonly ports: AppPorts;
  readonly sources: SecretSources;
  readonly mask: SecretMask;
  readonly logger: Logger;
  /** Where heartbeats may go. */
  readonly policy: UrlPolicy;
  readonly looksForLabels: boolean;
  /** Of the server's life. */
  readonly signal: AbortSignal;
}

export async function openAgentServer(
  config: ServeConfig,
  parts: AgentServerSources,
): Promise<{ readonly agentServer: AgentServer; readonly adminSecret: AdminSecret }> {
  const { agentServer: own, backend } = config;
  const { service, ends, ports, sources, mask, logger, looksForLabels, signal, policy } = parts;
  const { clock } = ports;
  const secret = await secretOf(own.adminSecret, sources);
  if (secret !== null) mask.add([secret]);
  const ceilingMs = own.trainerTimeoutMs - answerMarginMs;
  if (own.tasksDir !== null)
    logger.log('info', 'trials are run for whoever waits for them', {
      ...{ tasksDir: own.tasksDir, answeredWithinS: ceilingMs / 1000 },
      agentTimeoutS: own.agentTimeoutSec,
    });
  const agentServer = new AgentServer(
    {
      ...{ tasksDir: own.tasksDir, taskKey: backend.native.taskKey, agent: own.agent },
      ...{ agentTimeoutSec: own.agentTimeoutSec, ceilingMs, maxWaiting: own.maxWaiting },
      heartbeat: { intervalMs: own.heartbeatIntervalMs, threshold: own.heartbeatFailures },
      pruneIntervalMs: own.pruneIntervalMs,
    },
    {
      ...{ service, ends, clock, logger },
      resolve: (host) => resolveHost(host, { lookup, ms: resolveMs, signal }),
      probe: healthProbe({ timeoutMs: own.heartbeatTimeoutMs, policy, lookup }),
      reclaim: () => cleanDeadRuns({ looksForLabels, signal, logger }, ports),
    },
  );
  return { agentServer, adminSecret: adminSecretOf(secret) };
}

async function secretOf(place: string | null, sources: SecretSources): Promise<string | null> {
  const preset = (sources.variables['HARBOR_ADMIN_SECRET'] ?? '').trim();
  if (place === null) return preset === '' ? null : preset;
  const name = 'agent_server.admin_secret';
  const found = await readSecrets({ [name]: [place] }, sources);
  return found[name]?.[0] ?? null;
}
