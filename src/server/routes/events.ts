import { eventsQuery, operations } from '../../wire/api/operations.ts';
import { EventStream } from '../event-stream.ts';
import { readEvents } from '../event-page.ts';
import { Refusal } from '../refusal.ts';
import { readQuery } from '../request-body.ts';
import { addRoute, type Call, type Routing } from '../route.ts';

export function addEventRoutes(routing: Routing): void {
  const { service, limits, clock } = routing.parts;
  const streams = new Set<EventStream>();
  // A connection that never ends would hold up the end of the server.
  routing.app.addHook('preClose', (done) => {
    for (const stream of streams) stream.close();
    done();
  });
  addRoute(routing, operations.events, async (call) => {
    const query = readQuery(eventsQuery, call.request);
    const rolloutId = query.rollout === undefined ? {} : { rolloutId: query.rollout };
    const read = (after: number | null, limit: number) =>
      readEvents(service, { after, limit, ...rolloutId }, call.caller);
    const after = query.after ?? null;
    if (!wantsStream(call)) return await read(after, query.limit);
    if (streams.size >= limits.maxStreams)
      throw new Refusal(429, 'there are too many event streams', { 'retry-after': '5' });
    const stream = new EventStream({
      ...{ read, limits, clock },
      onEvents: (listener) => service.onEvents(listener),
    });
    streams.add(stream);
    call.reply.hijack();
    void stream
      .run(call.reply.raw, lastEventId(call) ?? after)
      .finally(() => streams.delete(stream));
    return call.reply;
  });
}

function wantsStream({ request }: Call): boolean {
  if (request.method !== 'GET') return false;
  return (request.headers.accept ?? '').includes('text/event-stream');
}

/** null = none, or not one of ours. */
function lastEventId({ request }: Call): number | null {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : null;
}
