/** What Miles' Harbor plugin calls: trials that are waited for, and their end from outside. */
import type { AgentServer } from '../../agent-server/agent-server.ts';
import { IdentityProblem } from '../../agent-server/identity.ts';
import { agentServerOperations as operations } from '../../wire/api/agent-server.ts';
import { flushAllRequestSchema, flushRequestSchema } from '../../wire/agent-server/admin.ts';
import { runRequestSchema } from '../../wire/agent-server/run.ts';
import { brokenRule } from '../../wire/rollout/validation.ts';
import type { AddressPolicy } from '../ports.ts';
import { invalid, Refusal, refuse } from '../refusal.ts';
import { readBody } from '../request-body.ts';
import { addRoute, type Call, type Routing } from '../route.ts';

export function addAgentServerRoutes(routing: Routing, agentServer: AgentServer): void {
  addRoute(
    routing,
    operations.runTrial,
    async (call) => await run(call, { ...routing.parts, agentServer }),
  );
  addRoute(routing, operations.flushTrials, ({ request, caller }) => {
    const body = readBody(flushRequestSchema, request);
    try {
      return agentServer.flush(body, caller);
    } catch (error) {
      if (error instanceof IdentityProblem) throw new Refusal(400, error.message);
      throw error;
    }
  });
  addRoute(routing, operations.flushAllTrials, async ({ request, caller }) => {
    const { body } = request;
    const isEmpty = !Buffer.isBuffer(body) || body.length === 0;
    const wanted = isEmpty
      ? flushAllRequestSchema.parse({})
      : readBody(flushAllRequestSchema, request);
    return await agentServer.flushAll(wanted, caller);
  });
  addRoute(routing, operations.clients, ({ caller }) => agentServer.clients(caller));
}

async function run(
  { request, reply, caller }: Call,
  {
    agentServer,
    addresses,
  }: { readonly agentServer: AgentServer; readonly addresses: AddressPolicy },
): Promise<unknown> {
  const body = readBody(runRequestSchema, request);
  const problem = URL.canParse(body.base_url) ? addresses.problem(body.base_url) : null;
  if (problem !== null)
    throw invalid([brokenRule(['body', 'base_url'], `base_url ${problem}`, null)]);
  const gone = new AbortController();
  const leave = (): void => {
    if (!reply.raw.writableFinished) gone.abort(new Error('the client has hung up'));
  };
  reply.raw.once('close', leave);
  // While its body was read, before anybody listened.
  if (request.raw.socket.destroyed) leave();
  const answer = await agentServer.run(body, { caller, signal: gone.signal });
  if (answer.kind === 'reply') return answer.reply;
  const headers = { 'retry-after': String(Math.max(1, Math.ceil(answer.retryAfterS))) };
  if (answer.kind === 'stopping')
    throw refuse('SERVER_STOPPING', 'the server is shutting down', headers);
  throw new Refusal(429, answer.detail, headers);
}
