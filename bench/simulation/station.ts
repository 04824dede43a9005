/** So many servers with one line before them: processors of a host, the thread of the front end, places at an engine. */
import type { Agenda } from './agenda.ts';
import { Fifo } from './fifo.ts';

interface Waiting {
  readonly since: number;
  readonly ms: number;
  readonly done: () => void;
}

export class Station {
  readonly name: string;
  readonly #agenda: Agenda;
  readonly #servers: number;
  readonly #line = new Fifo<Waiting>();
  #busy = 0;
  #served = 0;
  #servedMs = 0;
  #waitedMs = 0;
  #since = 0;

  /** `servers` may be Infinity: nobody waits. */
  constructor(name: string, agenda: Agenda, servers: number) {
    this.name = name;
    this.#agenda = agenda;
    this.#servers = servers;
  }

  /** Work of `ms` milliseconds, which begins when a server is free. */
  serve(ms: number, done: () => void): void {
    const work = { since: this.#agenda.now, ms, done };
    if (this.#busy < this.#servers) this.#begin(work);
    else this.#line.push(work);
  }

  /** What was counted so far is forgotten: the time in which the world filled up. */
  restartCount(): void {
    this.#served = this.#servedMs = this.#waitedMs = 0;
    this.#since = this.#agenda.now;
  }

  get waiting(): number {
    return this.#line.length;
  }

  get meanWaitMs(): number {
    return this.#served === 0 ? 0 : this.#waitedMs / this.#served;
  }

  /** Share of its servers' time, by the work that began; 0 where nobody ever waits. */
  get utilisation(): number {
    const span = this.#agenda.now - this.#since;
    return span === 0 ? 0 : this.#servedMs / (span * this.#servers);
  }

  #begin({ since, ms, done }: Waiting): void {
    this.#busy += 1;
    this.#served += 1;
    this.#servedMs += ms;
    this.#waitedMs += this.#agenda.now - since;
    this.#agenda.after(ms, () => {
      this.#busy -= 1;
      const next = this.#line.shift();
      if (next !== undefined) this.#begin(next);
      done();
    });
  }
}
