import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { jsonShape } from '../core/json-shape.ts';
import { brokenRule, malformedJson, problemsOf } from '../wire/rollout/validation.ts';
import { invalid } from './refusal.ts';

/** Deeper, and what reads the body further on would run out of stack. */
const maxDepth = 200;
/** Requests of the largest size have a small part of that; more would hold up everybody else while they are read. */
const maxValues = 500_000;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The body as `schema` reads it; a refusal in the shape of FastAPI otherwise. */
export function readBody<T extends z.ZodType>(schema: T, request: FastifyRequest): z.output<T> {
  const body = readJson(request);
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
  const { depth, values } = jsonShape(body);
  if (depth > maxDepth || values > maxValues) {
    const rule = depth > maxDepth ? 'is nested too deeply' : 'holds too many values';
    throw invalid([brokenRule(['body'], `the body ${rule}`, null)]);
  }
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch (error) {
    throw invalid([malformedJson(error)]);
  }
}
