/**
 * One session of the daemon in a sandbox: a shell that takes one command after another. Output is logged line by line, each with the number of its stream
 * three times before it, which is what makes a session unfit for bytes that are no lines; input comes through a pipe that the daemon keeps open.
 */
import { randomUUID } from 'node:crypto';
import type { InteractiveProcess } from '../../../src/environments/environment.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';
import { Refusal } from './http-exchange.ts';

const prefixes = { stdout: Buffer.from([1, 1, 1]), stderr: Buffer.from([2, 2, 2]) } as const;
type Stream = keyof typeof prefixes;

export class SessionCommand {
  readonly id = randomUUID();
  readonly command: string;
  /** Resolves with the exit code. */
  readonly done = Promise.withResolvers<number>();
  exitCode: number | null = null;
  readonly #log: Buffer[] = [];
  readonly #followers = new Set<{
    readonly write: (bytes: Buffer) => void;
    readonly end: () => void;
  }>();

  constructor(command: string) {
    this.command = command;
  }

  append(stream: Stream, line: Buffer): void {
    const piece = Buffer.concat([prefixes[stream], line, Buffer.from('\n')]);
    this.#log.push(piece);
    for (const follower of this.#followers) follower.write(piece);
  }

  end(exitCode: number): void {
    if (this.exitCode !== null) return;
    this.exitCode = exitCode;
    this.done.resolve(exitCode);
    for (const follower of this.#followers) follower.end();
    this.#followers.clear();
  }

  /** From the beginning; `end` is called when the command has ended. */
  follow(follower: {
    readonly write: (bytes: Buffer) => void;
    readonly end: () => void;
  }): () => void {
    for (const piece of this.#log) follower.write(piece);
    if (this.exitCode === null) this.#followers.add(follower);
    else follower.end();
    return () => this.#followers.delete(follower);
  }

  text(stream?: Stream): string {
    const own = this.#log.filter(
      (piece) => stream === undefined || piece[0] === prefixes[stream][0],
    );
    return Buffer.concat(own.map((piece) => piece.subarray(3))).toString('utf8');
  }
}

export class ToolboxSession {
  readonly id: string;
  readonly commands = new Map<string, SessionCommand>();
  readonly #sandbox: HostedSandbox;
  readonly #user: string | null;
  readonly #lines: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #empty: Record<Stream, boolean> = { stdout: false, stderr: false };
  readonly #inputs = new Map<string, Promise<InteractiveProcess>>();
  #shell: InteractiveProcess | null = null;
  #hasEnded = false;
  #current: {
    readonly command: SessionCommand;
    readonly mark: string;
    ended: Set<Stream>;
    code: number;
  } | null = null;
  #waiting: SessionCommand[] = [];

  constructor(id: string, sandbox: HostedSandbox, user: string | null) {
    this.id = id;
    this.#sandbox = sandbox;
    this.#user = user;
  }

  async open(): Promise<void> {
    const shell = await this.#sandbox.run({
      argv: ['sh'],
      user: this.#user,
      onOutput: (stream, bytes) => this.#take(stream, Buffer.from(bytes)),
    });
    this.#shell = shell;
    void shell.exited.then(() => {
      this.#hasEnded = true;
      for (const command of this.commands.values()) command.end(137);
    });
  }

  start(text: string): SessionCommand {
    if (this.#hasEnded) throw new Refusal(410, 'the session has ended', { code: 'SESSION_ENDED' });
    const command = new SessionCommand(text);
    this.commands.set(command.id, command);
    this.#waiting.push(command);
    this.#next();
    return command;
  }

  async input(commandId: string, data: string): Promise<void> {
    const command = this.command(commandId);
    if (command.exitCode !== null)
      throw new Refusal(410, 'the command has completed', { code: 'COMMAND_ALREADY_COMPLETED' });
    const opened = this.#inputs.get(commandId) ?? this.#openInput(commandId);
    this.#inputs.set(commandId, opened);
    await (await opened).write(data.endsWith('\n') ? data : `${data}\n`);
  }

  command(id: string): SessionCommand {
    const command = this.commands.get(id);
    if (command === undefined) throw new Refusal(404, 'no such command');
    return command;
  }

  async close(): Promise<void> {
    await this.#shell?.kill();
  }

  #openInput(commandId: string): Promise<InteractiveProcess> {
    const argv = ['sh', '-c', `exec cat >${pipeOf(commandId)}`];
    return this.#sandbox.run({ argv, user: this.#user, onOutput: () => undefined });
  }

  #next(): void {
    const command = this.#current === null ? this.#waiting.shift() : undefined;
    if (command === undefined) return;
    const mark = randomUUID();
    this.#current = { command, mark, ended: new Set(), code: 0 };
    const pipe = pipeOf(command.id);
    const text = [
      `mkfifo ${pipe}; { ${command.command}`,
      `} 0<>${pipe}; slw_c=$?; rm -f ${pipe}; printf '\\n%s %s\\n' ${mark} $slw_c; printf '\\n%s\\n' ${mark} >&2`,
      '',
    ].join('\n');
    this.#shell?.write(text).catch(() => undefined); // the end of the shell tells it
  }

  #take(stream: Stream, bytes: Buffer): void {
    let rest = Buffer.concat([this.#lines[stream], bytes]);
    for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
      this.#line(stream, rest.subarray(0, at));
      rest = rest.subarray(at + 1);
    }
    this.#lines[stream] = rest;
  }

  /** An empty line waits for the next one: before the mark it is only the mark's own line break. */
  #line(stream: Stream, line: Buffer): void {
    const current = this.#current;
    if (current === null) return;
    const text = line.toString('latin1');
    const isMark = text.startsWith(current.mark);
    if (this.#empty[stream] && !isMark) current.command.append(stream, Buffer.alloc(0));
    this.#empty[stream] = line.length === 0;
    if (!isMark) {
      if (line.length > 0) current.command.append(stream, line);
      return;
    }
    current.ended.add(stream);
    if (stream === 'stdout') current.code = Number(text.slice(current.mark.length));
    if (current.ended.size < 2) return;
    void this.#over(current.command, current.code);
  }

  /** A command has ended when the daemon's own programs for it have. */
  async #over(command: SessionCommand, exitCode: number): Promise<void> {
    const input = await this.#inputs.get(command.id)?.catch(() => null);
    this.#inputs.delete(command.id);
    input?.endInput();
    await input?.exited;
    this.#current = null;
    command.end(exitCode);
    this.#next();
  }
}

function pipeOf(commandId: string): string {
  return `/tmp/.daemon-${commandId}`;
}
