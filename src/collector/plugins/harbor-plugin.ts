/**
 * The plugin for a Harbor agent server: `run` posts a trial to `/run`, `abort` posts the ids of our session servers to `/flush`, all at once, so that exactly our
 * trials end there. Settings are read at every call.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { AgentAbortInput, AgentPluginModule, AgentRunInput } from '../agent-plugin.ts';
import type { MemberFault } from '../member.ts';
import {
  adminSecret,
  instanceIds,
  modelName,
  serverUrl,
  type Variables,
} from './harbor-settings.ts';

export interface HarborPluginParts {
  readonly variables: Variables;
  readonly fetch: typeof fetch;
}

type HarborPlugin = Required<AgentPluginModule>;

const localUrl = 'http://localhost:11000';
const trialSec = 7_200;
const flushAttempts = 3;
const flushPauseMs = 100;

export function harborPlugin(parts: HarborPluginParts): HarborPlugin {
  return {
    run: (input) => run(input, parts),
    abort: (input) => abort(input, parts),
  };
}

/** Exit statuses that say nothing about the policy; all others come with a reward of the verifier. */
export function faultOfExit(exitStatus: string): MemberFault | null {
  if (exitStatus === 'Flushed') return 'cancelled';
  if (exitStatus === 'TaskNotFound' || exitStatus === 'InvalidInstanceId') return 'task';
  const isOurs = exitStatus === 'InvalidSessionServerId' || exitStatus === 'ImportError';
  return isOurs || exitStatus.startsWith('Error:') ? 'infrastructure' : null;
}

async function run(
  input: AgentRunInput,
  { variables, fetch: send }: HarborPluginParts,
): ReturnType<HarborPlugin['run']> {
  const { options, metadata, session, signal } = input;
  const url = serverUrl(options, variables) ?? localUrl;
  const limitSec = numberOf(options['trial_timeout_sec'] ?? variables['AGENT_TRIAL_TIMEOUT']);
  using link = new LinkedAbort([signal], {
    ms: 1_000 * (limitSec ?? trialSec),
    reason: () => new Error(`no result within ${limitSec ?? trialSec} s`),
  });
  const maxSeqLen = numberOf(options['max_seq_len'] ?? metadata['max_seq_len']);
  const answer = await send(`${url}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...metadata,
      ...{ base_url: input.baseUrl, model: `openai/${modelName(options, variables)}` },
      sampling_params: input.sampling,
      ...(maxSeqLen !== null && { max_seq_len: Math.trunc(maxSeqLen) }),
      ...(session !== null && { session_server_id: session.serverId }),
      ...(session?.instanceId != null && { session_server_instance_id: session.instanceId }),
    }),
    signal: link.signal,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`/run answered ${answer.status}: ${text.slice(0, 200)}`);
  const document = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const exitStatus = typeof document['exit_status'] === 'string' ? document['exit_status'] : '';
  const fault = faultOfExit(exitStatus);
  const reward = typeof document['reward'] === 'number' ? document['reward'] : 0;
  return {
    ...{ reward, exit_status: exitStatus, ...(fault !== null && { fault }) },
    agent_metrics: objectOf(document['agent_metrics']),
    eval_report: objectOf(document['eval_report']),
  };
}

async function abort(
  { reason, options, logger, signal }: AgentAbortInput,
  { variables, fetch: send }: HarborPluginParts,
): ReturnType<HarborPlugin['abort']> {
  // A flush would end trials that are wanted: those of stale groups end with their requests.
  if (reason === 'stale') return { cancelled: null, confirmed: [] };
  const url = serverUrl(options, variables);
  const ids = instanceIds(options);
  if (url === null || ids.length === 0) {
    const missing = [
      ...(url === null ? ['the address of the agent server (url, AGENT_SERVER_URL)'] : []),
      ...(ids.length === 0 ? ['the id of the session server (session_server_instance_id)'] : []),
    ];
    logger.log('warn', `trials are not flushed: missing ${missing.join(' and ')}`);
    return { cancelled: 0, confirmed: [] };
  }
  const secret = adminSecret(options, variables);
  const flushed = await Promise.allSettled(
    ids.map((id) => flush({ url, id, secret, send, signal })),
  );
  const failed = flushed.filter((each) => each.status === 'rejected');
  if (failed.length > 0) throw new Error(failed.map(({ reason }) => messageOf(reason)).join('; '));
  const counts = flushed.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const known = counts.filter((count) => count !== null);
  const cancelled = known.reduce((sum, count) => sum + count, 0);
  return { cancelled: known.length === counts.length ? cancelled : null, confirmed: [] };
}

/** How many trials it ended; null = the answer does not say. */
async function flush(to: {
  readonly url: string;
  readonly id: string;
  readonly secret: string | null;
  readonly send: typeof fetch;
  readonly signal: AbortSignal;
}): Promise<number | null> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await to.send(`${to.url}/flush`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(to.secret !== null && { authorization: `Bearer ${to.secret}` }),
        },
        body: JSON.stringify({ session_server_instance_id: to.id }),
        signal: to.signal,
      });
      const text = await answer.text();
      if (answer.ok) return countOf(text);
      throw new Error(`/flush answered ${answer.status}`);
    } catch (error) {
      if (attempt >= flushAttempts || to.signal.aborted) throw error;
      await delay(flushPauseMs * attempt, undefined, { signal: to.signal });
    }
  }
}

function countOf(text: string): number | null {
  try {
    const cancelled: unknown = objectOf(JSON.parse(text))['cancelled'];
    if (Array.isArray(cancelled)) return cancelled.length;
    return typeof cancelled === 'number' ? cancelled : null;
  } catch {
    return null;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}

function numberOf(value: unknown): number | null {
  if (value === undefined || value === null || value === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
