import { z } from 'zod';
import { admissionDocument, capacityDocument } from './admission.ts';
import { callbackDocument, callbacksDocument } from './callback.ts';
import {
  abortReceiptDocument,
  collectionDocument,
  collectionPosition,
  collectionRequest,
  collectionsDocument,
} from './collection.ts';
import { errorDocument, validationDocument, validationProblem } from './common.ts';
import { diagnosisDocument, doctorDocument } from './diagnosis.ts';
import { eventDocument, eventsDocument, gapDocument } from './event.ts';
import { fileDocument, filesDocument } from './file.ts';
import {
  commonAnswers,
  dispositionsSchema,
  healthSchema,
  operations,
  statusSchema,
  type Answer,
  type Operation,
} from './operations.ts';
import { receiptDocument, receiptsDocument } from './receipt.ts';
import { rolloutDetailDocument, rolloutDocument, rolloutsDocument } from './rollout.ts';
import { samplesDocument } from './samples.ts';
import { cancelRequestSchema } from '../rollout/cancel.ts';
import { rolloutRequestSchema } from '../rollout/rollout-request.ts';

/** Schemas that have a name in the document; the others stand where they are used. */
const named: Readonly<Record<string, z.ZodType>> = {
  AbortReceipt: abortReceiptDocument,
  Admission: admissionDocument,
  Callback: callbackDocument,
  Callbacks: callbacksDocument,
  CancelRequest: cancelRequestSchema,
  Capacity: capacityDocument,
  Collection: collectionDocument,
  CollectionPosition: collectionPosition,
  CollectionRequest: collectionRequest,
  Collections: collectionsDocument,
  Diagnosis: diagnosisDocument,
  Dispositions: dispositionsSchema,
  Doctor: doctorDocument,
  Error: errorDocument,
  Event: eventDocument,
  Events: eventsDocument,
  File: fileDocument,
  Files: filesDocument,
  Gap: gapDocument,
  Health: healthSchema,
  Receipt: receiptDocument,
  Receipts: receiptsDocument,
  Rollout: rolloutDocument,
  RolloutDetail: rolloutDetailDocument,
  RolloutRequest: rolloutRequestSchema,
  Rollouts: rolloutsDocument,
  Samples: samplesDocument,
  Status: statusSchema,
  ValidationError: validationDocument,
  ValidationProblem: validationProblem,
};

type JsonObject = Record<string, unknown>;

/** The OpenAPI 3.1 document of the control server. */
export function openApiDocument(version: string): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of Object.values<Operation>(operations)) {
    const path = operation.path.replace('{*}', '{path}');
    paths[path] = {
      ...paths[path],
      [operation.method.toLowerCase()]: operationObject(operation),
    };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Slipway control server', version },
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: namedSchemas(),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Or the key in front of the path: `/k/KEY/…`. Not needed where no key is set.',
        },
      },
    },
  };
}

function operationObject(operation: Operation): JsonObject {
  const answers = Object.entries(commonAnswers(operation)).map(
    ([status, answer]) => [status, answerObject(answer, operation)] as const,
  );
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...(operation.isOpen === true ? { security: [] } : {}),
    parameters: parametersOf(operation),
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: referTo(operation.body) } },
          },
        }),
    responses: Object.fromEntries(answers),
  };
}

function parametersOf({ path, query, requestHeaders }: Operation): JsonObject[] {
  const text = { type: 'string' };
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => ({
    name: name === '*' ? 'path' : name,
    in: 'path',
    required: true,
    schema: text,
  }));
  const { properties = {} } = (query === undefined ? {} : schemaOf(query)) as {
    properties?: JsonObject;
  };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    schema,
  }));
  const inHeader = Object.entries(requestHeaders ?? {}).map(([name, description]) => ({
    ...{ name, in: 'header', description, schema: text },
  }));
  return [...inPath, ...inQuery, ...inHeader];
}

function answerObject(
  { description, schema, mediaType, headers }: Answer,
  of: Operation,
): JsonObject {
  const content: JsonObject = {};
  if (schema !== undefined) content['application/json'] = { schema: referTo(schema) };
  if (mediaType !== undefined) content[mediaType] = { schema: { type: 'string' } };
  if (of.id === operations.events.id && schema === operations.events.answers[200].schema)
    content['text/event-stream'] = { schema: { type: 'string' } };
  const described = Object.entries(headers ?? {}).map(
    ([name, text]) => [name, { description: text, schema: { type: 'string' } }] as const,
  );
  return {
    description,
    ...(described.length === 0 ? {} : { headers: Object.fromEntries(described) }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

const addressOf = (name: string): string => `#/components/schemas/${name}`;

function referTo(schema: z.ZodType): JsonObject {
  const [name] = Object.entries(named).find(([, known]) => known === schema) ?? [];
  return name === undefined ? schemaOf(schema) : { $ref: addressOf(name) };
}

/** Bodies as they may come, answers as they are: nothing of ours transforms an answer. */
const asInput = {
  io: 'input',
  unrepresentable: 'any',
  // The pattern of an instant spells out leap years; its format says enough.
  override: ({ jsonSchema }) => {
    if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  },
} as const satisfies z.core.ToJSONSchemaParams;

function schemaOf(schema: z.ZodType): JsonObject {
  return withoutAddress(z.toJSONSchema(schema, asInput));
}

function namedSchemas(): JsonObject {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { ...asInput, uri: addressOf });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, withoutAddress(schema)]),
  );
}

/** The document itself says which dialect its schemas are in, and where they are. */
function withoutAddress(schema: object): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id'),
  );
}
