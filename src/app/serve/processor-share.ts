/**
 * The share of the processor that the server gets. Linux divides the processor among sessions first (autogroups), and every program that is started for a
 * sandbox is a session of its own: among dozens of them the server would be one of many, however little it asks for. So its own session gets precedence.
 * A backend that starts them is a session too, and gets it only while somebody waits for what it ends: one that always came first would break in on its own
 * programs at every turn, and both would pay for that.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const ownFile = '/proc/self/autogroup';
/** Nine times the weight of a session that asked for nothing. */
const precedence = -10;

/**
 * Until disposed, this process, its threads and what else is of its session come first; programs that begin a session of their own do not inherit it. Needs
 * root or CAP_SYS_NICE; where that, or the kernel's part of it, is missing nothing happens.
 */
export function takePrecedence(file = ownFile): Disposable {
  const before = niceOf(read(file));
  if (before === null || before < precedence || !write(file, precedence))
    return { [Symbol.dispose]: () => undefined };
  return {
    [Symbol.dispose]: () => {
      // The session may be a shell's, which lives on. A server that was killed in it has left ours behind.
      write(file, before === precedence ? 0 : before);
    },
  };
}

/** Precedence of a session for as long as somebody asks for it. */
export class AskedPrecedence {
  readonly #file: string;
  #askers = 0;
  #taken: Disposable | null = null;

  /** @param file `/proc/PID/autogroup` of a process in it. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Until what it answers is disposed, which is done once. */
  ask(): Disposable {
    this.#askers += 1;
    this.#taken ??= takePrecedence(this.#file);
    return {
      [Symbol.dispose]: () => {
        this.#askers -= 1;
        if (this.#askers > 0) return;
        this.#taken?.[Symbol.dispose]();
        this.#taken = null;
      },
    };
  }
}

/** Of `/autogroup-25 nice 0`. */
function niceOf(text: string): number | null {
  const nice = / nice (-?\d+)\s*$/.exec(text)?.[1];
  return nice === undefined ? null : Number(nice);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function write(file: string, nice: number): boolean {
  try {
    writeFileSync(file, String(nice));
    return true;
  } catch {
    return false;
  }
}
