/** Where a command writes and what it may ask. */
export interface Terminal {
  /** Results. */
  out(text: string): void;
  /** Results that must not be lost: resolves when the reader has them. CANCELLED when nobody reads any more. */
  handOver(text: string): Promise<void>;
  /** Everything else: progress, warnings, errors. */
  err(text: string): void;
  /** Whether `err` is a terminal on which lines can be redrawn. */
  readonly isInteractive: boolean;
  readonly columns: number;
  /** One line from the person at the terminal; null when nobody is there. CANCELLED when input ends, the signal's reason when it fires. */
  ask(question: string, signal: AbortSignal): Promise<string | null>;
}
