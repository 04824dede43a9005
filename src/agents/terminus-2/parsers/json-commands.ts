import { jsonTexts } from './json-texts.ts';
import type { JsonValue } from './json-value.ts';
import type { KeystrokeCommand } from './parsed-reply.ts';

const defaultDurationSec = 1;

/** Reads the `commands` array; a string is the error that loses all of them. Warnings of commands before the bad one are kept. */
export function readJsonCommands(
  items: readonly JsonValue[],
  warnings: string[],
): readonly KeystrokeCommand[] | string {
  const commands: KeystrokeCommand[] = [];
  for (const [index, item] of items.entries()) {
    const number = index + 1;
    if (!(item instanceof Map)) return jsonTexts.commandNotObject(number);
    const fields: ReadonlyMap<string, JsonValue> = item;
    const keystrokes = fields.get('keystrokes');
    if (keystrokes === undefined) return jsonTexts.noKeystrokes(number);
    if (typeof keystrokes !== 'string') return jsonTexts.keystrokesNotText(number);
    const durationSec = readDuration(fields.get('duration'), number, warnings);
    const unknown = [...fields.keys()].filter((key) => key !== 'keystrokes' && key !== 'duration');
    if (unknown.length > 0) warnings.push(jsonTexts.unknownFields(number, unknown));
    const isLast = number === items.length;
    if (!isLast && keystrokes !== '' && !keystrokes.endsWith('\n'))
      warnings.push(jsonTexts.noNewline(number));
    commands.push({ keystrokes, durationSec });
  }
  return commands;
}

function readDuration(value: JsonValue | undefined, number: number, warnings: string[]): number {
  if (value === undefined) {
    warnings.push(jsonTexts.missingDuration(number));
    return defaultDurationSec;
  }
  const duration = typeof value === 'boolean' ? Number(value) : value;
  if (typeof duration === 'number' && !Number.isNaN(duration)) return duration;
  warnings.push(jsonTexts.invalidDuration(number));
  return defaultDurationSec;
}
