/** A process of a sandbox, as far as it may be shown: its program's name, never its arguments. */

/**
 * `none`: it runs, or could. `prompt`: a line editor waits for the next line, as an idle shell does. `input`: reads a terminal, a pipe or a socket that
 * says nothing. `timer`: sleeps. `child`: waits for a process that it started. `network`: waits for a connection or an event of one. `disk`:
 * uninterruptible. `other`: waits for something that is none of these, or cannot be looked at.
 */
export type ProcessWait =
  'none' | 'prompt' | 'input' | 'timer' | 'child' | 'network' | 'disk' | 'stopped' | 'other';

export interface ProcessView {
  /** As the host numbers it where it is seen from there, else as the sandbox does. */
  readonly pid: number;
  readonly parent: number;
  /** As the kernel keeps it: 15 characters. */
  readonly name: string;
  readonly waitsFor: ProcessWait;
  /** Of `input` and `prompt`: what it reads from. */
  readonly input: 'terminal' | 'pipe' | 'socket' | 'other' | null;
  /** How long it has lived. */
  readonly ageMs: number;
  /** Processor time so far: it grows between two looks when the process does something. */
  readonly cpuMs: number;
}
