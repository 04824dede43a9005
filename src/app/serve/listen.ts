import type { FastifyInstance } from 'fastify';
import { RolloutError } from '../../core/errors.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A thousand agents may connect in one moment; a connection that finds no place is tried again only after a second. */
const waitingConnections = 4_096;

/** Answers the URL at which this machine reaches the server. LISTEN_REFUSED when the address cannot be had. */
export async function listen(
  server: FastifyInstance,
  { host, port }: Address,
  field: string,
): Promise<string> {
  try {
    await server.listen({ host, port, backlog: waitingConnections });
  } catch (error) {
    throw listenRefused({ host, port }, field, error);
  }
  const bound = server.server.address();
  const actual = typeof bound === 'object' && bound !== null ? bound.port : port;
  return `http://${reachable(host)}:${actual}`;
}

export function listenRefused(
  { host, port }: Address,
  field: string,
  error: unknown,
): RolloutError {
  const { code } = error as NodeJS.ErrnoException;
  return new RolloutError(
    'LISTEN_REFUSED',
    `${host}:${port} cannot be listened on: ${code ?? ''}`,
    {
      phase: 'server',
      field,
      cause: error,
      remedy:
        code === 'EADDRINUSE'
          ? 'Stop what listens there, or choose another port.'
          : 'Choose an address of this machine, and a port that you may use.',
    },
  );
}

const closeLimitMs = 2_000;

/** Ends when no request is under way; a client that does not let go is cut off after a moment. */
export async function closeServer(server: FastifyInstance): Promise<void> {
  const late = setTimeout(() => server.server.closeAllConnections(), closeLimitMs);
  try {
    await server.close();
  } finally {
    clearTimeout(late);
  }
}

/** A wildcard is no address to call: this machine reaches it by its loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
