/** `/api/v1` of a rollout server as its command line uses it. Answers are checked against the documents of the API; refusals are typed. */
import { z } from 'zod';
import type { ServerAddress } from '../config/server-address.ts';
import { errorRegistry, type ErrorCode } from '../core/error-registry.ts';
import { messageOf, RolloutError } from '../core/errors.ts';
import { admissionDocument, type AdmissionDocument } from '../wire/api/admission.ts';
import {
  callbackDocument,
  callbacksDocument,
  type CallbackDocument,
  type CallbacksDocument,
} from '../wire/api/callback.ts';
import { errorDocument } from '../wire/api/common.ts';
import { doctorDocument, type DoctorDocument } from '../wire/api/diagnosis.ts';
import { filesDocument, type FilesDocument } from '../wire/api/file.ts';
import { receiptsDocument, type ReceiptsDocument } from '../wire/api/receipt.ts';
import {
  rolloutDetailDocument,
  rolloutsDocument,
  type RolloutDetailDocument,
  type RolloutsDocument,
} from '../wire/api/rollout.ts';

export interface RolloutFilter {
  readonly states?: readonly string[];
  readonly prefix?: string;
  readonly tenant?: string;
  readonly after?: string;
  readonly limit?: number;
}

export type CancelBody =
  { readonly ids: readonly string[] } | { readonly prefix: string } | { readonly all: true };

type Method = 'GET' | 'POST';

/** SERVER_UNREACHABLE where nothing answers, else the server's own code, from every method. */
export class ServerClient {
  readonly #address: ServerAddress;
  readonly #fetch: typeof fetch;

  constructor(address: ServerAddress, ports: { readonly fetch: typeof fetch }) {
    this.#address = address;
    this.#fetch = ports.fetch;
  }

  admission(signal: AbortSignal): Promise<AdmissionDocument> {
    return this.#ask(admissionDocument, 'GET', '/admission', { signal });
  }

  rollouts(filter: RolloutFilter, signal: AbortSignal): Promise<RolloutsDocument> {
    const { states, ...rest } = filter;
    const query = { ...rest, ...(states !== undefined && { state: states.join(',') }) };
    return this.#ask(rolloutsDocument, 'GET', `/rollouts${queryText(query)}`, { signal });
  }

  rollout(id: string, signal: AbortSignal): Promise<RolloutDetailDocument> {
    return this.#ask(rolloutDetailDocument, 'GET', `/rollouts/${segment(id)}`, { signal });
  }

  cancel(body: CancelBody, signal: AbortSignal): Promise<ReceiptsDocument> {
    return this.#ask(receiptsDocument, 'POST', '/rollouts/cancel', { signal, body });
  }

  /** null = of everything. */
  doctor(id: string | null, signal: AbortSignal): Promise<DoctorDocument> {
    const path = id === null ? '/doctor' : `/doctor/${segment(id)}`;
    return this.#ask(doctorDocument, 'GET', path, { signal });
  }

  files(id: string, signal: AbortSignal): Promise<FilesDocument> {
    return this.#ask(filesDocument, 'GET', `/rollouts/${segment(id)}/files`, { signal });
  }

  /** The file from `offset` on, as long as it is the one with this ETag; another one comes as a whole, with status 200. */
  async download(
    file: { readonly id: string; readonly path: string; readonly etag: string },
    offset: number,
    signal: AbortSignal,
  ): Promise<Response> {
    const path = file.path.split('/').map(segment).join('/');
    const headers: Record<string, string> =
      offset === 0 ? {} : { range: `bytes=${offset}-`, 'if-range': file.etag };
    return await this.#send('GET', `/rollouts/${segment(file.id)}/files/${path}`, {
      signal,
      headers,
    });
  }

  deadCallbacks(after: number, signal: AbortSignal): Promise<CallbacksDocument> {
    return this.#ask(callbacksDocument, 'GET', `/callbacks/dead${queryText({ after })}`, {
      signal,
    });
  }

  replay(key: string, signal: AbortSignal): Promise<CallbackDocument> {
    return this.#ask(callbackDocument, 'POST', `/callbacks/dead/${segment(key)}/replay`, {
      signal,
      body: {},
    });
  }

  async #ask<T>(
    schema: z.ZodType<T>,
    method: Method,
    path: string,
    options: { readonly signal: AbortSignal; readonly body?: unknown },
  ): Promise<T> {
    const response = await this.#send(method, path, options);
    const text = await this.#reached(options.signal, () => response.text());
    const answer = schema.safeParse(parsed(text));
    if (answer.success) return answer.data;
    throw this.#noServer();
  }

  async #send(
    method: Method,
    path: string,
    {
      signal,
      body,
      headers = {},
    }: {
      readonly signal: AbortSignal;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ): Promise<Response> {
    const { url, key } = this.#address;
    const response = await this.#reached(signal, () =>
      this.#fetch(`${url}/api/v1${path}`, {
        method,
        signal,
        headers: {
          ...headers,
          ...(key !== null && { authorization: `Bearer ${key}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'error',
      }),
    );
    if (response.ok) return response;
    if (response.status === 404) throw notThere(path) ?? this.#noServer();
    throw refusal(response.status, await this.#reached(signal, () => response.text()));
  }

  async #reached<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      const code = (cause as NodeJS.ErrnoException).code ?? messageOf(cause);
      throw new RolloutError('SERVER_UNREACHABLE', `no server answers at ${this.#shown}: ${code}`, {
        phase: 'server',
        cause: error,
        remedy: 'Start it with slipway serve, or name its address: --url URL, or SLIPWAY_URL.',
      });
    }
  }

  #noServer(): RolloutError {
    return new RolloutError(
      'SERVER_UNREACHABLE',
      `${this.#shown} does not answer as a rollout server`,
      {
        phase: 'server',
        remedy: 'Name the control address of slipway serve: --url URL, or SLIPWAY_URL.',
      },
    );
  }

  /** Its path may hold a key. */
  get #shown(): string {
    return new URL(this.#address.url).origin;
  }
}

/** What the path asked for, by the last name in it; null = a path that every server has. */
function notThere(path: string): RolloutError | null {
  const [, kind = '', name = ''] = /^\/(rollouts|doctor|callbacks\/dead)\/([^/]+)/.exec(path) ?? [];
  if (name === '' || path === '/rollouts/cancel') return null;
  const what = kind === 'callbacks/dead' ? 'dead callback' : 'rollout';
  return new RolloutError(
    'REQUEST_INVALID',
    `the server knows no ${what} ${decodeURIComponent(name)}, or not for this key`,
    { phase: 'server', remedy: 'See what there is: slipway rollouts ls, slipway callbacks ls.' },
  );
}

const codesByStatus: Readonly<Record<number, ErrorCode>> = {
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  413: 'BODY_TOO_LARGE',
  503: 'SERVER_STOPPING',
};

function refusal(status: number, text: string): RolloutError {
  const answer = errorDocument.safeParse(parsed(text));
  const detail = answer.success
    ? answer.data.detail
    : (refusedFields(text) ?? `the server answered ${status}`);
  const named = answer.success ? (answer.data.code ?? '') : '';
  const code = named in errorRegistry ? (named as ErrorCode) : codesByStatus[status];
  return new RolloutError(code ?? 'REQUEST_INVALID', detail, {
    phase: 'server',
    ...(status === 401 && { remedy: 'Give the key: SLIPWAY_KEY, or --key-file FILE.' }),
  });
}

const refusedDocument = z.object({
  detail: z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() })),
});

/** What the protocol says of a body or a parameter that is not valid. */
function refusedFields(text: string): string | null {
  const answer = refusedDocument.safeParse(parsed(text));
  if (!answer.success || answer.data.detail.length === 0) return null;
  return answer.data.detail.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function segment(text: string): string {
  return encodeURIComponent(text);
}

function queryText(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
}
