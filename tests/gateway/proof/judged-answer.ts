/** Whether an answer is in the shape of its dialect: a strict client's reading of a stream, the envelope of an error, or a whole object. */
import { createParser } from 'eventsource-parser';
import type { CallAnswer } from '../relay-fixture.ts';
import { addedUp as addedMessage } from '../messages/added-up.ts';
import { addedUp as addedResponse } from '../responses/added-up.ts';

type Json = Record<string, unknown>;

export type ProvenDialect = 'messages' | 'responses';

export interface JudgedAnswer {
  readonly kind: 'refused' | 'whole' | 'streamed' | 'failed-in-stream';
  /** Everything that the client gets to read. */
  readonly text: string;
}

/** Throws what is wrong. */
export function judged(dialect: ProvenDialect, answer: CallAnswer): JudgedAnswer {
  const text = answer.body.toString();
  const { status, headers } = answer;
  if (status === 500 || status < 200 || status > 599) throw new Error(`status ${status}: ${text}`);
  if (status !== 200) {
    assertEnvelope(dialect, JSON.parse(text) as Json);
    return { kind: 'refused', text };
  }
  if (!String(headers['content-type']).startsWith('text/event-stream')) {
    const whole = JSON.parse(text) as Json;
    const isRight =
      dialect === 'messages' ? whole['type'] === 'message' : whole['object'] === 'response';
    if (!isRight) throw new Error(`no whole answer: ${text}`);
    return { kind: 'whole', text };
  }
  const events = eventsIn(text);
  return { kind: hasFailed(dialect, events) ? 'failed-in-stream' : 'streamed', text };
}

export interface NamedEvent {
  readonly event: string | null;
  readonly data: Json;
}

export function eventsIn(text: string): readonly NamedEvent[] {
  const events: NamedEvent[] = [];
  createParser({
    onEvent: ({ event, data }) => {
      events.push({ event: event ?? null, data: JSON.parse(data) as Json });
    },
    onError: (error) => {
      throw error;
    },
  }).feed(text);
  return events;
}

function hasFailed(dialect: ProvenDialect, events: readonly NamedEvent[]): boolean {
  if (dialect === 'responses') return addedResponse(events).terminal.type === 'response.failed';
  const { ending } = addedMessage(events);
  if (ending === null) throw new Error('the stream has no end');
  return ending === 'error';
}

function assertEnvelope(dialect: ProvenDialect, body: Json): void {
  const error = body['error'] as Json | undefined;
  const isRight =
    typeof error === 'object' &&
    typeof error['message'] === 'string' &&
    error['message'] !== '' &&
    typeof error['type'] === 'string' &&
    (dialect === 'messages'
      ? body['type'] === 'error' && typeof body['request_id'] === 'string'
      : 'code' in error && 'param' in error);
  if (!isRight) throw new Error(`not the envelope of ${dialect}: ${JSON.stringify(body)}`);
}
