/**
 * What a process of this host waits for, as its kernel shows it: the system call that it is in and what that call waits on. A look changes nothing and
 * may find the process elsewhere a moment later; one look is a hint, two that agree are evidence.
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import type { ProcessView, ProcessWait } from '../../wire/rollout/process-view.ts';

/** The same on every Linux that Node runs on. */
const ticksPerSecond = 100;

type Call =
  'read' | 'open' | 'select' | 'poll' | 'events' | 'receive' | 'sleep' | 'child' | 'pause';

/** Numbers of the calls in which a process may wait, by processor. */
const calls: Readonly<Record<string, ReadonlyMap<number, Call>>> = {
  x64: new Map<number, Call>([
    ...([0, 17, 19].map((number) => [number, 'read']) as [number, Call][]),
    ...([2, 257].map((number) => [number, 'open']) as [number, Call][]),
    ...([23, 270].map((number) => [number, 'select']) as [number, Call][]),
    ...([7, 271].map((number) => [number, 'poll']) as [number, Call][]),
    ...([232, 281, 441].map((number) => [number, 'events']) as [number, Call][]),
    ...([42, 43, 45, 47, 288, 299].map((number) => [number, 'receive']) as [number, Call][]),
    ...([35, 230].map((number) => [number, 'sleep']) as [number, Call][]),
    ...([61, 247].map((number) => [number, 'child']) as [number, Call][]),
    ...([34, 128, 130].map((number) => [number, 'pause']) as [number, Call][]),
  ]),
  arm64: new Map<number, Call>([
    ...([63, 65, 67].map((number) => [number, 'read']) as [number, Call][]),
    [56, 'open'],
    [72, 'select'],
    [73, 'poll'],
    ...([22, 441].map((number) => [number, 'events']) as [number, Call][]),
    ...([202, 203, 207, 212, 242, 243].map((number) => [number, 'receive']) as [number, Call][]),
    ...([101, 115].map((number) => [number, 'sleep']) as [number, Call][]),
    ...([95, 260].map((number) => [number, 'child']) as [number, Call][]),
    ...([133, 137].map((number) => [number, 'pause']) as [number, Call][]),
  ]),
};

/** Where the kernel does not show the call: the function in which the process sleeps. */
const kernelWaits: readonly (readonly [RegExp, ProcessWait])[] = [
  [/^n_tty_read|pipe_read|wait_for_partner/, 'input'],
  [/nanosleep/, 'timer'],
  [/^do_wait/, 'child'],
  [/poll|select|skb|inet_csk_accept|unix_stream/, 'network'],
];

/** Those of `pids` that live, in order of pid. */
export function viewProcesses(pids: Iterable<number>): readonly ProcessView[] {
  const uptimeMs = Number(read('/proc/uptime').split(' ')[0] ?? 0) * 1000;
  return [...new Set(pids)]
    .sort((a, b) => a - b)
    .map((pid) => viewProcess(pid, uptimeMs))
    .filter((view) => view !== null);
}

function viewProcess(pid: number, uptimeMs: number): ProcessView | null {
  const line = read(`/proc/${pid}/stat`);
  // The name in parentheses may hold anything: fields are counted from behind it.
  const nameEnd = line.lastIndexOf(')');
  const fields = line.slice(nameEnd + 2).split(' ');
  const [state = ''] = fields;
  if (nameEnd === -1 || state === 'Z' || state === 'X' || state === 'x') return null;
  const ticks = (at: number): number => (Number(fields[at] ?? 0) * 1000) / ticksPerSecond;
  return {
    pid,
    parent: Number(fields[1]),
    name: line.slice(line.indexOf('(') + 1, nameEnd),
    ...waitOf(pid, state),
    ageMs: Math.max(0, Math.round(uptimeMs - ticks(19))),
    cpuMs: ticks(11) + ticks(12),
  };
}

type Wait = Pick<ProcessView, 'waitsFor' | 'input'>;

function waitOf(pid: number, state: string): Wait {
  if (state === 'R') return plain('none');
  if (state === 'D') return plain('disk');
  if (state === 'T' || state === 't') return plain('stopped');
  const words = read(`/proc/${pid}/syscall`).trim().split(' ');
  const call = calls[process.arch]?.get(Number(words[0]));
  if (words[0] === 'running') return plain('none');
  if (call === undefined) return kernelWait(pid);
  return callWait(call, { pid, first: Number(words[1]), second: Number(words[2]) });
}

function callWait(
  call: Call,
  { pid, first, second }: { readonly pid: number; readonly first: number; readonly second: number },
): Wait {
  switch (call) {
    case 'read':
      return readWait(pid, first);
    case 'open':
      return { waitsFor: 'input', input: 'pipe' }; // only a named pipe keeps its opener waiting
    case 'select': // a set of one descriptor holds standard input: how a line editor reads
      if (first === 1) return { waitsFor: 'prompt', input: inputKind(`/proc/${pid}/fd/0`) };
      return plain(first === 0 ? 'timer' : 'network');
    case 'poll':
      return plain(second === 0 ? 'timer' : 'network');
    case 'sleep':
      return plain('timer');
    case 'child':
      return plain('child');
    case 'events':
    case 'receive':
      return plain('network');
    case 'pause':
      return plain('other');
  }
}

function readWait(pid: number, descriptor: number): Wait {
  const place = `/proc/${pid}/fd/${descriptor}`;
  const input = inputKind(place);
  // A socket beside standard input is a connection.
  return input === 'socket' && descriptor !== 0 ? plain('network') : { waitsFor: 'input', input };
}

function inputKind(place: string): ProcessView['input'] {
  try {
    const target = readlinkSync(place);
    if (/^\/dev\/(?:pts\/|tty|console|ptmx)/.test(target)) return 'terminal';
    if (target.startsWith('pipe:')) return 'pipe';
    if (target.startsWith('socket:')) return 'socket';
    return statSync(place).isFIFO() ? 'pipe' : 'other';
  } catch {
    return 'other';
  }
}

function kernelWait(pid: number): Wait {
  const place = read(`/proc/${pid}/wchan`);
  const waitsFor = kernelWaits.find(([name]) => name.test(place))?.[1] ?? 'other';
  if (waitsFor !== 'input') return plain(waitsFor);
  return { waitsFor, input: place.startsWith('n_tty') ? 'terminal' : 'pipe' };
}

function plain(waitsFor: ProcessWait): Wait {
  return { waitsFor, input: null };
}

/** Empty when it cannot be read: the process has ended, or belongs to somebody else. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
