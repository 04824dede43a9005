import { createHash } from 'node:crypto';
import { decodeBytesToUtf8, defineCommand, type CustomCommand, type ExecResult } from 'just-bash';
import type { Clock } from '../../../src/core/clock.ts';
import type { FakeFiles } from './fake-files.ts';
import type { FakeNetwork } from './fake-network.ts';
import type { FakeProcess, ProcessTable } from './process-table.ts';
import type { FakeUser } from './users.ts';

/** What a scripted command sees of its call. */
export interface CommandCall {
  readonly sandbox: string;
  readonly args: readonly string[];
  readonly stdin: string;
  readonly cwd: string;
  readonly env: ReadonlyMap<string, string>;
  readonly user: string;
  /** The sandbox's file tree. */
  readonly files: FakeFiles;
  /** Fires when the process is killed: by a timeout, a signal, or the end of the sandbox. */
  readonly killed: AbortSignal;
  /** Starts a process that goes on after the command, until it is killed; `work` is its program. */
  readonly background: (argv: readonly string[], work?: (killed: AbortSignal) => void) => void;
}

export interface CommandAnswer {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
}

/** A program of a fake sandbox, scripted by a test. */
export type FakeCommand = (call: CommandCall) => CommandAnswer | Promise<CommandAnswer>;

/** What one running shell of a fake sandbox is made of. */
export interface ShellWorld {
  readonly sandbox: string;
  readonly files: FakeFiles;
  readonly processes: ProcessTable;
  readonly network: FakeNetwork;
  readonly clock: Clock;
  readonly user: FakeUser;
  readonly process: FakeProcess;
  readonly limits: { readonly memoryMb: number | null; readonly pids: number | null };
  readonly cpus: number | null;
  readonly scripted: ReadonlyMap<string, FakeCommand>;
}

const answer = (given: CommandAnswer): ExecResult => ({
  stdout: given.stdout ?? '',
  stderr: given.stderr ?? '',
  exitCode: given.exitCode ?? 0,
});

/** Programs that just-bash lacks or that need the process table, the network or the users of the fake. */
export function fakeCommands(world: ShellWorld): CustomCommand[] {
  const { files, processes, network, user } = world;
  const own: CustomCommand[] = [
    defineCommand('sleep', async ([duration = '0']) => {
      const child = processes.start({ argv: ['sleep', duration], parent: world.process });
      const ms = duration === 'infinity' ? 2 ** 31 - 1 : Number(duration) * 1_000;
      try {
        await world.clock.sleep(ms, child.killed);
        return answer({});
      } catch {
        return answer({ exitCode: 137 }); // the only reason of `killed`
      } finally {
        processes.end(child);
      }
    }),
    defineCommand('trap', async () => answer({})),
    defineCommand('id', async ([flag]) => {
      const { name, uid, gid, group } = user;
      const text = { '-u': uid, '-g': gid, '-un': name, '-gn': group }[flag ?? ''];
      return answer({ stdout: `${text ?? `uid=${uid}(${name}) gid=${gid}(${group})`}\n` });
    }),
    defineCommand('whoami', async () => answer({ stdout: `${user.name}\n` })),
    defineCommand('chown', async (args, { cwd, fs }) => {
      if (user.uid !== 0) return answer({ stderr: 'chown: not permitted\n', exitCode: 1 });
      const [spec = '', ...paths] = args.filter((each) => !each.startsWith('-'));
      const [uid, gid] = spec.split(':').map(Number);
      for (const path of paths)
        files.setOwner(fs.resolvePath(cwd, path), { uid: uid ?? 0, gid: gid ?? 0 });
      return answer({});
    }),
    defineCommand('mkfifo', async (args, { cwd, fs }) => {
      for (const path of args) await files.makePipe(fs.resolvePath(cwd, path));
      return answer({});
    }),
    defineCommand('stat', async (args, { cwd, fs, origCommand }) => {
      const { uid, gid } = files.owner(fs.resolvePath(cwd, args.at(-1) ?? ''));
      const owned = (arg: string) => arg.replaceAll('%u', `${uid}`).replaceAll('%g', `${gid}`);
      return origCommand ? await origCommand(args.map(owned)) : answer({ exitCode: 1 });
    }),
    defineCommand('head', async (args, { origCommand }) => {
      const [flag, count, path] = args;
      if (flag === '-c' && path === '/dev/zero')
        return answer({ stdout: '\0'.repeat(Number(count)) });
      return origCommand ? await origCommand(args) : answer({ exitCode: 1 });
    }),
    defineCommand('sha256sum', async (args, { cwd, fs }) => {
      const sums = args.map(async (path) => {
        const bytes = await fs.readFileBuffer(fs.resolvePath(cwd, path));
        return `${createHash('sha256').update(bytes).digest('hex')}  ${path}\n`;
      });
      return answer({ stdout: (await Promise.all(sums)).join('') });
    }),
    defineCommand('fake-fetch', async ([kind, host = '', port = '']) => {
      const reached = await network.fetch(
        kind === 'direct' ? 'direct' : 'proxied',
        host,
        Number(port),
      );
      return reached === null ? answer({ exitCode: 7 }) : answer({ stdout: reached });
    }),
    defineCommand('fake-memory', async ([mebibytes]) =>
      Number(mebibytes) > (world.limits.memoryMb ?? Infinity)
        ? answer({ stderr: 'Killed\n', exitCode: 137 })
        : answer({ stdout: 'held\n' }),
    ),
    defineCommand('fake-burn', async ([seconds]) => {
      const used = Number(seconds) * Math.min(1, world.cpus ?? 1);
      return answer({ stdout: `${used}\n` });
    }),
    defineCommand('fake-fork', async ([children]) => {
      const room = (world.limits.pids ?? Infinity) - processes.list().length;
      return answer({ stdout: `forked ${Math.min(Number(children), room)}\n` });
    }),
    defineCommand('linger', async ([kind = 'plain', marker = '']) => {
      linger(world, kind, marker);
      return answer({});
    }),
  ];
  return [...own, ...[...world.scripted].map((each) => scripted(world, ...each))];
}

function scripted(world: ShellWorld, name: string, command: FakeCommand): CustomCommand {
  return defineCommand(name, async (args, { cwd, env, stdin }) => {
    const process = world.processes.start({ argv: [name, ...args], parent: world.process });
    try {
      const given = await command({
        sandbox: world.sandbox,
        args,
        stdin: decodeBytesToUtf8(stdin),
        cwd,
        env,
        user: world.user.name,
        files: world.files,
        killed: process.killed,
        background: (argv, work) => {
          const started = world.processes.start({ argv, parent: null });
          work?.(started.killed);
        },
      });
      return answer(process.killed.aborted ? { exitCode: 137 } : given);
    } finally {
      world.processes.end(process);
    }
  });
}

/** The programs of the suite's `linger` probe: none ends by itself. */
function linger({ processes, files, limits }: ShellWorld, kind: string, marker: string): void {
  const started = processes.start({ argv: ['linger', kind, marker], parent: null });
  if (kind === 'plain' || kind === 'detached') return;
  if (kind === 'writer') files.writeFileSync('/tmp/written', 'x');
  const timer = setInterval(() => {
    if (kind === 'writer') void files.appendFile('/tmp/written', 'x');
    else if (processes.list().length < (limits.pids ?? 100))
      processes.start({ argv: ['linger', 'child', marker], parent: null });
  }, 5);
  started.killed.addEventListener('abort', () => clearInterval(timer), { once: true });
}
