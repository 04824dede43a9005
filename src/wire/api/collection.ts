/** Collections: batches of groups that the server collects for a trainer, in any language. The keys are those of a file of `slipway collect`, without its server. */
import { z } from 'zod';
import { errorDocument, instant, jsonObject } from './common.ts';
import type { Operation } from './operations.ts';

const word = z.string().trim().min(1);
const url = word.regex(/^https?:\/\/\S+$/, 'an http(s) address is needed');
const count = z.int().min(1);
const whole = z.int().min(0);
const seconds = z.number().min(0);

/** Where another collection goes on. */
export const collectionPosition = z.object({
  dataset: z.object({ epoch: whole, offset: whole }),
  next_group: whole,
  /** Groups that were begun and not acknowledged. */
  open: z.array(z.object({ group: whole, row: whole, epoch: whole, rounds: whole })),
  given_up_rows: z.array(whole),
  /** Of the rows and their order: a position of other rows is refused. null = it is not known. */
  fingerprint: z.string().nullable().default(null),
});

/** When groups are started, and when a batch is full. */
export const collectionDriver = z.enum(['synchronous', 'one-step-ahead', 'asynchronous']);
export type CollectionDriver = z.output<typeof collectionDriver>;

export const collectionRequest = z.strictObject({
  /** How many; null = until the rows end. */
  batches: count.nullable().default(null),
  /** A batch is begun while at most so many groups are not acknowledged; 0 = when all are. */
  ahead_groups: whole.default(0),
  /** Of the trainer's weights when it begins; null = it names none. */
  weight_version: whole.nullable().default(null),
  driver: collectionDriver.default('synchronous'),
  /** Options of the asynchronous driver, in snake_case. */
  asynchronous: jsonObject.default({}),
  /** null = the beginning. */
  position: collectionPosition.nullable().default(null),
  /** Either `rows`, or a `file` of the server's folder of datasets. */
  dataset: z
    .strictObject({
      rows: z.array(jsonObject).min(1).nullable().default(null),
      file: word.nullable().default(null),
      prompt: word.default('prompt'),
      label: word.default('label'),
      metadata: word.default('metadata'),
      shuffle_seed: z.int().nullable().default(null),
      /** null = without end. */
      epochs: count.nullable().default(1),
    })
    .refine(({ rows, file }) => (rows === null) !== (file === null), 'either rows or a file'),
  /** What the agents' calls go to; without it they have no model. */
  model: z
    .strictObject({ url, api_key: word.nullable().default(null) })
    .nullable()
    .default(null),
  /** What is aborted when a batch is full. */
  engines: z
    .strictObject({
      router_url: url.nullable().default(null),
      urls: z.array(url).default([]),
      kind: z.enum(['sglang', 'vllm']).default('sglang'),
      api_key: word.nullable().default(null),
    })
    .nullable()
    .default(null),
  rollouts: z
    .strictObject({
      train: z.union([z.boolean(), jsonObject]).default(true),
      graded: z.boolean().default(true),
      agent_timeout_sec: seconds.nullable().default(null),
      grader_timeout_sec: seconds.nullable().default(null),
    })
    .prefault({}),
  /** Nothing that would load a module: a trainer elsewhere has filters of its own. */
  hooks: z
    .strictObject({ group_filter: z.literal('reward_spread').nullable().default(null) })
    .prefault({}),
  /** Options of the collector, in snake_case. */
  collector: jsonObject.default({}),
});
export type CollectionRequest = z.output<typeof collectionRequest>;

export const collectionStates = [
  'collecting',
  'paused',
  'stopping',
  'ended',
  'stopped',
  'failed',
] as const;
export type CollectionState = (typeof collectionStates)[number];

/** What the abort did that ended it, rollout by rollout. */
export const abortReceiptDocument = z.object({
  reason: z.string(),
  at: instant,
  duration_ms: z.number(),
  is_complete: z.boolean(),
  /** `none`, `absent`, `called`, `failed`, `timed-out`, `not-loaded`. */
  hook: z.string(),
  engines: z.number(),
  problems: z.array(z.string()),
  rollouts: z.array(
    z.object({
      rollout_id: z.string(),
      group: z.number(),
      /** `not-started`, `finished`, `ended`, `abandoned`. */
      how: z.string(),
      after_ms: z.number(),
      /** null = nobody confirms anything. */
      is_gone: z.boolean().nullable(),
      detail: z.string().nullable(),
    }),
  ),
});
export type AbortReceiptDocument = z.output<typeof abortReceiptDocument>;

export const collectionDocument = z.object({
  id: z.string(),
  state: z.enum(collectionStates),
  created_at: instant,
  ended_at: instant.nullable(),
  rows: z.number(),
  /** Lines of the dataset that are no JSON object. */
  skipped_lines: z.number(),
  /** Of those that were asked for; null = until the rows end. */
  batches: z.number().nullable(),
  batches_collected: z.number(),
  groups_collected: z.number(),
  groups_unacknowledged: z.number(),
  /** Everything up to this line is acknowledged. */
  acknowledged: z.number(),
  /** The newest line. */
  cursor: z.number(),
  weight_version: z.number().nullable(),
  /** Where a further collection gets what is not acknowledged, and then what follows. */
  position: collectionPosition,
  /** Why it failed. */
  error: errorDocument.nullable(),
  /** null = it was not stopped, or nothing ran. */
  receipt: abortReceiptDocument.nullable(),
});
export type CollectionDocument = z.output<typeof collectionDocument>;

export const collectionsDocument = z.object({ collections: z.array(collectionDocument) });
export type CollectionsDocument = z.output<typeof collectionsDocument>;

export const groupsQuery = z.object({ after: z.coerce.number().int().min(0).optional() });
export const acknowledgement = z.strictObject({ through: whole });
export const weightVersion = z.strictObject({ version: whole });

const notFound = {
  description: 'No such collection that the caller may see.',
  schema: errorDocument,
};
const one = { description: 'The collection.', schema: collectionDocument };
const over = { description: 'It has ended, or is about to.', schema: errorDocument };

export const collectionOperations = {
  createCollection: {
    id: 'createCollection',
    method: 'POST',
    path: '/api/v1/collections',
    summary: 'Collect batches of groups for a trainer. It lives as long as the server does.',
    body: collectionRequest,
    answers: {
      201: { description: 'It collects.', schema: collectionDocument },
      400: { description: 'An option cannot be used.', schema: errorDocument },
      429: {
        description: 'There are as many collections as the server has room for.',
        schema: errorDocument,
        headers: { 'retry-after': 'Seconds.' },
      },
    },
  },
  listCollections: {
    id: 'listCollections',
    method: 'GET',
    path: '/api/v1/collections',
    summary: 'Collections that the caller may see, oldest first.',
    answers: { 200: { description: 'All of them.', schema: collectionsDocument } },
  },
  inspectCollection: {
    id: 'inspectCollection',
    method: 'GET',
    path: '/api/v1/collections/{id}',
    summary: 'One collection.',
    answers: { 200: one, 404: notFound },
  },
  collectedGroups: {
    id: 'collectedGroups',
    method: 'GET',
    path: '/api/v1/collections/{id}/groups',
    summary:
      'Groups as they are handed over, a line of JSON each, then what their batch cost, and at last why it is over. Without `after` from the oldest that is not acknowledged.',
    query: groupsQuery,
    answers: {
      200: { description: 'Lines, each with its cursor.', mediaType: 'application/x-ndjson' },
      404: notFound,
      429: {
        description: 'There are as many streams as the server serves.',
        schema: errorDocument,
        headers: { 'retry-after': 'Seconds.' },
      },
    },
  },
  acknowledgeGroups: {
    id: 'acknowledgeGroups',
    method: 'POST',
    path: '/api/v1/collections/{id}/ack',
    summary: 'The caller has every line up to this cursor: they are not kept any longer.',
    body: acknowledgement,
    answers: { 200: one, 404: notFound },
  },
  pauseCollection: {
    id: 'pauseCollection',
    method: 'POST',
    path: '/api/v1/collections/{id}/pause',
    summary: 'No further batch is begun; answered when weights may change. Idempotent.',
    answers: { 200: one, 404: notFound, 409: over },
  },
  resumeCollection: {
    id: 'resumeCollection',
    method: 'POST',
    path: '/api/v1/collections/{id}/resume',
    summary: 'It goes on. Idempotent.',
    answers: { 200: one, 404: notFound, 409: over },
  },
  setWeightVersion: {
    id: 'setWeightVersion',
    method: 'POST',
    path: '/api/v1/collections/{id}/weight-version',
    summary: 'Members that are started from here on are of this version of the weights.',
    body: weightVersion,
    answers: { 200: one, 404: notFound, 409: over },
  },
  stopCollection: {
    id: 'stopCollection',
    method: 'POST',
    path: '/api/v1/collections/{id}/stop',
    summary: 'End what runs, and answer the receipt. What was handed over stays. Idempotent.',
    answers: { 200: one, 404: notFound },
  },
} as const satisfies Record<string, Operation>;
