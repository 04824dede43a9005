export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Structured log lines. Fields hold plain values; known secrets never go in. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export const silentLogger: Logger = { log: () => undefined };
