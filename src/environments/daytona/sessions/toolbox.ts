import type { Readable } from 'node:stream';
import type { ApiClient, ApiRequest } from '../api/api-client.ts';
import { commandAnswer, executed, startedCommand } from '../api/answers.ts';

/** The routes of the daemon inside one sandbox. Rejects with `ApiError`. */
export class Toolbox {
  readonly #api: ApiClient;
  readonly #base: string;

  /** `base`: the sandbox's address at the toolbox proxy, its id included. */
  constructor(api: ApiClient, base: string) {
    this.#api = api;
    this.#base = base;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#api.headers;
  }

  async createSession(sessionId: string, signal: AbortSignal): Promise<void> {
    await this.#json({ method: 'POST', url: '/process/session', json: { sessionId }, signal });
  }

  /** Starts a command; answers its id. */
  async startCommand(sessionId: string, command: string, signal: AbortSignal): Promise<string> {
    const answer = await this.#json({
      method: 'POST',
      url: `/process/session/${sessionId}/exec`,
      json: { command, runAsync: true, suppressInputEcho: true },
      signal,
    });
    return startedCommand.parse(answer).cmdId;
  }

  /** Null while it runs. */
  async exitCode(
    sessionId: string,
    commandId: string,
    signal: AbortSignal,
  ): Promise<number | null> {
    const url = `/process/session/${sessionId}/command/${commandId}`;
    return commandAnswer.parse(await this.#json({ method: 'GET', url, signal })).exitCode ?? null;
  }

  async sendInput(
    sessionId: string,
    commandId: string,
    input: { readonly data: string; readonly signal: AbortSignal },
  ): Promise<void> {
    await this.#json({
      method: 'POST',
      url: `/process/session/${sessionId}/command/${commandId}/input`,
      json: { data: input.data },
      signal: input.signal,
      limitMs: inputLimitMs,
    });
  }

  logsUrl(sessionId: string, commandId: string): string {
    const path = `/process/session/${sessionId}/command/${commandId}/logs?follow=true`;
    return this.#base.replace(/^http/, 'ws') + path;
  }

  /** Runs `sh -c SCRIPT` as the sandbox's own user and waits for its end; the two streams come as one text. */
  async execute(
    script: string,
    options: {
      readonly signal: AbortSignal;
      readonly limitMs: number;
      readonly isIdempotent?: boolean;
    },
  ): Promise<{ readonly exitCode: number; readonly output: string }> {
    const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
    const answer = executed.parse(
      await this.#json({
        method: 'POST',
        url: '/process/execute',
        json: { command: `sh -c ${quoted}`, timeout: Math.ceil(options.limitMs / 1000) },
        signal: options.signal,
        limitMs: options.limitMs + 10_000,
        isIdempotent: options.isIdempotent ?? false,
      }),
    );
    return { exitCode: answer.exitCode ?? answer.code ?? 0, output: answer.result };
  }

  /** Writes a file; its folders are made. */
  async upload(
    to: string,
    options: { readonly body: () => Readable | Buffer; readonly signal: AbortSignal },
  ): Promise<void> {
    await this.#json({
      method: 'POST',
      url: '/files/upload-v2',
      query: { path: to },
      headers: { 'content-type': 'application/octet-stream' },
      body: options.body,
      signal: options.signal,
      limitMs: transferLimitMs,
      isIdempotent: true,
    });
  }

  download(from: string, signal: AbortSignal): Promise<Readable> {
    const url = `${this.#base}/files/download`;
    return this.#api.stream({
      method: 'GET',
      url,
      query: { path: from },
      signal,
      limitMs: transferLimitMs,
    });
  }

  #json(asked: ApiRequest): Promise<unknown> {
    return this.#api.json({ ...asked, url: this.#base + asked.url });
  }
}

/** A program that does not read its input holds the call up. */
const inputLimitMs = 3_600_000;
const transferLimitMs = 1_800_000;
