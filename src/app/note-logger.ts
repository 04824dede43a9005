import type { Logger } from '../core/logger.ts';

/** Tells the user what an environment warns of, each text once: the job's own log is not open yet when environments are made. */
export function noteLogger(note: (text: string) => void): Logger {
  const told = new Set<string>();
  return {
    log(level, message, fields = {}) {
      if (level !== 'warn' && level !== 'error') return;
      const text = [
        message,
        ...Object.entries(fields).map(([name, value]) => `${name}: ${String(value)}`),
      ].join(', ');
      if (told.has(text)) return;
      told.add(text);
      note(text);
    },
  };
}
