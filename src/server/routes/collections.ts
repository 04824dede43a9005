/** Collections: a trainer asks for groups, reads them as a stream, and acknowledges them. */
import {
  acknowledgement,
  collectionOperations as operations,
  collectionRequest,
  groupsQuery,
  weightVersion,
  type CollectionDocument,
  type CollectionRequest,
} from '../../wire/api/collection.ts';
import { brokenRule } from '../../wire/rollout/validation.ts';
import { CollectionStream } from '../collections/collection-stream.ts';
import type { Collection } from '../collections/collection.ts';
import { collectionDocumentOf } from '../collections/documents.ts';
import { invalid, Refusal, refuse } from '../refusal.ts';
import { readBody, readQuery } from '../request-body.ts';
import { addRoute, parameter, type Call, type Routing } from '../route.ts';

export function addCollectionRoutes(routing: Routing): void {
  const { collections } = routing.parts;
  const found = (call: Call): Collection => {
    const collection = collections.find(parameter(call, 'id'), call.caller);
    if (collection === null) throw new Refusal(404, 'Not Found');
    return collection;
  };
  addRoute(routing, operations.createCollection, async (call): Promise<CollectionDocument> => {
    const { request, reply, caller } = call;
    const wanted = readBody(collectionRequest, request);
    if (caller.tenant !== null) refuseToTenant(wanted);
    if (collections.isClosed) throw refuse('SERVER_STOPPING', 'the server is shutting down');
    refuseAddresses(wanted, routing);
    const collection = await collections.create(wanted, caller);
    if (collection === null)
      throw new Refusal(429, 'there are too many collections', { 'retry-after': '5' });
    reply.status(201);
    return collectionDocumentOf(collection);
  });
  addRoute(routing, operations.listCollections, ({ caller }) => ({
    collections: collections.list(caller).map(collectionDocumentOf),
  }));
  addRoute(routing, operations.inspectCollection, (call) => collectionDocumentOf(found(call)));
  addRoute(routing, operations.acknowledgeGroups, (call) => {
    const collection = found(call);
    const { through } = readBody(acknowledgement, call.request);
    refuseBeyond(through, collection, ['body', 'through']);
    collection.acknowledge(through);
    return collectionDocumentOf(collection);
  });
  addRoute(routing, operations.pauseCollection, async (call) => {
    const collection = found(call);
    await collection.pause();
    return collectionDocumentOf(collection);
  });
  addRoute(routing, operations.resumeCollection, (call) => {
    const collection = found(call);
    collection.resume();
    return collectionDocumentOf(collection);
  });
  addRoute(routing, operations.setWeightVersion, (call) => {
    const collection = found(call);
    collection.setWeightVersion(readBody(weightVersion, call.request).version);
    return collectionDocumentOf(collection);
  });
  addRoute(routing, operations.stopCollection, async (call) => {
    const collection = found(call);
    await collection.stop('stopped');
    return collectionDocumentOf(collection);
  });
  addGroupsRoute(routing, found);
}

function addGroupsRoute(routing: Routing, found: (call: Call) => Collection): void {
  const { limits, clock } = routing.parts;
  const streams = new Set<CollectionStream>();
  // A connection that never ends would hold up the end of the server.
  routing.app.addHook('preClose', (done) => {
    for (const stream of streams) stream.close();
    done();
  });
  addRoute(routing, operations.collectedGroups, (call) => {
    const collection = found(call);
    const { after = 0 } = readQuery(groupsQuery, call.request);
    refuseBeyond(after, collection, ['query', 'after']);
    if (streams.size >= limits.maxStreams)
      throw new Refusal(429, 'there are too many streams of groups', { 'retry-after': '5' });
    const stream = new CollectionStream({ collection, limits, clock });
    streams.add(stream);
    call.reply.hijack();
    void stream.run(call.reply.raw, after).finally(() => streams.delete(stream));
    return call.reply;
  });
}

/** What reaches further than the rollouts of a tenant. */
function refuseToTenant({ dataset, engines }: CollectionRequest): void {
  if (dataset.file !== null)
    throw refuse('FORBIDDEN', 'dataset.file is for the operator: send dataset.rows');
  if (engines !== null)
    throw refuse(
      'FORBIDDEN',
      'engines is for the operator: an abort ends the requests of everybody',
    );
}

/** The server itself calls engines, and a key may go with that. */
function refuseAddresses({ engines }: CollectionRequest, { parts }: Routing): void {
  const { router_url: router, urls } = engines ?? { router_url: null, urls: [] };
  const named = [
    ...(router === null ? [] : [[router, ['engines', 'router_url']] as const]),
    ...urls.map((url, index) => [url, ['engines', 'urls', index]] as const),
  ];
  const problems = named.flatMap(([url, loc]) => {
    const problem = parts.addresses.problem(url);
    return problem === null ? [] : [brokenRule(['body', ...loc], problem, null)];
  });
  if (problems.length > 0) throw invalid(problems);
}

/** It would skip lines that nobody has seen. */
function refuseBeyond(cursor: number, { lines }: Collection, loc: readonly [string, string]): void {
  if (cursor <= lines.newest) return;
  throw invalid([brokenRule(loc, `the newest line is ${lines.newest}`, cursor)]);
}
