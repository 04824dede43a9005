import type { KeystrokeCommand } from './parsed-reply.ts';
import { pythonFloat } from './python-float.ts';
import {
  attributeNames,
  durationValue,
  singleQuotedAttributes,
  unquotedAttributes,
} from './xml-attributes.ts';
import { xmlTexts } from './xml-texts.ts';

const opening = '<keystrokes';
const closing = '</keystrokes>';
const defaultDurationSec = 1;
const entities: readonly (readonly [entity: string, char: string])[] = [
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&amp;', '&'],
  ['&quot;', '"'],
  ['&apos;', "'"],
];

/** Reads every complete `<keystrokes>` of a commands section; one that is not closed is no command. Nothing is decoded. */
export function readXmlCommands(section: string, warnings: string[]): readonly KeystrokeCommand[] {
  const found = [...findKeystrokes(section)];
  const commands = found.map(({ attributes, keystrokes }, index) => {
    const number = index + 1;
    warnAboutAttributes(attributes, number, warnings);
    const durationSec = readDuration(attributes, number, warnings);
    if (number < found.length && !keystrokes.endsWith('\n'))
      warnings.push(xmlTexts.noNewline(number));
    return { keystrokes, durationSec };
  });
  for (const [entity, char] of entities)
    if (section.includes(entity)) warnings.push(xmlTexts.entity(entity, char));
  if (section.includes('\\r\\n')) warnings.push(xmlTexts.writtenLineEnds());
  return commands;
}

interface Keystrokes {
  readonly attributes: string;
  readonly keystrokes: string;
}

function* findKeystrokes(section: string): Generator<Keystrokes> {
  let start = section.indexOf(opening);
  while (start !== -1) {
    const tagEnd = section.indexOf('>', start);
    if (tagEnd === -1) return;
    const end = section.indexOf(closing, tagEnd + 1);
    // What is not closed here is not closed further on either.
    if (end === -1) return;
    yield {
      attributes: section.slice(start + opening.length, tagEnd),
      keystrokes: section.slice(tagEnd + 1, end),
    };
    start = section.indexOf(opening, end + closing.length);
  }
}

function warnAboutAttributes(attributes: string, number: number, warnings: string[]): void {
  for (const { name, value } of unquotedAttributes(attributes))
    warnings.push(xmlTexts.unquotedAttribute(number, name, value));
  for (const { name, value } of singleQuotedAttributes(attributes))
    warnings.push(xmlTexts.singleQuotes(number, name, value));
  for (const name of attributeNames(attributes))
    if (name !== 'duration') warnings.push(xmlTexts.unknownAttribute(number, name));
}

function readDuration(attributes: string, number: number, warnings: string[]): number {
  const value = durationValue(attributes);
  const durationSec = value === null ? null : pythonFloat(value);
  if (durationSec !== null) return durationSec;
  warnings.push(
    value === null ? xmlTexts.missingDuration(number) : xmlTexts.invalidDuration(number, value),
  );
  return defaultDurationSec;
}
