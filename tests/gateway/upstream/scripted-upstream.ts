/** An upstream on bare sockets: what it does with each connection is the test's to say. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { until } from '../../support/until.ts';

export class ScriptedConnection {
  readonly socket: Socket;
  received = '';

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => (this.received += text));
    socket.on('error', () => undefined);
  }

  /** Resolves when so many requests have come whole, by their head alone. */
  async requests(count: number): Promise<void> {
    await until(`request ${count}`, () => this.received.split('\r\n\r\n').length > count);
  }

  async closed(): Promise<void> {
    await until('the end of a connection', () => this.socket.destroyed);
  }
}

export class ScriptedUpstream implements AsyncDisposable {
  readonly connections: ScriptedConnection[] = [];
  readonly #server: Server;
  readonly #scheme: string;

  private constructor(server: Server, scheme: string) {
    this.#server = server;
    this.#scheme = scheme;
  }

  static async start(tls?: TlsOptions): Promise<ScriptedUpstream> {
    const take = (socket: Socket): void =>
      void upstream.connections.push(new ScriptedConnection(socket));
    const server =
      tls === undefined
        ? createServer(take)
        : createTlsServer(tls, take).on('error', () => undefined);
    const upstream = new ScriptedUpstream(server, tls === undefined ? 'http' : 'https');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `${this.#scheme}://localhost:${this.port}`;
  }

  async connection(index: number): Promise<ScriptedConnection> {
    await until(`connection ${index}`, () => this.connections.length > index);
    return this.connections[index]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { socket } of this.connections) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
