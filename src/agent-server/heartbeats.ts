/** Asks every client's server whether it is still the one that its trials were started for. Several failures in a row flush that client, and no other. */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Client, Clients } from './clients.ts';

/** Asks `http://TARGET/health`: the instance id that it says, null where it says none. Rejects for anything but a 200 with JSON. */
export type ProbeHealth = (
  target: string,
  options: { readonly wantsInstance: boolean; readonly signal: AbortSignal },
) => Promise<string | null>;

export interface HeartbeatOptions {
  readonly intervalMs: number;
  readonly threshold: number;
}

export interface HeartbeatParts<Run> {
  readonly clients: Clients<Run>;
  readonly probe: ProbeHealth;
  readonly flush: (client: Client<Run>) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Until `signal` fires. Never rejects. */
export async function keepHeartbeats<Run>(
  { intervalMs, threshold }: HeartbeatOptions,
  parts: HeartbeatParts<Run>,
  signal: AbortSignal,
): Promise<void> {
  const { clients, clock } = parts;
  for (;;) {
    try {
      await clock.sleep(intervalMs, signal);
    } catch {
      return;
    }
    // All at once: a slow server delays nobody else's.
    await Promise.all(clients.all.map((client) => ask(client, threshold, { parts, signal })));
  }
}

async function ask<Run>(
  client: Client<Run>,
  threshold: number,
  { parts, signal }: { readonly parts: HeartbeatParts<Run>; readonly signal: AbortSignal },
): Promise<void> {
  const problem = await problemOf(client, parts.probe, signal);
  if (signal.aborted) return;
  client.failures = problem === null ? 0 : client.failures + 1;
  if (problem === null) return;
  const { heartbeatTarget, instanceId, failures } = client;
  const fields = { heartbeatTarget, instanceId, failures, problem };
  parts.logger.log('warn', 'a client of the agent server does not answer as it should', fields);
  if (failures >= threshold) parts.flush(client);
}

/** null = it is the one. */
async function problemOf<Run>(
  { heartbeatTarget, instanceId }: Client<Run>,
  probe: ProbeHealth,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    const found = await probe(heartbeatTarget, { wantsInstance: instanceId !== null, signal });
    if (instanceId === null || found === instanceId) return null;
    return `it is another instance: ${found ?? 'it names none'}`;
  } catch (error) {
    return messageOf(error);
  }
}
