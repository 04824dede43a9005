import type { Logger, LogLevel } from '../../src/core/logger.ts';

export interface RecordedLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export class RecordedLogger implements Logger {
  readonly lines: RecordedLine[] = [];

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level, message, fields });
  }

  above(level: 'debug'): readonly RecordedLine[] {
    return this.lines.filter((line) => line.level !== level);
  }
}
