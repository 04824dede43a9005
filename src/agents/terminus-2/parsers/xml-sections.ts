/** Finding tags in the content of a response without a real XML reader: models write shell text between them. Everything takes linear time. */
import { isBlank, strip } from '../strip.ts';

/** The stripped text of the first `<name>…</name>`, else '' for `<name/>`; null = neither. */
export function sectionText(content: string, name: string): string | null {
  const opening = `<${name}>`;
  const start = content.indexOf(opening);
  const end = start === -1 ? -1 : content.indexOf(`</${name}>`, start + opening.length);
  if (end !== -1) return strip(content.slice(start + opening.length, end));
  return hasSelfClosing(content, name) ? '' : null;
}

function hasSelfClosing(content: string, name: string): boolean {
  const tag = `<${name}`;
  for (let at = content.indexOf(tag); at !== -1; at = content.indexOf(tag, at + 1)) {
    let after = at + tag.length;
    while (isBlank(content.charAt(after))) after++;
    if (content.startsWith('/>', after)) return true;
  }
  return false;
}

/** Where tags of this name open, self-closing ones and ones with attributes included. */
export function tagPlaces(content: string, name: string): readonly number[] {
  const tag = `<${name}`;
  const places: number[] = [];
  for (let at = content.indexOf(tag); at !== -1; at = content.indexOf(tag, at + 1)) {
    const after = at + tag.length;
    const char = content.charAt(after);
    if (char === '>' || isBlank(char) || content.startsWith('/>', after)) places.push(at);
  }
  return places;
}

/**
 * Names of the tags outside all others, each once, in order. Whatever stands between `<` and `>` is a tag, so a shell redirection counts; that is
 * part of how these replies are judged.
 */
export function topLevelTags(content: string): ReadonlySet<string> {
  const names = new Set<string>();
  let depth = 0;
  for (let at = content.indexOf('<'); at !== -1; at = content.indexOf('<', at)) {
    const end = content.indexOf('>', at);
    if (end === -1) break;
    const tag = content.slice(at + 1, end);
    at = end + 1;
    if (tag.startsWith('!') || tag.startsWith('?')) continue;
    if (tag.startsWith('/')) {
      depth--;
      continue;
    }
    if (depth === 0) names.add(tagName(tag));
    if (!tag.endsWith('/')) depth++;
  }
  return names;
}

/** Up to the first blank, where there is a space at all. */
function tagName(tag: string): string {
  let name = tag;
  if (tag.includes(' ')) {
    const text = strip(tag);
    let end = 0;
    while (end < text.length && !isBlank(text.charAt(end))) end++;
    name = text.slice(0, end);
  }
  return name.endsWith('/') ? name.slice(0, -1) : name;
}
