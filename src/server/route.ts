import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { operations, type Operation } from '../wire/api/operations.ts';
import type { Caller } from '../scheduler/rollout-service.ts';
import type { Access } from './access.ts';
import type { ControlServerParts } from './ports.ts';
import { refuse } from './refusal.ts';

/** What every route works with. */
export interface Routing {
  readonly app: FastifyInstance;
  readonly access: Access;
  readonly parts: ControlServerParts;
}

/** What a request is, to a route. */
export interface Call {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly caller: Caller;
}

/** Registers the route of an operation. What `answer` gives back is the body. */
export function addRoute(
  { app, access, parts }: Routing,
  operation: Operation,
  answer: (call: Call) => unknown,
): void {
  app.route({
    method: operation.method,
    url: operation.path.replace('{*}', '*').replaceAll(/\{(\w+)\}/g, ':$1'),
    // Before a body is read.
    onRequest: (request, _reply, done) => {
      const refusal = access.admit(request, operation.isAdmin === true ? parts.adminSecret : null);
      done(operation.isOpen === true ? undefined : (refusal ?? undefined));
    },
    handler: async (request, reply) => {
      const caller = access.callerOf(request) ?? nobody;
      return await answer({ request, reply, caller });
    },
  });
}

/** Sees no rollout: no tenant has this name. */
const nobody: Caller = { tenant: '' };

export function isKnown(caller: Caller): boolean {
  return caller !== nobody;
}

export function requireOperator(caller: Caller): void {
  if (caller.tenant !== null) throw refuse('FORBIDDEN', 'this is for the operator');
}

export function parameter({ request }: Call, name: string): string {
  return (request.params as Readonly<Record<string, string | undefined>>)[name] ?? '';
}

/** Methods of the routes that a path fits. */
export function methodsOf(path: string): readonly string[] {
  return Object.values<Operation>(operations)
    .filter((operation) => patternOf(operation).test(path))
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

function patternOf({ path }: Operation): RegExp {
  const source = path
    .replaceAll('.', String.raw`\.`)
    .replace('{*}', '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${source}$`, 's');
}
