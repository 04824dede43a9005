/** The WebSocket side of `exec`, as a kubelet behind an API server speaks it. https://pkg.go.dev/k8s.io/apimachinery/pkg/util/remotecommand */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { messageOf } from '../../../src/core/errors.ts';
import type { InteractiveProcess } from '../../../src/environments/environment.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';

const channels = { stdin: 0, stdout: 1, stderr: 2, end: 3, close: 255 } as const;
/** What a kubelet reads of a program's output at a time. */
const frameBytes = 32 * 1024;

export interface ExecServerOptions {
  /** The newest first. */
  readonly protocols: readonly string[];
  /** The stream is taken and stays silent. */
  readonly isHalfOpen: () => boolean;
  readonly pullsPolitely?: boolean;
}

export class ExecServer {
  readonly #server: WebSocketServer;
  readonly #options: ExecServerOptions;

  constructor(options: ExecServerOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      autoPong: false,
      handleProtocols: (offered) =>
        options.protocols.find((protocol) => offered.has(protocol)) ?? false,
    });
  }

  take(
    request: IncomingMessage,
    { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
    sandbox: HostedSandbox,
  ): void {
    const query = new URL(request.url ?? '/', 'http://cluster').searchParams;
    const argv = query.getAll('command');
    this.#server.handleUpgrade(request, socket, head, (stream) => {
      if (this.#options.isHalfOpen()) return;
      stream.on('ping', (content) => stream.pong(content));
      void run(stream, { sandbox, argv });
    });
  }

  close(): void {
    for (const client of this.#server.clients) client.terminate();
    this.#server.close();
  }
}

/** A program goes on when its stream is gone: nobody hears it then. */
async function run(
  stream: WebSocket,
  { sandbox, argv }: { readonly sandbox: HostedSandbox; readonly argv: readonly string[] },
): Promise<void> {
  const send = (channel: number, bytes: Uint8Array): void => {
    if (stream.readyState === stream.OPEN)
      stream.send(Buffer.concat([Buffer.of(channel), bytes]), { binary: true });
  };
  const finish = (status: object): void => {
    send(channels.end, Buffer.from(JSON.stringify({ metadata: {}, ...status })));
    stream.close(1000);
  };
  const early: Buffer[] = [];
  const input: { onFrame: (frame: Buffer) => void } = {
    onFrame: (frame) => void early.push(frame),
  };
  stream.on('message', (message: Buffer) => input.onFrame(message));
  stream.on('error', () => undefined);
  for (const channel of [channels.stdin, channels.stdout, channels.stderr, channels.end])
    send(channel, Buffer.alloc(0)); // as a real one does
  try {
    const program = await sandbox.run({
      argv,
      onOutput: (name, bytes) => {
        for (let at = 0; at < bytes.length; at += frameBytes)
          send(channels[name], bytes.subarray(at, at + frameBytes));
      },
    });
    input.onFrame = (frame) => take(program, stream, frame);
    for (const frame of early) take(program, stream, frame);
    stream.on('close', () => program.endInput());
    finish(statusOf(await program.exited));
  } catch (error) {
    finish({ status: 'Failure', reason: 'InternalError', message: messageOf(error), code: 500 });
  }
}

function take(program: InteractiveProcess, stream: WebSocket, frame: Buffer): void {
  const [channel] = frame;
  const content = frame.subarray(1);
  if (channel === channels.stdin && content.length > 0) {
    stream.pause();
    void program
      .write(content)
      .catch(() => undefined) // it has ended, and its end is told
      .then(() => stream.resume());
  } else if (channel === channels.close && content[0] === channels.stdin) program.endInput();
}

function statusOf(exitCode: number | null): object {
  if (exitCode === 0) return { status: 'Success' };
  const code = exitCode ?? 137;
  return {
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: `command terminated with non-zero exit code: command terminated with exit code ${code}`,
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  };
}
