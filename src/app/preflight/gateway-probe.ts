/**
 * The data listener's address for the time of a check: a server that answers `/health` with a word that nobody else knows, so that an answer proves that
 * the sandbox came here.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Environment, HostEndpoint } from '../../environments/environment.ts';
import { listenRefused } from '../serve/listen.ts';
import { passed, skipped, warned, type Verdict } from './verdict.ts';

export class GatewayProbe implements AsyncDisposable {
  /** As the server rewrites it for sandboxes: a wildcard is no address to go to. */
  readonly endpoint: HostEndpoint;
  readonly #server: Server;
  readonly #word: string;

  private constructor(server: Server, endpoint: HostEndpoint, word: string) {
    this.#server = server;
    this.endpoint = endpoint;
    this.#word = word;
  }

  /** LISTEN_REFUSED. */
  static async open({ listen }: ServeConfig): Promise<GatewayProbe> {
    const word = randomUUID();
    const { dataHost: host, dataPort: port } = listen;
    const server = createServer((request, response) => {
      response.setHeader('connection', 'close');
      if (request.url === '/health') response.end(`{"preflight":"${word}"}\n`);
      else response.writeHead(404).end();
    });
    try {
      server.listen({ host, port });
      await once(server, 'listening');
    } catch (error) {
      throw listenRefused({ host, port }, 'listen.data_port', error);
    }
    const bound = server.address() as AddressInfo;
    const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    return new GatewayProbe(server, { host: reachable, port: bound.port }, word);
  }

  /** Asks for `/health` from inside. `isNeeded`: the agent's calls come from there. */
  async ask(
    environment: Environment,
    { isNeeded }: { readonly isNeeded: boolean },
    signal: AbortSignal,
  ): Promise<Verdict> {
    const url = environment.hostEndpointUrl;
    if (url === null) return unreached('the sandbox has no way to the host', isNeeded);
    const command = askingScript(new URL(`${url.replace(/\/$/, '')}/health`));
    const { exitCode, stdout, stderr } = await environment.exec(
      { command, timeoutMs: askMs },
      signal,
    );
    if (stdout.includes(this.#word)) return passed(`a sandbox reaches it at ${url}`);
    if (exitCode === noProgram)
      return skipped('the image has no program to ask with (curl, wget, python3, perl, bash)');
    const said = stderr.trim().split('\n').at(-1) ?? '';
    return unreached(
      `no answer of this server at ${url} from inside${said === '' ? '' : `: ${said}`}`,
      isNeeded,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await gone;
  }
}

/** Of two sandboxes that asked side by side: one that got through says more than one that did not, and that more than one that could not ask. */
export function firmer(before: Verdict | null, found: Verdict): Verdict {
  const isOpen = before === null || before.status === 'skipped';
  return isOpen || found.status === 'ok' ? found : before;
}

const askMs = 15_000;
const noProgram = 97;

const remedy =
  'Listen where sandboxes reach it (listen.data_host, or --gateway-url for those on other machines); see what forbids it: docs/gateway.md.';

function unreached(summary: string, isNeeded: boolean): Verdict {
  if (!isNeeded)
    return warned(`${summary}; the agent calls its model from this machine`, {
      field: 'listen.data_host',
      remedy,
    });
  throw new RolloutError('ENVIRONMENT_UNAVAILABLE', summary, {
    phase: 'environment',
    field: 'listen.data_host',
    remedy,
  });
}

/** With whatever the image has. The address is ours: host, port and path hold nothing that a shell reads. */
function askingScript({ protocol, hostname, port: given, pathname }: URL): string {
  const isPlain = protocol === 'http:';
  const port = given === '' ? (isPlain ? '80' : '443') : given;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const url = `${protocol}//${hostname}:${port}${pathname}`;
  const request = `GET ${pathname} HTTP/1.0\\r\\nHost: ${hostname}:${port}\\r\\n\\r\\n`;
  // Without TLS of their own: they can only speak to a plain address.
  const bare = isPlain ? '' : 'false && ';
  const perl = [
    'use IO::Socket::INET;',
    `$s=IO::Socket::INET->new(PeerAddr=>"${host}:${port}",Timeout=>10) or die "$@\\n";`,
    `print $s "${request}"; print while <$s>`,
  ].join('');
  return [
    `if command -v curl >/dev/null 2>&1; then curl -sS --noproxy '*' -m 10 '${url}'`,
    `elif command -v python3 >/dev/null 2>&1; then python3 -c 'import urllib.request as u; print(u.build_opener(u.ProxyHandler({})).open("${url}", timeout=10).read().decode())'`,
    `elif command -v wget >/dev/null 2>&1; then wget -q -Y off -T 10 -O - '${url}' || wget -q --no-proxy -T 10 -O - '${url}'`,
    `elif ${bare}command -v bash >/dev/null 2>&1; then bash -c 'exec 3<>/dev/tcp/${host}/${port} && printf "${request}" >&3 && cat <&3'`,
    `elif ${bare}command -v perl >/dev/null 2>&1; then perl -e '${perl}'`,
    `else exit ${noProgram}; fi`,
  ].join('\n');
}
