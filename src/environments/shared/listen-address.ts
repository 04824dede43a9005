import type { Server } from 'node:net';

/** Where a server of ours listens for a sandbox: one address, never a wildcard, or a unix socket. */
export type ListenAddress =
  { readonly host: string; readonly port: number } | { readonly socketPath: string };

/** Listens; resolves with the port in use, null for a unix socket. Refuses wildcard addresses. */
export function listenOn(
  server: Server,
  at: ListenAddress,
): Promise<{ readonly port: number | null }> {
  if ('host' in at && ['', '0.0.0.0', '::', '*'].includes(at.host))
    throw new RangeError('a server for a sandbox never listens on every address');
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const onListening = (): void => {
      server.removeListener('error', reject);
      server.on('error', () => undefined); // accept errors (EMFILE) drop one connection, never the process
      const address = server.address();
      resolve({ port: typeof address === 'object' && address !== null ? address.port : null });
    };
    if ('socketPath' in at) server.listen(at.socketPath, onListening);
    else server.listen(at.port, at.host, onListening);
  });
}
