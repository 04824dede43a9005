/** One plain line per thing that happened, for logs and pipes. */
import type { JobEvent, TrialSummary } from '../app/run-job.ts';
import type { Display } from './progress-display.ts';
import { counted, formatDuration } from './table.ts';
import type { Terminal } from './terminal.ts';
import { cancellationText, verdictText } from './verdict-text.ts';

export class ProgressLines implements Display {
  readonly #terminal: Terminal;
  #total = 0;
  #settled = 0;
  /** The same mistake strikes every trial of a job: what to do about it is said once here and again in the summary. */
  readonly #remedies = new Set<string>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  accept(event: JobEvent): void {
    if (event.type === 'job:started') {
      this.#total = event.totalTrials;
      this.#settled = event.finishedBefore;
      const kept = event.finishedBefore === 0 ? '' : `, ${event.finishedBefore} finished before`;
      this.note(`${counted(event.totalTrials, 'trial')}${kept}`);
    } else if (event.type === 'trial:retrying') {
      const wait = formatDuration(event.waitMs);
      this.note(`${event.trialName}: ${verdictText(event.summary)}; again in ${wait}`);
    } else if (event.type === 'trial:cancelled') {
      this.note(cancellationText(event));
    } else if (event.type === 'trial:settled') {
      this.#settled += 1;
      const { summary } = event;
      const ms = summary.phaseTimes.total_ms;
      const time = ms === undefined ? '' : ` (${formatDuration(ms)})`;
      this.note(
        `${this.#settled}/${this.#total} ${summary.trialName}${time}: ${this.#verdict(summary)}`,
      );
    }
  }

  #verdict(summary: TrialSummary): string {
    const { failure } = summary;
    const remedy = failure?.remedy ?? null;
    if (failure === null || remedy === null) return verdictText(summary);
    if (this.#remedies.has(remedy))
      return verdictText({ ...summary, failure: { ...failure, remedy: null } });
    this.#remedies.add(remedy);
    return verdictText(summary);
  }

  note(text: string): void {
    this.#terminal.err(`${text}\n`);
  }

  standAside<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  close(): void {
    // Nothing is redrawn.
  }
}

/** Only what somebody should know: warnings, cleaned-up sandboxes. */
export function quietDisplay(terminal: Terminal): Display {
  return {
    accept: () => undefined,
    note: (text) => terminal.err(`${text}\n`),
    standAside: (work) => work(),
    close: () => undefined,
  };
}
