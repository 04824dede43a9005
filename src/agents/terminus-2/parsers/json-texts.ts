/** Everything that the JSON parser tells a model; models are trained on these words. */
export const jsonTexts = {
  noObject: () => 'No valid JSON object found',
  noJson: () => 'No valid JSON found in response',
  textBefore: () => 'Extra text detected before JSON object',
  textAfter: () => 'Extra text detected after JSON object',
  invalidJson: (complaint: string, content: string) =>
    `Invalid JSON: ${complaint} | Content: ${content}`,
  invalidLongJson: (complaint: string, preview: string) =>
    `Invalid JSON: ${complaint} | Content preview: ${preview}...`,
  missingFields: (names: readonly string[]) => `Missing required fields: ${names.join(', ')}`,
  fieldNotText: (name: string) => `Field '${name}' should be a string`,
  commandsNotArray: () => "Field 'commands' must be an array",
  wrongOrder: (found: readonly string[], expected: readonly string[]) =>
    `Fields appear in wrong order. Found: ${found.join(' → ')}, expected: ${expected.join(' → ')}`,
  completeNotBoolean: () => "Field 'task_complete' should be a boolean or string",
  commandNotObject: (number: number) => `Command ${number} must be an object`,
  noKeystrokes: (number: number) => `Command ${number} missing required 'keystrokes' field`,
  keystrokesNotText: (number: number) => `Command ${number} 'keystrokes' must be a string`,
  invalidDuration: (number: number) =>
    `Command ${number}: Invalid duration value, using default 1.0`,
  missingDuration: (number: number) =>
    `Command ${number}: Missing duration field, using default 1.0`,
  unknownFields: (number: number, names: readonly string[]) =>
    `Command ${number}: Unknown fields: ${names.join(', ')}`,
  noNewline: (number: number) =>
    `Command ${number} should end with newline when followed by another command. ` +
    'Otherwise the two commands will be concatenated together on the same line.',
  bracesAdded: () =>
    'AUTO-CORRECTED: Fixed incomplete JSON by adding missing closing brace - please fix this in future responses',
  objectExtracted: () =>
    'AUTO-CORRECTED: Extracted JSON from mixed content - please fix this in future responses',
} as const;
