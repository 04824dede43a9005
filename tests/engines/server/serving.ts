/** A mock engine in the process of a test: the real server, the real model, the real log. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { MockModel, type MockModelOptions } from '../../../src/engines/mock/mock-model.ts';
import type { Policy } from '../../../src/engines/mock/policy.ts';
import {
  startEngineServer,
  type EngineServer,
  type EngineServerOptions,
} from '../../../src/engines/server/engine-server.ts';
import { compileFaults, type FaultRuleInput } from '../../../src/engines/server/fault-script.ts';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import type { Vocabulary } from '../../../src/engines/server/token-model.ts';
import { loadVocabulary } from '../../../src/engines/server/vocabulary/load-vocabulary.ts';

let bundled: Promise<Vocabulary> | null = null;

export function vocabularyOfTests(): Promise<Vocabulary> {
  bundled ??= loadVocabulary(null);
  return bundled;
}

export interface TokenEntry {
  readonly token: string;
  readonly logprob: number;
  readonly top_logprobs: readonly { readonly token: string; readonly logprob: number }[];
}

type Triple = readonly [logprob: number | null, id: number, text: string | null];

export interface MetaInfo {
  readonly id: string;
  readonly finish_reason: { readonly type: string } | null;
  readonly weight_version: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly input_token_logprobs: readonly Triple[];
  readonly output_token_logprobs: readonly Triple[];
  readonly output_top_logprobs: readonly (readonly Triple[])[];
}

export interface ToolCallEntry {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface Choice {
  readonly message: {
    readonly content: string;
    readonly reasoning_content: string | null;
    readonly tool_calls: readonly ToolCallEntry[];
  };
  readonly delta: { readonly role?: string; readonly content?: string };
  readonly text: string;
  readonly finish_reason: string | null;
  readonly stop_reason: string | number | null;
  readonly logprobs: {
    readonly content?: readonly TokenEntry[];
    readonly token_logprobs: readonly number[];
    readonly text_offset: readonly number[];
  } | null;
  readonly token_ids?: readonly number[];
  readonly prompt_token_ids?: readonly number[];
  readonly meta_info: MetaInfo;
}

/** Fields of all answers; a test reads those of its route. */
export interface Answer {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly [Choice, ...Choice[]];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly prompt_token_ids: readonly number[];
  readonly sglext: object;
  readonly text: string;
  readonly prompt: string;
  readonly output_ids: readonly number[];
  readonly meta_info: MetaInfo;
  readonly tokens: readonly number[];
  readonly count: number;
  readonly max_model_len: number;
}

export interface Serving extends AsyncDisposable {
  readonly server: EngineServer;
  readonly model: MockModel;
  readonly vocabulary: Vocabulary;
  readonly url: string;
  /** Lines of the log so far. */
  log(): RequestLogEntry[];
  get(route: string): Promise<Response>;
  post(route: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** POST, and the answer's JSON. */
  json<T = Answer>(route: string, body?: unknown): Promise<T>;
  /** POST, and the JSON of every event but the last, which is [DONE]. */
  events(route: string, body: object): Promise<Answer[]>;
}

export interface ServingOptions extends Partial<Omit<EngineServerOptions, 'model' | 'faults'>> {
  readonly policy?: Policy;
  readonly nonCanonicalShare?: number;
  readonly faults?: readonly FaultRuleInput[];
  readonly model?: Partial<MockModelOptions>;
}

export const says =
  (content: string): Policy =>
  () => ({ content });

export async function serve(options: ServingOptions = {}): Promise<Serving> {
  const { policy = says('Hello, world!'), nonCanonicalShare = 0, faults = [], ...rest } = options;
  const vocabulary = await vocabularyOfTests();
  const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-engine-'));
  const logFile = path.join(dir, 'log.ndjson');
  const model = new MockModel({
    name: 'mock',
    vocabulary,
    policy,
    contextTokens: 100_000,
    seed: options.seed ?? 0,
    nonCanonicalShare,
    ...options.model,
  });
  const server = await startEngineServer({
    drainMs: 50,
    ...rest,
    model,
    logFile,
    faults: compileFaults([...faults]),
  }).catch((error: unknown) => {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  });
  const post: Serving['post'] = async (route, body = {}, init = {}) =>
    await fetch(server.url + route, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...init,
    });
  return {
    server,
    model,
    vocabulary,
    url: server.url,
    log: () =>
      readFileSync(logFile, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as RequestLogEntry),
    get: async (route) => await fetch(server.url + route),
    post,
    json: async <T>(route: string, body?: unknown) => (await (await post(route, body)).json()) as T,
    events: async (route, body) =>
      eventsOf(await (await post(route, { ...body, stream: true })).text()),
    async [Symbol.asyncDispose]() {
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function eventsOf(text: string): Answer[] {
  const lines = text.split('\n\n').filter((line) => line !== '');
  if (lines.pop() !== 'data: [DONE]') throw new Error(`the stream has no end: ${text.slice(-200)}`);
  return lines.map((line) => JSON.parse(line.replace(/^data: /, '')) as Answer);
}

export const hi = { messages: [{ role: 'user', content: 'hi' }] };

/** A policy that answers only when told to; every request waits for its own turn. */
export function gate(content: string): {
  readonly policy: Policy;
  readonly waiting: () => number;
  readonly open: () => void;
} {
  let release: (() => void) | null = null;
  let waiting = 0;
  const opened = new Promise<void>((resolve) => (release = resolve));
  return {
    policy: async () => {
      waiting += 1;
      await opened;
      return { content };
    },
    waiting: () => waiting,
    open: () => release?.(),
  };
}

/** Waits for something that happens elsewhere in this process. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
