/** The routes that Miles' Harbor plugin calls, as rows of the API. */
import {
  clientsReplySchema,
  flushAllReplySchema,
  flushAllRequestSchema,
  flushReplySchema,
  flushRequestSchema,
} from '../agent-server/admin.ts';
import { runReplySchema, runRequestSchema } from '../agent-server/run.ts';
import { errorDocument } from './common.ts';
import type { Operation } from './operations.ts';

const forbidden = {
  description: 'The admin secret is missing or wrong, or the caller may not do this.',
  schema: errorDocument,
};

export const agentServerOperations = {
  runTrial: {
    id: 'runTrial',
    method: 'POST',
    path: '/run',
    summary:
      'Run one trial and wait for its end. How it ended is in exit_status; a client that hangs up cancels it.',
    body: runRequestSchema,
    answers: {
      200: { description: 'The trial has ended, or never was one.', schema: runReplySchema },
      429: {
        description: 'There is no room, not even to wait. No trial began.',
        schema: errorDocument,
        headers: { 'retry-after': 'Seconds.' },
      },
    },
  },
  flushTrials: {
    id: 'flushTrials',
    method: 'POST',
    path: '/flush',
    summary:
      'Cancel the trials of one session-server instance, or of one server. Each /run then answers with Flushed.',
    isAdmin: true,
    body: flushRequestSchema,
    answers: {
      200: { description: 'Whose trials, and how many.', schema: flushReplySchema },
      400: { description: 'No id, or one that cannot be.', schema: errorDocument },
      403: forbidden,
    },
  },
  flushAllTrials: {
    id: 'flushAllTrials',
    method: 'POST',
    path: '/flush_all',
    summary: 'Cancel every trial, end their sandboxes, prune what dead runs of ours left.',
    isAdmin: true,
    body: flushAllRequestSchema,
    answers: {
      200: { description: 'What was done.', schema: flushAllReplySchema },
      403: forbidden,
    },
  },
  clients: {
    id: 'clients',
    method: 'GET',
    path: '/clients',
    summary: 'Clients with trials, by tracking key.',
    isAdmin: true,
    answers: {
      200: { description: 'Those with a trial.', schema: clientsReplySchema },
      403: forbidden,
    },
  },
} as const satisfies Record<string, Operation>;
