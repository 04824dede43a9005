import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { listenRefused } from '../serve/listen.ts';
import { passed, type Verdict } from './verdict.ts';

/** All addresses are taken at once, as the server takes them, and given back. */
export async function checkListeners({ listen, gateway }: ServeConfig): Promise<Verdict> {
  const { dataHost: host, dataPort } = listen;
  const addresses = [
    { host: listen.host, port: listen.port, field: 'listen.port' },
    ...Array.from({ length: Math.max(1, gateway.workers) }, (_, index) => ({
      ...{ host, port: dataPort === 0 ? 0 : dataPort + index, field: 'listen.data_port' },
    })),
  ];
  const open: Server[] = [];
  try {
    for (const { host, port, field } of addresses) {
      const server = createServer();
      open.push(server);
      try {
        server.listen({ host, port });
        await once(server, 'listening');
      } catch (error) {
        throw listenRefused({ host, port }, field, error);
      }
    }
  } finally {
    await Promise.all(open.map((server) => closed(server)));
  }
  const texts = addresses.map(({ host, port }) =>
    port === 0 ? `any free port of ${host}` : `${host}:${port}`,
  );
  const [control, ...calls] = texts;
  return passed(`free: ${control ?? ''} (control), ${calls.join(', ')} (model calls)`);
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
