/** What SGLang's trainers steer an engine with. None of it waits for a generation. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readBody } from '../body.ts';
import type { EngineParts } from '../engine-parts.ts';

const abortSchema = z.looseObject({
  rid: z.union([z.string(), z.array(z.string())]).nullish(),
  abort_all: z.boolean().nullish(),
});
const pauseSchema = z.looseObject({
  mode: z.enum(['abort', 'retract', 'in_place']).default('abort'),
});
const versionSchema = z.looseObject({
  new_version: z.string(),
  abort_all_requests: z.boolean().nullish(),
});

const getOrPost: ('GET' | 'POST')[] = ['GET', 'POST'];

export function addControlRoutes(app: FastifyInstance, parts: EngineParts): void {
  const { scheduler } = parts;

  app.post('/abort_request', ({ body }) => {
    const { rid, abort_all: all } = readBody(abortSchema, body);
    if (all === true) scheduler.abortAll();
    for (const id of typeof rid === 'string' ? [rid] : (rid ?? [])) scheduler.abortById(id);
    return { success: true };
  });

  app.post('/pause_generation', ({ body }) => {
    const { mode } = readBody(pauseSchema, body);
    scheduler.pause(mode);
    return { status: 'ok', message: `Generation paused (${mode}).` };
  });
  app.post('/continue_generation', () => {
    scheduler.continue();
    return { status: 'ok', message: 'Generation continues.' };
  });

  app.route({
    method: getOrPost,
    url: '/flush_cache',
    handler: async (_, reply) => {
      const isFlushed = scheduler.flush();
      await reply
        .status(isFlushed ? 200 : 400)
        .type('text/plain')
        .send(isFlushed ? 'Cache flushed.\n' : 'Flush failed: requests hold KV.\n');
    },
  });

  for (const url of ['/get_weight_version', '/weight_version'])
    app.get(url, () => ({ weight_version: scheduler.weightVersion }));
  app.post('/update_weight_version', ({ body }) => {
    const { new_version: version, abort_all_requests: aborts } = readBody(versionSchema, body);
    if (aborts === true) scheduler.abortAll('aborted by a weight update');
    scheduler.weightVersion = version;
    return { success: true, message: 'Weight version updated.', new_version: version };
  });
  // There are no weights here: only the order of the calls matters to a trainer.
  for (const url of ['/begin_weight_update', '/end_weight_update'])
    app.post(url, () => ({ success: true, message: 'ok' }));
}
