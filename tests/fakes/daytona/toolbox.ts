/** The daemon of one sandbox: sessions, programs and files, as `@daytona/toolbox-api-client` speaks to it. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { WebSocket } from 'ws';
import { never } from '../../../src/core/linked-abort.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';
import type { ServiceFaults } from '../sandbox-host/service-faults.ts';
import { Refusal, type Exchange } from './http-exchange.ts';
import { ToolboxSession } from './toolbox-session.ts';

const sessionPath =
  /^\/process\/session\/([^/]+)(?:\/(exec|command)(?:\/([^/]+)(?:\/(logs|input))?)?)?$/;

export class FakeToolbox {
  readonly #sandbox: HostedSandbox;
  readonly #user: string | null;
  readonly #faults: ServiceFaults;
  readonly #sessions = new Map<string, ToolboxSession>();

  constructor(
    sandbox: HostedSandbox,
    parts: { readonly user: string | null; readonly faults: ServiceFaults },
  ) {
    this.#sandbox = sandbox;
    this.#user = parts.user;
    this.#faults = parts.faults;
  }

  async serve(exchange: Exchange, at: string): Promise<void> {
    if (this.#sandbox.state !== 'running') throw new Refusal(404, 'the sandbox does not run');
    const { method, url } = exchange;
    const route = `${method} ${at}`;
    if (route === 'POST /process/execute') {
      await this.#execute(exchange);
      return;
    }
    if (route === 'POST /process/session') {
      await this.#createSession(exchange);
      return;
    }
    if (route === 'GET /process/session') {
      exchange.answer([...this.#sessions.values()].map(describe));
      return;
    }
    const found = sessionPath.exec(at);
    if (found !== null) {
      await this.#session(exchange, found);
      return;
    }
    const file = url.searchParams.get('path') ?? '';
    if (route === 'POST /files/upload-v2') {
      const part = (await exchange.form()).get('file');
      await this.#write(file, part);
      exchange.answer({});
      return;
    }
    if (route === 'POST /files/bulk-upload') {
      await this.#bulkUpload(exchange);
      return;
    }
    if (route === 'GET /files/download') {
      const bytes = await this.#read(file);
      exchange.response.writeHead(200, { 'content-type': 'application/octet-stream' });
      exchange.response.end(bytes);
      return;
    }
    if (route === 'POST /files/bulk-download') {
      await this.#bulkDownload(exchange);
      return;
    }
    throw new Refusal(404, `no route ${route}`);
  }

  /** A log that is followed to its command's end. */
  follow(socket: WebSocket, at: string): void {
    const [, sessionId = '', , commandId = ''] = sessionPath.exec(at) ?? [];
    const command = this.#sessions.get(sessionId)?.commands.get(commandId);
    if (command === undefined) {
      socket.close(1008, 'no such command');
      return;
    }
    if (this.#faults.strikes('half-open')) return;
    const leave = command.follow({
      write: (bytes) => socket.send(bytes),
      end: () => socket.close(1000),
    });
    socket.on('close', leave);
    socket.on('error', leave);
  }

  async #execute(exchange: Exchange): Promise<void> {
    const { command, timeout } = await exchange.json<{ command: string; timeout?: number }>();
    const pieces: Buffer[] = [];
    const program = await this.#sandbox.run({
      argv: ['sh', '-c', command],
      user: this.#user,
      onOutput: (_stream, bytes) => pieces.push(Buffer.from(bytes)),
    });
    program.endInput();
    const limit = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => limit.resolve('late'), (timeout ?? 360) * 1000);
    const exitCode = await Promise.race([program.exited, limit.promise]);
    clearTimeout(timer);
    if (exitCode === 'late') {
      await program.kill();
      throw new Refusal(408, 'command execution timeout', { code: 'PROCESS_EXECUTION_TIMEOUT' });
    }
    exchange.answer({ exitCode: exitCode ?? 137, result: Buffer.concat(pieces).toString('utf8') });
  }

  async #createSession(exchange: Exchange): Promise<void> {
    const { sessionId } = await exchange.json<{ sessionId: string }>();
    if (this.#sessions.has(sessionId)) throw new Refusal(409, 'the session exists');
    const session = new ToolboxSession(sessionId, this.#sandbox, this.#user);
    this.#sessions.set(sessionId, session);
    await session.open();
    exchange.answer(undefined, 201);
  }

  async #session(
    exchange: Exchange,
    [, id = '', kind, commandId, part]: RegExpExecArray,
  ): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new Refusal(404, 'no such session');
    if (kind === undefined) {
      if (exchange.method === 'DELETE') {
        this.#sessions.delete(id);
        await session.close();
        exchange.answer(undefined, 204);
        return;
      }
      exchange.answer(describe(session));
      return;
    }
    if (kind === 'exec') {
      const asked = await exchange.json<{ command: string; runAsync?: boolean; async?: boolean }>();
      const started = session.start(asked.command);
      if (asked.runAsync === true || asked.async === true) {
        exchange.answer({ cmdId: started.id }, 202);
        return;
      }
      const exitCode = await started.done.promise;
      exchange.answer({ cmdId: started.id, exitCode, ...texts(started) });
      return;
    }
    const command = session.command(commandId ?? '');
    if (part === 'logs') {
      exchange.answer(texts(command));
      return;
    }
    if (part === 'input') {
      const { data } = await exchange.json<{ data: string }>();
      await session.input(command.id, data);
      exchange.answer(undefined, 204);
      return;
    }
    exchange.answer({ id: command.id, command: command.command, ...exitOf(command) });
  }

  async #bulkUpload(exchange: Exchange): Promise<void> {
    const form = await exchange.form();
    for (let index = 0; form.has(`files[${index}].path`); index += 1)
      await this.#write(
        form.get(`files[${index}].path`)?.toString('utf8') ?? '',
        form.get(`files[${index}].file`),
      );
    exchange.answer({});
  }

  async #bulkDownload(exchange: Exchange): Promise<void> {
    const { paths } = await exchange.json<{ paths: readonly string[] }>();
    const boundary = randomUUID();
    const parts: Buffer[] = [];
    for (const file of paths) {
      const bytes = await this.#read(file);
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${file}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
      parts.push(Buffer.from(head), bytes, Buffer.from('\r\n'));
    }
    parts.push(Buffer.from(`--${boundary}--\r\n`));
    exchange.response.writeHead(200, {
      'content-type': `multipart/form-data; boundary=${boundary}`,
    });
    exchange.response.end(Buffer.concat(parts));
  }

  async #write(to: string, bytes: Buffer | undefined): Promise<void> {
    if (bytes === undefined) throw new Refusal(400, 'no file in the request');
    await withFile(async (file) => {
      await writeFile(file, bytes, { mode: 0o644 });
      await this.#sandbox.files.uploadFile(file, to, never);
    });
  }

  async #read(from: string): Promise<Buffer> {
    return await withFile(async (file) => {
      try {
        await this.#sandbox.files.downloadFile(from, file, never);
      } catch (error) {
        throw new Refusal(404, String(error), { code: 'FILE_NOT_FOUND' });
      }
      return await readFile(file);
    });
  }
}

function describe(session: ToolboxSession): Record<string, unknown> {
  const commands = [...session.commands.values()].map((command) => ({
    ...{ id: command.id, command: command.command, ...exitOf(command) },
  }));
  return { sessionId: session.id, commands };
}

function exitOf({ exitCode }: { readonly exitCode: number | null }): {
  readonly exitCode?: number;
} {
  return exitCode === null ? {} : { exitCode };
}

function texts(command: { text(stream?: 'stdout' | 'stderr'): string }): Record<string, string> {
  return { output: command.text(), stdout: command.text('stdout'), stderr: command.text('stderr') };
}

async function withFile<T>(work: (file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'fake-daytona-'));
  try {
    return await work(path.join(folder, 'file'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
