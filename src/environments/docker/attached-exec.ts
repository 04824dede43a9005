import type { Duplex } from 'node:stream';
import { PidLine } from '../shared/pid-line.ts';
import { createdId, execDetails } from './engine/engine-answers.ts';
import type { EngineClient } from './engine/engine-client.ts';
import { FrameReader } from './engine/frame-reader.ts';

export interface AttachRequest {
  readonly argv: readonly string[];
  readonly user: string | number | null;
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly wantsStdin: boolean;
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
}

/** A process of ours in a container, attached to this process. Made by {@link attachExec}; argv must report its pid. */
export interface AttachedExec {
  /** The process's input and raw output. Destroying it detaches; it does not kill. */
  readonly socket: Duplex;
  /** Pid as seen in the container; null when the process never came to report it. */
  readonly pid: Promise<number | null>;
  /** Resolves when the output has ended, and with it the process. Never rejects. */
  readonly ended: Promise<void>;
  /** How it ended; null when the engine does not know it any more. */
  exitCode(signal: AbortSignal): Promise<number | null>;
}

/** Creates and starts an exec. Rejects with what the engine client throws. */
export async function attachExec(
  target: { readonly engine: EngineClient; readonly containerId: string },
  request: AttachRequest,
  signal: AbortSignal,
): Promise<AttachedExec> {
  const { engine, containerId } = target;
  const created = await engine.json({
    method: 'POST',
    path: `/containers/${containerId}/exec`,
    json: {
      AttachStdin: request.wantsStdin,
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      Cmd: request.argv,
      Env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
      ...(request.user === null ? {} : { User: String(request.user) }),
      ...(request.cwd === null ? {} : { WorkingDir: request.cwd }),
    },
    signal,
  });
  const execId = createdId.parse(created).Id;
  const socket = await engine.upgrade({
    method: 'POST',
    path: `/exec/${execId}/start`,
    json: { Detach: false, Tty: false },
    signal,
  });
  const pid = Promise.withResolvers<number | null>();
  const ended = readOutput(socket, request.onOutput, (value) => pid.resolve(value));
  return {
    socket,
    pid: pid.promise,
    ended: ended.then(() => pid.resolve(null)),
    async exitCode(exitSignal) {
      const answer = await engine.json({
        method: 'GET',
        path: `/exec/${execId}/json`,
        signal: exitSignal,
      });
      return execDetails.parse(answer).ExitCode ?? null;
    },
  };
}

function readOutput(
  socket: Duplex,
  onOutput: AttachRequest['onOutput'],
  onPid: (pid: number) => void,
): Promise<void> {
  const pidLine = new PidLine(onPid);
  const frames = new FrameReader((stream, bytes) =>
    onOutput(stream, stream === 'stderr' ? pidLine.strip(bytes) : bytes),
  );
  return new Promise((resolve) => {
    const finish = (): void => {
      onOutput('stderr', pidLine.rest());
      resolve();
    };
    socket.on('data', (chunk: Buffer) => frames.write(chunk));
    socket.on('error', () => socket.destroy()); // a cut connection ends like a finished one; the exit code tells them apart
    socket.once('end', () => socket.destroy()); // input that the process did not read is dropped
    socket.once('close', finish);
  });
}
