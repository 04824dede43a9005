/**
 * Splits the text of a reply into reasoning, content and tool calls as it grows: what the parsers of real engines do. Reasoning stands between
 * think tags at the very beginning; a tool call is a JSON object between tool_call tags. Nothing is trimmed, so that a reply can be put together
 * again, but white space behind a tool call that nothing follows. A tool call that is not JSON, or that is cut off, stays content.
 */
export type ReplyPart =
  | { readonly type: 'reasoning' | 'content'; readonly text: string }
  | { readonly type: 'tool'; readonly name: string; readonly arguments: string };

export interface SplitterOptions {
  readonly splitsReasoning: boolean;
  readonly splitsTools: boolean;
}

const openThink = '<think>';
const closeThink = '</think>';
const openTool = '<tool_call>';
const closeTool = '</tool_call>';

export class ReplySplitter {
  readonly #splitsTools: boolean;
  #mode: 'start' | 'reasoning' | 'content' | 'tool' | 'after-tool';
  #held = '';

  constructor(options: SplitterOptions) {
    this.#splitsTools = options.splitsTools;
    this.#mode = options.splitsReasoning ? 'start' : 'content';
  }

  push(text: string): readonly ReplyPart[] {
    this.#held += text;
    return this.#parts(false);
  }

  end(): readonly ReplyPart[] {
    return this.#parts(true);
  }

  #parts(isLast: boolean): readonly ReplyPart[] {
    const parts: ReplyPart[] = [];
    while (this.#step(parts, isLast));
    return parts;
  }

  /** One step; false when more text is needed, or none is left. */
  #step(parts: ReplyPart[], isLast: boolean): boolean {
    switch (this.#mode) {
      case 'start':
        return this.#start(isLast);
      case 'reasoning':
        return this.#until(parts, { tag: closeThink, type: 'reasoning', isLast });
      case 'content':
        return this.#content(parts, isLast);
      case 'tool':
        return this.#tool(parts, isLast);
      case 'after-tool':
        return this.#skipSpace(isLast);
    }
  }

  #start(isLast: boolean): boolean {
    if (this.#held.startsWith(openThink)) {
      this.#held = this.#held.slice(openThink.length);
      this.#mode = 'reasoning';
      return true;
    }
    if (!isLast && openThink.startsWith(this.#held)) return false;
    this.#mode = 'content';
    return true;
  }

  #content(parts: ReplyPart[], isLast: boolean): boolean {
    if (this.#splitsTools) return this.#until(parts, { tag: openTool, type: 'content', isLast });
    this.#emit(parts, 'content', this.#held);
    this.#held = '';
    return false;
  }

  /** Gives out text up to the tag. */
  #until(
    parts: ReplyPart[],
    at: { readonly tag: string; readonly type: 'reasoning' | 'content'; readonly isLast: boolean },
  ): boolean {
    const { tag, type, isLast } = at;
    const found = this.#held.indexOf(tag);
    if (found === -1) {
      const safe = isLast ? this.#held.length : safeLength(this.#held, tag);
      this.#emit(parts, type, this.#held.slice(0, safe));
      this.#held = this.#held.slice(safe);
      return false;
    }
    this.#emit(parts, type, this.#held.slice(0, found));
    this.#held = this.#held.slice(found + tag.length);
    this.#mode = type === 'reasoning' ? 'content' : 'tool';
    return true;
  }

  #skipSpace(isLast: boolean): boolean {
    const rest = this.#held.trimStart();
    if (!isLast && openTool.startsWith(rest)) return false;
    if (rest === '' || rest.startsWith(openTool)) this.#held = rest;
    this.#mode = 'content';
    return true;
  }

  #tool(parts: ReplyPart[], isLast: boolean): boolean {
    const found = this.#held.indexOf(closeTool);
    if (found === -1 && !isLast) return false;
    const source = found === -1 ? this.#held : this.#held.slice(0, found);
    const call = found === -1 ? null : parseCall(source);
    this.#held = found === -1 ? '' : this.#held.slice(found + closeTool.length);
    this.#mode = call === null ? 'content' : 'after-tool';
    if (call !== null) parts.push({ type: 'tool', ...call });
    else this.#emit(parts, 'content', `${openTool}${source}${found === -1 ? '' : closeTool}`);
    return true;
  }

  #emit(parts: ReplyPart[], type: 'reasoning' | 'content', text: string): void {
    if (text !== '') parts.push({ type, text });
  }
}

/** Everything but what may become the tag. */
function safeLength(text: string, tag: string): number {
  for (let held = Math.min(text.length, tag.length - 1); held > 0; held -= 1)
    if (tag.startsWith(text.slice(text.length - held))) return text.length - held;
  return text.length;
}

/** The arguments stay the text that was sampled. */
function parseCall(source: string): { readonly name: string; readonly arguments: string } | null {
  try {
    const call = JSON.parse(source) as { readonly name?: unknown; readonly arguments?: unknown };
    if (typeof call.name !== 'string') return null;
    const sampled =
      /^\s*\{\s*"name"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"arguments"\s*:\s*([\s\S]*)\}\s*$/.exec(
        source,
      )?.[1];
    return {
      name: call.name,
      arguments: sampled?.trimEnd() ?? JSON.stringify(call.arguments ?? {}),
    };
  } catch {
    return null;
  }
}
