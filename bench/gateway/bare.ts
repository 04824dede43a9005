/**
 * A process that passes bytes from each connection to one of its own to the upstream and back, and looks at none of them: what sockets alone cost in Node, whoever
 * stands between them. Argument: the upstream's address.
 */
import { connect, createServer, type AddressInfo } from 'node:net';

const { hostname: host, port } = new URL(process.argv[2] ?? '');
const server = createServer({ noDelay: true }, (agent) => {
  const upstream = connect({ host, port: Number(port), noDelay: true });
  for (const [from, to] of [
    [agent, upstream],
    [upstream, agent],
  ] as const) {
    from.on('data', (bytes) => void to.write(bytes));
    from.on('error', () => void to.destroy());
    from.on('close', () => void to.destroy());
  }
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  console.log(
    JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
  );
});
