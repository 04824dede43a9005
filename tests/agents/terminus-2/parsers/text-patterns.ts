import type { jsonTexts } from '../../../../src/agents/terminus-2/parsers/json-texts.ts';
import type { xmlTexts } from '../../../../src/agents/terminus-2/parsers/xml-texts.ts';

const newline =
  'should end with newline when followed by another command\\. Otherwise the two commands will be concatenated together on the same line\\.';
const fix = 'please fix this in future responses';

/** A text without a row here does not compile. */
const jsonPatterns: Readonly<Record<keyof typeof jsonTexts, RegExp>> = {
  noObject: /^No valid JSON object found$/,
  noJson: /^No valid JSON found in response$/,
  textBefore: /^Extra text detected before JSON object$/,
  textAfter: /^Extra text detected after JSON object$/,
  invalidJson: /^Invalid JSON: .+: line \d+ column \d+ \(char \d+\) \| Content: (['"])\{.*\}\1$/s,
  invalidLongJson:
    /^Invalid JSON: .+: line \d+ column \d+ \(char \d+\) \| Content preview: (['"])\{.*\1\.\.\.$/s,
  missingFields: /^Missing required fields: (?:analysis|plan|commands)(?:, (?:plan|commands))*$/,
  fieldNotText: /^Field '(?:analysis|plan)' should be a string$/,
  commandsNotArray: /^Field 'commands' must be an array$/,
  wrongOrder: /^Fields appear in wrong order\. Found: .+ → .+, expected: .+ → .+$/s,
  completeNotBoolean: /^Field 'task_complete' should be a boolean or string$/,
  commandNotObject: /^Command \d+ must be an object$/,
  noKeystrokes: /^Command \d+ missing required 'keystrokes' field$/,
  keystrokesNotText: /^Command \d+ 'keystrokes' must be a string$/,
  invalidDuration: /^Command \d+: Invalid duration value, using default 1\.0$/,
  missingDuration: /^Command \d+: Missing duration field, using default 1\.0$/,
  unknownFields: /^Command \d+: Unknown fields: .+$/s,
  noNewline: new RegExp(`^Command \\d+ ${newline}$`),
  bracesAdded: new RegExp(
    `^AUTO-CORRECTED: Fixed incomplete JSON by adding missing closing brace - ${fix}$`,
  ),
  objectExtracted: new RegExp(`^AUTO-CORRECTED: Extracted JSON from mixed content - ${fix}$`),
};

const xmlPatterns: Readonly<Record<keyof typeof xmlTexts, RegExp>> = {
  noResponse: /^No <response> tag found$/,
  textBefore: /^Extra text detected before <response> tag$/,
  textAfter: /^Extra text detected after <\/response> tag$/,
  severalResponses:
    /^IMPORTANT: Only issue one <response> block at a time\. You issued \d+ and only the first was executed\.$/,
  severalCommands:
    /^IMPORTANT: Only issue one <commands> block at a time\. You issued \d+ and only the first was executed\.$/,
  severalSections: /^Multiple <(?:analysis|plan|task_complete)> sections found$/,
  missingSection: /^Missing <(?:analysis|plan|commands)> section$/,
  unknownTag: /^Unknown tag found: <.*>, expected analysis\/plan\/commands\/task_complete$/s,
  wrongOrder: /^Sections appear in wrong order\. Found: .+ → .+, expected: .+ → .+$/s,
  emptyCommands:
    /^Commands section is empty; not taking any action\. If you want to wait a specific amount of time please use `sleep`, but if you're waiting for a command to finish then continue to wait\.$/,
  unquotedAttribute: /^Command \d+: Attribute '.+' value should be quoted: .+=".+"$/s,
  singleQuotes: /^Command \d+: Use double quotes for attribute '.+': .+=".+"$/s,
  unknownAttribute: /^Command \d+: Unknown attribute '.+' - known attributes are: duration$/s,
  invalidDuration: /^Command \d+: Invalid duration value '.*', using default 1\.0$/s,
  missingDuration: /^Command \d+: Missing duration attribute, using default 1\.0$/,
  noNewline: new RegExp(`^Command \\d+ ${newline}$`),
  entity:
    /^Warning: (&\w+;) is read verbatim and not converted to ['"<>&]\. NEVER USE \1, unless you want these exact characters to appear directly in the output\.$/,
  writtenLineEnds:
    /^Warning: \\r\\n line endings are not necessary - use \\n instead for simpler output$/,
};

/** What each parser may tell a model. */
export const textPatterns = { json: jsonPatterns, xml: xmlPatterns };
