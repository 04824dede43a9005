import type { Logger } from '../../core/logger.ts';

export type ToldLine = {
  readonly level: Parameters<Logger['log']>[0];
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
};

/** The log of a process of ours: its lines go to the server, which writes them. */
export function toldLogger(tell: (line: ToldLine) => void): Logger {
  return {
    log: (level, message, fields = {}) => {
      try {
        tell({ level, message, fields: sayable(fields) });
      } catch {
        // A field that is no plain value must not cost the line.
        tell({ level, message, fields: { unreadableFields: Object.keys(fields) } });
      }
    },
  };
}

/** Errors say what they are, as in the log of the server itself. */
function sayable(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? `${value.name}: ${value.message}` : value,
    ]),
  );
}
