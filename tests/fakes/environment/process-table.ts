import { randomInt } from 'node:crypto';

export interface NewProcess {
  readonly argv: readonly string[];
  /** Dies with this one, as a child in the same process group does; null stands alone. */
  readonly parent: FakeProcess | null;
  /** The sandbox's own first process and what belongs to it: never killed by `killAll`. */
  readonly isInit?: boolean;
}

/** A process of a fake sandbox: it runs until it ends or is killed, and tells by its signal. */
export class FakeProcess {
  readonly pid: number;
  readonly key: string;
  readonly argv: readonly string[];
  readonly parent: FakeProcess | null;
  readonly isInit: boolean;
  readonly #killed = new AbortController();

  constructor(pid: number, { argv, parent, isInit = false }: NewProcess) {
    this.pid = pid;
    this.key = `${pid}:${randomInt(2 ** 40)}`;
    this.argv = argv;
    this.parent = parent;
    this.isInit = isInit || (parent?.isInit ?? false);
  }

  /** Fires when the process is killed. */
  get killed(): AbortSignal {
    return this.#killed.signal;
  }

  kill(): void {
    this.#killed.abort(new Error(`process ${this.pid} was killed`));
  }
}

/** The processes of one fake sandbox. */
export class ProcessTable {
  readonly #processes = new Map<number, FakeProcess>();
  #nextPid = 1;

  list(): readonly FakeProcess[] {
    return [...this.#processes.values()];
  }

  start(process: NewProcess): FakeProcess {
    const started = new FakeProcess(this.#nextPid, process);
    this.#nextPid += 1;
    this.#processes.set(started.pid, started);
    return started;
  }

  /** Ends a process and everything below it; answers how many there were. */
  end(process: FakeProcess): number {
    if (!this.#processes.delete(process.pid)) return 0;
    process.kill();
    return this.list()
      .filter(({ parent }) => parent === process)
      .reduce((count, child) => count + this.end(child), 1);
  }

  /** Ends all outside `keep` and the init; answers how many there were. */
  killAll(keep: ReadonlySet<string>): number {
    return this.list()
      .filter((process) => !process.isInit && !keep.has(process.key))
      .reduce((count, process) => count + this.end(process), 0);
  }

  /** Ends all, the init too. */
  clear(): void {
    for (const process of this.list()) this.end(process);
  }
}
