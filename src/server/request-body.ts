import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { brokenRule, isTooDeep, malformedJson, problemsOf } from '../wire/rollout/validation.ts';
import { invalid } from './refusal.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The body as `schema` reads it; a refusal in the shape of FastAPI otherwise. */
export function readBody<T extends z.ZodType>(schema: T, request: FastifyRequest): z.output<T> {
  const body = readJson(request);
  if (isTooDeep(body)) throw invalid([brokenRule(['body'], 'the body is nested too deeply', null)]);
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw invalid(problemsOf(result.error, body));
}

/** The query as `schema` reads it. */
export function readQuery<T extends z.ZodType>(schema: T, request: FastifyRequest): z.output<T> {
  const result = schema.safeParse(request.query);
  if (result.success) return result.data;
  throw invalid(problemsOf(result.error, request.query, 'query'));
}

/** A text of another type is read as none, so that no web page gets a body past a browser that would have asked first. */
function readJson({ body, headers }: FastifyRequest): unknown {
  if (!Buffer.isBuffer(body) || body.length === 0) return undefined;
  const type = (headers['content-type'] ?? 'application/json').split(';', 1)[0]?.trim() ?? '';
  if (!/^application\/(?:[\w.-]+\+)?json$/i.test(type)) return `(${type})`;
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch (error) {
    throw invalid([malformedJson(error)]);
  }
}
