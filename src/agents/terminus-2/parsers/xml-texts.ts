/** Everything that the XML parser tells a model; models are trained on these words. */
export const xmlTexts = {
  noResponse: () => 'No <response> tag found',
  textBefore: () => 'Extra text detected before <response> tag',
  textAfter: () => 'Extra text detected after </response> tag',
  severalResponses: (count: number) =>
    `IMPORTANT: Only issue one <response> block at a time. You issued ${count} and only the first was executed.`,
  severalCommands: (count: number) =>
    `IMPORTANT: Only issue one <commands> block at a time. You issued ${count} and only the first was executed.`,
  severalSections: (name: string) => `Multiple <${name}> sections found`,
  missingSection: (name: string) => `Missing <${name}> section`,
  unknownTag: (name: string) =>
    `Unknown tag found: <${name}>, expected analysis/plan/commands/task_complete`,
  wrongOrder: (found: readonly string[], expected: readonly string[]) =>
    `Sections appear in wrong order. Found: ${found.join(' → ')}, expected: ${expected.join(' → ')}`,
  emptyCommands: () =>
    'Commands section is empty; not taking any action. If you want to wait a specific amount of time please use ' +
    "`sleep`, but if you're waiting for a command to finish then continue to wait.",
  unquotedAttribute: (number: number, name: string, value: string) =>
    `Command ${number}: Attribute '${name}' value should be quoted: ${name}="${value}"`,
  singleQuotes: (number: number, name: string, value: string) =>
    `Command ${number}: Use double quotes for attribute '${name}': ${name}="${value}"`,
  unknownAttribute: (number: number, name: string) =>
    `Command ${number}: Unknown attribute '${name}' - known attributes are: duration`,
  invalidDuration: (number: number, value: string) =>
    `Command ${number}: Invalid duration value '${value}', using default 1.0`,
  missingDuration: (number: number) =>
    `Command ${number}: Missing duration attribute, using default 1.0`,
  noNewline: (number: number) =>
    `Command ${number} should end with newline when followed by another command. ` +
    'Otherwise the two commands will be concatenated together on the same line.',
  entity: (entity: string, char: string) =>
    `Warning: ${entity} is read verbatim and not converted to ${char}. ` +
    `NEVER USE ${entity}, unless you want these exact characters to appear directly in the output.`,
  writtenLineEnds: () =>
    'Warning: \\r\\n line endings are not necessary - use \\n instead for simpler output',
} as const;
