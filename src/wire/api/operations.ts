/**
 * Every route of the control server, as data: the server registers what stands here, and the OpenAPI document is made of it, so that neither has a
 * path or a status that the other lacks.
 */
import { z } from 'zod';
import { cancelRequestSchema } from '../rollout/cancel.ts';
import { rolloutRequestSchema } from '../rollout/rollout-request.ts';
import { rolloutStates } from '../rollout/rollout-state.ts';
import { agentServerOperations } from './agent-server.ts';
import { admissionDocument, capacityDocument } from './admission.ts';
import { callbackDocument, callbacksDocument } from './callback.ts';
import { collectionOperations } from './collection.ts';
import { errorDocument, validationDocument } from './common.ts';
import { doctorDocument } from './diagnosis.ts';
import { eventsDocument } from './event.ts';
import { filesDocument } from './file.ts';
import { receiptsDocument } from './receipt.ts';
import { rolloutDetailDocument, rolloutsDocument } from './rollout.ts';
import { samplesDocument, samplesQuery } from './samples.ts';

export interface Answer {
  readonly description: string;
  /** JSON; absent = `mediaType` tells what it is instead, or there is no body. */
  readonly schema?: z.ZodType;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  /** `operationId`. */
  readonly id: string;
  readonly method: 'GET' | 'POST';
  /** With `{name}` for a segment and a last `{*}` for all that follows. */
  readonly path: string;
  readonly summary: string;
  /** True: no key is asked for. */
  readonly isOpen?: boolean;
  /** True: where an admin secret is set the caller shows that instead of a key. */
  readonly isAdmin?: boolean;
  readonly query?: z.ZodObject;
  readonly requestHeaders?: Readonly<Record<string, string>>;
  readonly body?: z.ZodType;
  /** Beside what every route may answer: `commonAnswers`. */
  readonly answers: Readonly<Record<number, Answer>>;
}

const wholeNumber = z.coerce.number().int();
const limit = (max: number, usual: number) => wholeNumber.min(1).max(max).default(usual);
const cursor = wholeNumber.min(0);

export const listQuery = z.object({
  /** Comma-separated. */
  state: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(rolloutStates)))
    .optional(),
  prefix: z.string().optional(),
  tenant: z.string().optional(),
  after: z.string().optional(),
  limit: limit(500, 100),
});

export const eventsQuery = z.object({
  after: cursor.optional(),
  rollout: z.string().optional(),
  limit: limit(1_000, 100),
});

export const deadQuery = z.object({ after: cursor.default(0), limit: limit(500, 100) });

const notFound = { description: 'No such thing that the caller may see.', schema: errorDocument };
const json = (description: string, schema: z.ZodType): Answer => ({ description, schema });

export const healthSchema = z.looseObject({
  status: z.string(),
  capacity: capacityDocument,
  instance_id: z.string().optional(),
  paused: z.literal(true).optional(),
  /** For callers with a key only. */
  paused_reason: z.string().optional(),
  stopping: z.literal(true).optional(),
});

export const statusSchema = z.object({
  rollout_id: z.string(),
  status: z.enum([...rolloutStates, 'unknown']),
  reward: z.number().nullable(),
  err_message: z.string().nullable(),
  /** Of one that has ended and was to be trained on. */
  samples: samplesDocument.optional(),
});

export const dispositionsSchema = z.object({
  dispositions: z.record(
    z.string(),
    z.enum(['cancelled_queued', 'cancelled_running', 'not_found']),
  ),
});

/** The rollout protocol. */
const protocol = {
  submitRollout: {
    id: 'submitRollout',
    method: 'POST',
    path: '/rollout',
    summary:
      'Submit one rollout. It is durable when 202 is answered; a repeat of id and body is answered as the first.',
    body: rolloutRequestSchema,
    answers: {
      202: {
        description: 'Accepted.',
        schema: z.object({}),
        headers: {
          'x-slipway-rollout-id': 'The id, percent-encoded where a header cannot hold it.',
        },
      },
      409: json('The id exists with another body, or was cancelled before it came.', errorDocument),
      429: {
        description: 'There is no room; the same request may come again.',
        schema: errorDocument,
        headers: { 'retry-after': 'Seconds.' },
      },
    },
  },
  health: {
    id: 'health',
    method: 'GET',
    path: '/health',
    summary: 'Live figures of admission beside what the backend says of itself.',
    isOpen: true,
    answers: { 200: json('Always, while the process lives.', healthSchema) },
  },
  rolloutStatus: {
    id: 'rolloutStatus',
    method: 'GET',
    path: '/rollout/{id}/status',
    summary: 'State of one rollout; `unknown` for an id that is not known.',
    answers: { 200: json('Always.', statusSchema) },
  },
  cancelRollouts: {
    id: 'cancelRollouts',
    method: 'POST',
    path: '/rollout/cancel',
    summary: 'Cancel by ids, by prefix, or all. A cancelled rollout sends no callback.',
    body: cancelRequestSchema,
    answers: {
      200: json('What became of each.', dispositionsSchema),
      422: json(
        'Not exactly one selector, or a field of the wrong type.',
        z.union([errorDocument, validationDocument]),
      ),
    },
  },
  metrics: {
    id: 'metrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics in the text format of Prometheus. For the operator.',
    answers: { 200: { description: 'Metrics.', mediaType: 'text/plain' } },
  },
} as const satisfies Record<string, Operation>;

/** Our own API. */
const api = {
  listRollouts: {
    id: 'listRollouts',
    method: 'GET',
    path: '/api/v1/rollouts',
    summary: 'Rollouts, newest first.',
    query: listQuery,
    answers: { 200: json('One page.', rolloutsDocument) },
  },
  inspectRollout: {
    id: 'inspectRollout',
    method: 'GET',
    path: '/api/v1/rollouts/{id}',
    summary: 'One rollout with its callbacks and receipts.',
    answers: { 200: json('The rollout.', rolloutDetailDocument), 404: notFound },
  },
  cancelWithReceipts: {
    id: 'cancelWithReceipts',
    method: 'POST',
    path: '/api/v1/rollouts/cancel',
    summary: 'As POST /rollout/cancel, answered with receipts.',
    body: cancelRequestSchema,
    answers: {
      200: json('One receipt per rollout.', receiptsDocument),
      422: json(
        'Not exactly one selector, or a field of the wrong type.',
        z.union([errorDocument, validationDocument]),
      ),
    },
  },
  listFiles: {
    id: 'listFiles',
    method: 'GET',
    path: '/api/v1/rollouts/{id}/files',
    summary: 'Files that the archive keeps of a rollout.',
    answers: { 200: json('Sorted by path.', filesDocument), 404: notFound },
  },
  downloadFile: {
    id: 'downloadFile',
    method: 'GET',
    path: '/api/v1/rollouts/{id}/files/{*}',
    summary: 'One file, or a range of it. Its ETag is its SHA-256.',
    requestHeaders: {
      range: '`bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`.',
      'if-range': 'The ETag: another file under the path comes as a whole.',
      'if-none-match': 'ETags that the caller has.',
    },
    answers: {
      200: { description: 'The whole file.', mediaType: 'application/octet-stream' },
      206: { description: 'The range.', mediaType: 'application/octet-stream' },
      304: { description: 'The caller has it.' },
      404: notFound,
      416: json('The file has no such range.', errorDocument),
    },
  },
  rolloutSamples: {
    id: 'rolloutSamples',
    method: 'GET',
    path: '/api/v1/rollouts/{id}/samples',
    summary:
      'Samples of a rollout that has ended: lines of NDJSON, or with `format=miles` one safetensors payload as clients of Miles take it.',
    query: samplesQuery,
    answers: {
      200: { description: 'The samples.', mediaType: 'application/x-ndjson' },
      404: notFound,
      409: json('It has none: it runs, nobody wants any, or why not is said.', errorDocument),
    },
  },
  events: {
    id: 'events',
    method: 'GET',
    path: '/api/v1/events',
    summary:
      'Events after a cursor: one page as JSON, or, asked for as text/event-stream, all that follow; the id of each is its cursor.',
    query: eventsQuery,
    requestHeaders: { 'last-event-id': 'As `after`, for streams; it wins over `after`.' },
    answers: {
      200: json('One page, or a stream.', eventsDocument),
      429: {
        description: 'There are as many streams as the server serves.',
        schema: errorDocument,
        headers: { 'retry-after': 'Seconds.' },
      },
    },
  },
  admission: {
    id: 'admission',
    method: 'GET',
    path: '/api/v1/admission',
    summary: 'Who waits, who runs, and what holds admission back.',
    answers: { 200: json('Live figures.', admissionDocument) },
  },
  deadCallbacks: {
    id: 'deadCallbacks',
    method: 'GET',
    path: '/api/v1/callbacks/dead',
    summary: 'Callbacks that are not tried any more, oldest first.',
    query: deadQuery,
    answers: { 200: json('One page.', callbacksDocument) },
  },
  replayCallback: {
    id: 'replayCallback',
    method: 'POST',
    path: '/api/v1/callbacks/dead/{key}/replay',
    summary: 'Deliver a dead callback again: same bytes, same idempotency key.',
    answers: { 200: json('It is pending again.', callbackDocument), 404: notFound },
  },
  doctor: {
    id: 'doctor',
    method: 'GET',
    path: '/api/v1/doctor',
    summary: 'What holds up the server, and every live rollout that does not move.',
    answers: { 200: json('Findings; none = nothing.', doctorDocument) },
  },
  doctorOfRollout: {
    id: 'doctorOfRollout',
    method: 'GET',
    path: '/api/v1/doctor/{id}',
    summary: 'Why one rollout is not moving.',
    answers: { 200: json('One finding.', doctorDocument), 404: notFound },
  },
  openApi: {
    id: 'openApi',
    method: 'GET',
    path: '/api/v1/openapi.json',
    summary: 'This document.',
    answers: { 200: json('OpenAPI 3.1.', z.looseObject({ openapi: z.literal('3.1.0') })) },
  },
} as const satisfies Record<string, Operation>;

export const operations = {
  ...protocol,
  ...agentServerOperations,
  ...api,
  ...collectionOperations,
};

/** What any route may answer, beside its own. */
export function commonAnswers(operation: Operation): Readonly<Record<number, Answer>> {
  return {
    ...(operation.isOpen === true
      ? {}
      : {
          401: json('No key, or one that is not known.', errorDocument),
          403: json('The caller may not do this.', errorDocument),
        }),
    ...(operation.body === undefined
      ? {}
      : {
          413: json('The body is larger than the server takes.', errorDocument),
          422: json('The body is not valid.', validationDocument),
        }),
    ...(operation.query === undefined
      ? {}
      : { 422: json('A parameter is not valid.', validationDocument) }),
    ...operation.answers,
    500: json('A defect of the server.', errorDocument),
    503: {
      description: 'The server is stopping, or something that it needs failed.',
      schema: errorDocument,
      headers: { 'retry-after': 'Seconds.' },
    },
  };
}
