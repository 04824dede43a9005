/** What the processes of a sandbox tell: whether any of them works, and if none does, what those wait for that nobody below them works for. */
import type { ProcessView } from '../../wire/rollout/process-view.ts';
import { durationText } from './finding.ts';

/** `busy`: something runs. `input`, `asleep`, `network`: what all wait for. `idle`: only shells at their prompts, or nothing at all. */
export type ProcessState = 'busy' | 'input' | 'asleep' | 'network' | 'idle';

export interface ProcessFinding {
  readonly state: ProcessState;
  /** The telling ones, in words: names, never arguments. */
  readonly evidence: readonly string[];
  /** Age of the youngest of them: it has not waited for longer than that. */
  readonly ageMs: number;
}

const shells = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'fish', 'busybox']);
/** They wait for others by trade: terminals, and what carries a command's output. */
const carriers = /^(?:tmux|tini|catatonit|docker-init|screen)/;
const mostNamed = 4;

/** null = there is nothing that could be looked at. */
export function processFinding(processes: readonly ProcessView[] | null): ProcessFinding | null {
  if (processes === null) return null;
  const telling = processes.filter((view) => !isIdle(view));
  const of = (isIt: (view: ProcessView) => boolean): readonly ProcessView[] => telling.filter(isIt);
  const busy = of(({ waitsFor }) => waitsFor === 'none' || waitsFor === 'disk');
  if (busy.length > 0) return finding('busy', busy);
  const readers = of(({ waitsFor }) => waitsFor === 'input' || waitsFor === 'prompt');
  const atTerminal = readers.filter(({ input }) => input === 'terminal');
  if (atTerminal.length > 0) return finding('input', atTerminal);
  const asleep = of((view) => isAsleep(view));
  if (asleep.length > 0) return finding('asleep', asleep);
  // Who reads a pipe waits for its writer: that decides only where there is none that waits for something else.
  const onNetwork = of(({ waitsFor }) => waitsFor === 'network');
  if (onNetwork.length > 0) return finding('network', onNetwork);
  if (readers.length > 0) return finding('input', readers);
  return telling.length > 0 ? finding('asleep', telling) : finding('idle', []);
}

function isIdle({ name, waitsFor }: ProcessView): boolean {
  if (waitsFor === 'child') return true;
  return carriers.test(name) ? waitsFor !== 'none' : waitsFor === 'prompt' && shells.has(name);
}

function isAsleep({ name, waitsFor }: ProcessView): boolean {
  return (
    waitsFor === 'timer' || waitsFor === 'stopped' || (waitsFor === 'other' && name === 'sleep')
  );
}

function finding(state: ProcessState, views: readonly ProcessView[]): ProcessFinding {
  const named = views.slice(0, mostNamed).map(textOf);
  const more = views.length - named.length;
  return {
    state,
    evidence: [...named, ...(more > 0 ? [`and ${more} more processes`] : [])],
    ageMs: views.length === 0 ? 0 : Math.min(...views.map(({ ageMs }) => ageMs)),
  };
}

function textOf({ name, pid, waitsFor, input, ageMs }: ProcessView): string {
  const age = `started ${durationText(ageMs)} ago`;
  return `process ${name} (${pid}) ${doing(waitsFor, input)}, ${age}`;
}

function doing(waitsFor: ProcessView['waitsFor'], input: ProcessView['input']): string {
  switch (waitsFor) {
    case 'none':
      return 'runs';
    case 'disk':
      return 'waits for a disk';
    case 'input':
    case 'prompt':
      return `reads ${input === 'terminal' ? 'its terminal' : `a ${input ?? 'file'}`}`;
    case 'timer':
      return 'sleeps';
    case 'stopped':
      return 'is stopped';
    case 'network':
      return 'waits for a connection';
    case 'child':
      return 'waits for a child';
    case 'other':
      return 'waits';
  }
}
