import { reportPid } from '../shared/pid-line.ts';

/** What is really run for a command: it says its pid first, so that it can be killed from another exec. It needs only `sh` in the image. */
const report = `${reportPid}; `;

/** Argv for a command: `bash -c` where the image has bash and it is wanted, else `sh -c`. */
export function commandArgv(command: string, shell: 'bash' | 'sh'): readonly string[] {
  const run =
    shell === 'sh'
      ? 'exec sh -c "$1"'
      : 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi';
  return ['sh', '-c', report + run, 'slipway', command];
}

/** Argv for a shell that reads commands from its standard input. */
export const shellArgv: readonly string[] = [
  'sh',
  '-c',
  `${report}if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc; else exec sh; fi`,
];

/** Argv for a plain `sh` that reads commands from its standard input: what it runs is fixed by POSIX. */
export const plainShellArgv: readonly string[] = ['sh', '-c', `${report}exec sh`];
