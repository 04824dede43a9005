/** The HTTP side of the fake platform. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { messageOf } from '../../../src/core/errors.ts';
import type { AnswerRun } from '../sandbox-host/light-sandbox.ts';
import { CreateRefused } from '../sandbox-host/create-meter.ts';
import {
  Refusal,
  SkyPlatform,
  type CreateAsked,
  type ExecAsked,
  type PlatformOptions,
} from './sky-platform.ts';

export const sdkFolder = path.join(import.meta.dirname, 'sdk');
export const platformToken = 'sky-token';

export class SkyServer implements AsyncDisposable {
  readonly platform: SkyPlatform;
  readonly #server: Server;
  /** Paths, with methods, that are answered with this status the next time. */
  readonly #planted: { readonly route: RegExp; readonly status: number }[] = [];

  private constructor(platform: SkyPlatform) {
    this.platform = platform;
    this.#server = createServer((request, response) => {
      void this.#take(request, response);
    });
  }

  static async start(options: PlatformOptions): Promise<SkyServer> {
    const server = new SkyServer(new SkyPlatform(options));
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** Variables by which the SDK finds this server: those of a user who is logged in. */
  get variables(): Readonly<Record<string, string>> {
    const { port } = this.#server.address() as AddressInfo;
    return {
      SKYPILOT_API_SERVER_ENDPOINT: `http://sky:${platformToken}@127.0.0.1:${port}`,
      PYTHONPATH: sdkFolder,
      PYTHONDONTWRITEBYTECODE: '1',
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/root',
    };
  }

  /** The next request of this kind, as `METHOD /path`, is answered with the status. */
  plant(route: RegExp, status: number): void {
    this.#planted.push({ route, status });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.platform[Symbol.asyncDispose]();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await bodyOf(request);
      if (request.headers.authorization !== `Bearer ${platformToken}`)
        throw new Refusal(401, 'unauthorized');
      const answer = await this.#answer(request, body);
      if (answer === cut) response.destroy();
      else if (Buffer.isBuffer(answer)) response.end(answer);
      else if (answer !== silent) response.end(JSON.stringify(answer ?? null));
    } catch (error) {
      const [status, retryAfterSec] = statusOf(error);
      const after = retryAfterSec === null ? {} : { 'Retry-After': String(retryAfterSec) };
      response.writeHead(status, after).end(messageOf(error));
    }
  }

  async #answer(request: IncomingMessage, body: Buffer): Promise<unknown> {
    const url = new URL(request.url ?? '/', 'http://sky');
    const route = `${request.method} ${url.pathname}`;
    const at = this.#planted.findIndex((planted) => planted.route.test(route));
    const [planted] = at === -1 ? [] : this.#planted.splice(at, 1);
    if (planted !== undefined) throw new Refusal(planted.status, 'planted');
    const [, , encoded = '', what = '', id = '', stream = ''] = url.pathname.split('/');
    const name = decodeURIComponent(encoded);
    const { platform } = this;
    switch (`${request.method} ${what}`) {
      case 'GET ':
        return platform.list();
      case 'POST ': {
        const record = await platform.create(JSON.parse(body.toString()) as CreateAsked);
        return platform.host.faults.strikes('lost-answer') ? cut : record;
      }
      case 'DELETE ':
        await platform.remove(name);
        return null;
      case 'POST execs':
        if (platform.host.faults.strikes('half-open')) return silent;
        return { id: await platform.exec(name, JSON.parse(body.toString()) as ExecAsked) };
      case 'GET execs':
        return stream === 'stdout' || stream === 'stderr'
          ? platform.output(name, id, stream)
          : { exit_code: await platform.wait(name, id) };
      case 'PUT file':
        await platform.writeFile(name, url.searchParams.get('path') ?? '', body);
        return null;
      case 'GET file':
        return await platform.readFile(name, url.searchParams.get('path') ?? '');
      default:
        throw new Refusal(404, route);
    }
  }
}

const cut = Symbol('cut');
const silent = Symbol('silent');

/** What the scripts of the adapter print in a light sandbox: every program succeeds at once and says nothing. */
export const lightSkyAnswer: AnswerRun = (argv) => ({
  exitCode: 0,
  stdout: (argv[2] ?? '').includes('echo "slipway') ? 'slipway 0 - 0 0\n\n\n' : '',
});

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function statusOf(error: unknown): readonly [number, number | null] {
  if (error instanceof Refusal) return [error.status, error.retryAfterSec];
  if (error instanceof CreateRefused)
    return [429, error.retryAfterMs === null ? null : error.retryAfterMs / 1000];
  return [500, null];
}
