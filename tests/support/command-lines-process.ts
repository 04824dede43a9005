/** The process of `command-lines.ts`: runs the command line that a message holds, and answers what it printed and how it ended. */
import { main } from '../../src/cli/main.ts';
import type { CommandLine, EndedCommandLine } from './command-lines.ts';

const settleLimitMs = 30_000;

// Every command line listens to the same process and streams, and expects to be the only one.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);

process.on('message', (message: CommandLine) => {
  void carryOut(message).then((ended) => process.send?.(ended));
});

async function carryOut({ argv, cwd, variables }: CommandLine): Promise<EndedCommandLine> {
  const own = process.env;
  const printed = { stdout: '', stderr: '' };
  process.chdir(cwd);
  process.env = { ...own, ...variables };
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = (text: string | Uint8Array) => {
      printed[name] += String(text);
      return true;
    };
  const before = holding();
  try {
    const exitCode = await main(argv);
    const held = await remaining(before);
    return { exitCode, ...printed, held };
  } finally {
    // Below ours is the one of the stream's class.
    for (const stream of [process.stdout, process.stderr]) Reflect.deleteProperty(stream, 'write');
    process.env = own;
  }
}

/** What keeps this process from ending, but for turns of its loop. */
function holding(): string[] {
  return process.getActiveResourcesInfo().filter((name) => name !== 'Immediate');
}

/** What is held beyond `before` once nothing of it changes any more by itself. */
async function remaining(before: readonly string[]): Promise<readonly string[]> {
  const end = performance.now() + settleLimitMs;
  for (;;) {
    const held = holding();
    for (const name of before) {
      const at = held.indexOf(name);
      if (at !== -1) held.splice(at, 1);
    }
    if (held.length === 0 || performance.now() > end) return held;
    await new Promise(setImmediate);
  }
}
