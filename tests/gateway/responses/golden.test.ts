import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestProblem, type ProblemAnswer } from '../../../src/gateway/dialects/dialect.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import { loadCases } from '../golden.ts';
import { addedUp, comparable } from './added-up.ts';
import {
  readWithChat,
  runStream,
  runWhole,
  silentEcho,
  type ErrorCase,
  type JsonObject,
  type RequestCase,
  type ResponsesCase,
  type StreamCase,
  type WholeCase,
} from './fixture-run.ts';

const cases = loadCases('responses') as readonly ResponsesCase[];

describe('requests of the Responses API', () => {
  for (const each of cases)
    if (each.direction === 'request') it(`${each.case}: ${each.title}`, () => checkRequest(each));
});

describe('streams of the Responses API', () => {
  for (const each of cases)
    if (each.direction === 'stream') it(`${each.case}: ${each.title}`, () => checkStream(each));
});

describe('whole answers of the Responses API', () => {
  for (const each of cases)
    if (each.direction === 'whole') it(`${each.case}: ${each.title}`, () => checkWhole(each));
});

describe('errors of the Responses API', () => {
  for (const each of cases)
    if (each.direction === 'error') it(`${each.case}: ${each.title}`, () => checkError(each));
});

function checkRequest(each: RequestCase): void {
  const { chat, read } = readWithChat(each.body, each.previous);
  assert.deepEqual(plain(chat), each.chat);
  assert.deepEqual(read.notes, each.notes ?? []);
}

function checkStream(each: StreamCase): void {
  const { sent, answer, fresh } = runStream(each);
  assert.deepEqual(
    sent.map(({ data }) => withoutEcho(plain(data), each.body)),
    each.events,
  );
  const { items, done, terminal } = addedUp(sent);
  assert.deepEqual(terminal.response['output'], done);
  assert.deepEqual(items.slice(0, done.length).map(comparable), done.map(comparable));
  if (answer === null) assert.equal(terminal.type, 'response.failed');
  else assert.deepEqual(plain(fresh.whole(answer)), plain(terminal.response));
}

function checkWhole(each: WholeCase): void {
  assert.deepEqual(plain(runWhole(each)), each.response);
}

function checkError(each: ErrorCase): void {
  const { status, body, headers } = refusalOf(each);
  assert.equal(status, each.status);
  assert.deepEqual(body, each.answer);
  assert.deepEqual(headers, { 'x-request-id': 'r1', ...each.headers });
}

function refusalOf({ body, problem }: ErrorCase): ProblemAnswer {
  if (problem !== undefined) return responsesDialect.problem(problem, 'r1');
  try {
    readWithChat(body ?? {});
  } catch (error) {
    if (error instanceof RequestProblem) return responsesDialect.problem(error.problem, 'r1');
    throw error;
  }
  assert.fail('the request was not refused');
}

/** Fields of the response that repeat the request are compared here, and left out of what the fixture lists. */
function withoutEcho(data: JsonObject, body: JsonObject): JsonObject {
  const { response, ...rest } = data;
  if (response === undefined) return data;
  const entries = Object.entries(response as JsonObject);
  const echoed = Object.fromEntries(entries.filter(([name]) => name in silentEcho));
  assert.deepEqual(echoed, { ...silentEcho, ...spoken(body) });
  return { ...rest, response: Object.fromEntries(entries.filter(([n]) => !(n in silentEcho))) };
}

/** What the request says of fields that are repeated. */
function spoken(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body)
      .filter(([name]) => name in silentEcho)
      .map(([name, value]) =>
        name === 'reasoning'
          ? [name, { effort: null, summary: null, ...(value as object) }]
          : [name, value],
      ),
  );
}

/** As the client gets it. */
function plain(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}
