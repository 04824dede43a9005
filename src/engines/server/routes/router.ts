/** The discovery routes of routers, old and new. This server lists itself, or the workers that it was told of; it forwards nothing. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readBody } from '../body.ts';
import type { EngineParts } from '../engine-parts.ts';
import { Refusal } from '../refusal.ts';

const workerSchema = z.looseObject({
  url: z.string().nullish(),
  worker_url: z.string().nullish(),
  worker_type: z.string().default('regular'),
});

interface Worker {
  readonly id: string;
  readonly url: string;
  readonly workerType: string;
}

export function addRouterRoutes(
  app: FastifyInstance,
  parts: EngineParts,
  workerUrls: readonly string[] | null,
): void {
  const workers = new Map<string, Worker>();
  let nextId = 1;
  const add = (url: string, workerType: string): Worker => {
    const known = [...workers.values()].find((worker) => worker.url === url);
    if (known !== undefined) return known;
    const worker = { id: `worker-${nextId++}`, url, workerType };
    workers.set(worker.id, worker);
    return worker;
  };
  for (const url of workerUrls ?? []) add(url, 'regular');
  let listsItself = workerUrls === null;
  // Its own address is known only once it listens.
  const all = (): readonly Worker[] => {
    if (listsItself) add(parts.url(), 'regular');
    listsItself = false;
    return [...workers.values()];
  };
  const urls = (): readonly string[] => all().map(({ url }) => url);
  const view = ({ id, url, workerType }: Worker): object => ({
    id,
    url,
    worker_type: workerType,
    model_id: parts.model.name,
    is_healthy: true,
    load: 0,
  });
  const named = (query: unknown, body: unknown): { url: string; worker_type: string } => {
    const fields = { ...readBody(workerSchema, body), ...(query as Record<string, unknown>) };
    const url = fields.url ?? fields.worker_url;
    if (typeof url !== 'string' || url === '') throw new Refusal(400, 'url: a worker needs one');
    return { url, worker_type: fields.worker_type };
  };

  app.get('/workers', () => {
    const list = all().map(view);
    return { workers: list, total: list.length };
  });
  app.post('/workers', async ({ query, body }, reply) => {
    all();
    const { url, worker_type: type } = named(query, body);
    const { id } = add(url, type);
    await reply.status(202).send({ status: 'accepted', worker_id: id, url });
  });
  app.get<{ Params: { id: string } }>('/workers/:id', ({ params }) => {
    all();
    const worker = workers.get(params.id);
    if (worker === undefined) throw new Refusal(404, `no worker is called ${params.id}`);
    return view(worker);
  });
  app.delete<{ Params: { id: string } }>('/workers/:id', async ({ params }, reply) => {
    all();
    if (!workers.delete(params.id)) throw new Refusal(404, `no worker is called ${params.id}`);
    await reply.status(202).send({ status: 'accepted', worker_id: params.id });
  });

  app.get('/list_workers', () => ({ urls: urls() }));
  app.post('/add_worker', ({ query, body }) => {
    all();
    add(named(query, body).url, 'regular');
    return { status: 'success', worker_urls: urls() };
  });
  app.post('/remove_worker', ({ query, body }) => {
    const { url } = named(query, body);
    for (const worker of all()) if (worker.url === url) workers.delete(worker.id);
    return { status: 'success', worker_urls: urls() };
  });
}
