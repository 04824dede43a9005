import { closeSync, openSync, readlinkSync } from 'node:fs';

/**
 * A pid namespace that cannot vanish meanwhile. The kernel gives the number of one that has gone to the next that is made, at once: whoever
 * looks by a number that nobody holds finds, and kills, the processes of a stranger.
 */
export class HeldNamespace implements Disposable {
  /** As links below `/proc/PID/ns` show it. */
  readonly id: string;
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
    this.id = readlinkSync(`/proc/self/fd/${fd}`);
  }

  /** null when the process has ended or may not be looked at. */
  static of(pid: number): HeldNamespace | null {
    try {
      return new HeldNamespace(openSync(`/proc/${pid}/ns/pid`, 'r'));
    } catch {
      return null;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}
