import { isOnlyBlanks, strip } from '../strip.ts';
import type { ParsedReply, ReplyParser } from './parsed-reply.ts';
import { warningList, wrongOrder } from './warning-list.ts';
import { readXmlCommands } from './xml-commands.ts';
import { sectionText, tagPlaces, topLevelTags } from './xml-sections.ts';
import { xmlTexts } from './xml-texts.ts';

const opening = '<response>';
const closing = '</response>';
const orderedSections = ['analysis', 'plan', 'commands'];
const sections = [...orderedSections, 'task_complete'];
/** Blanks as everywhere in this parser; `i` with `u` folds as the original does. */
const blank =
  '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const complete = new RegExp(`<task_complete>${blank}*true${blank}*</task_complete>`, 'iu');

/**
 * Reads replies that are one `<response>`. The end of the text ends a response that is not closed, without a word: what matters of it are its
 * commands, and a commands section must be closed.
 */
export const xmlParser: ReplyParser = {
  name: 'xml',
  parse: (reply) => parse(reply).reply,
  salvage(truncated) {
    const commandsEnd = truncated.indexOf('</commands>');
    const end = commandsEnd === -1 ? -1 : truncated.indexOf(closing, commandsEnd);
    if (end === -1) return null;
    const prefix = truncated.slice(0, end + closing.length);
    const { reply, isRepeated } = parse(prefix);
    return reply.error === '' && !isRepeated ? prefix : null;
  },
};

interface Parsed {
  readonly reply: ParsedReply;
  /** Several responses or commands sections, of which only the first counts. */
  readonly isRepeated: boolean;
}

function parse(text: string): Parsed {
  const warnings: string[] = [];
  const repeatedResponses = warnAboutSurroundings(text, warnings);
  const content = responseContent(text);
  if (content === '') {
    const reply = finish({ error: xmlTexts.noResponse(), warnings });
    return { reply, isRepeated: repeatedResponses };
  }
  const isRepeated = repeatedResponses || tagPlaces(content, 'commands').length > 1;
  return { reply: parseContent(content, warnings), isRepeated };
}

function parseContent(content: string, warnings: string[]): ParsedReply {
  const isTaskComplete = complete.test(content);
  const texts = new Map(sections.map((name) => [name, sectionText(content, name)]));
  warnAboutSections(content, texts, warnings);
  const analysis = texts.get('analysis') ?? '';
  const plan = texts.get('plan') ?? '';
  const commandsText = texts.get('commands') ?? null;
  if (commandsText === null) {
    const error = isTaskComplete ? '' : xmlTexts.missingSection('commands');
    return finish({ analysis, plan, isTaskComplete, error, warnings });
  }
  if (commandsText === '') {
    if (!isTaskComplete) warnings.push(xmlTexts.emptyCommands());
    return finish({ analysis, plan, isTaskComplete, warnings });
  }
  const commands = readXmlCommands(commandsText, warnings);
  return finish({ analysis, plan, isTaskComplete, commands, warnings });
}

function warnAboutSurroundings(text: string, warnings: string[]): boolean {
  const start = text.indexOf(opening);
  if (start === -1) return false;
  if (!isOnlyBlanks(text.slice(0, start))) warnings.push(xmlTexts.textBefore());
  const end = text.indexOf(closing);
  if (end === -1 || isOnlyBlanks(text.slice(end + closing.length))) return false;
  warnings.push(xmlTexts.textAfter());
  const count = text.split(opening).length - 1;
  if (count === 1) return false;
  warnings.push(xmlTexts.severalResponses(count));
  return true;
}

function responseContent(text: string): string {
  const start = text.indexOf(opening);
  if (start === -1) return '';
  const end = text.indexOf(closing, start);
  return strip(text.slice(start + opening.length, end === -1 ? undefined : end));
}

function warnAboutSections(
  content: string,
  texts: ReadonlyMap<string, string | null>,
  warnings: string[],
): void {
  for (const name of orderedSections)
    if (texts.get(name) === null) warnings.push(xmlTexts.missingSection(name));
  for (const name of topLevelTags(content))
    if (!sections.includes(name)) warnings.push(xmlTexts.unknownTag(name));
  for (const name of sections) {
    const count = tagPlaces(content, name).length;
    if (count <= 1) continue;
    warnings.push(
      name === 'commands' ? xmlTexts.severalCommands(count) : xmlTexts.severalSections(name),
    );
  }
  const order = wrongOrder(orderedSections, (name) => tagPlaces(content, name)[0] ?? -1);
  if (order !== null) warnings.push(xmlTexts.wrongOrder(order.found, order.expected));
}

function finish(
  parsed: Partial<Omit<ParsedReply, 'warnings'>> & { readonly warnings: readonly string[] },
): ParsedReply {
  const nothing = { commands: [], isTaskComplete: false, error: '', analysis: '', plan: '' };
  return { ...nothing, ...parsed, warnings: warningList(parsed.warnings) };
}
