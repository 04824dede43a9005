/** Calls written in marks of their own, as each family's models are taught. */
import type { ToolDefinition } from '../../engines/chat-message.ts';
import { dumpJson } from '../templates/python-json.ts';
import type { CallFormat, ParsedCall } from './turn-format.ts';
import { isJson, objectOf, parameterTypes, typedJson } from './typed-arguments.ts';

/** `<tool_call><function=NAME><parameter=KEY>…`, each value on lines of its own. */
export const coderCalls: CallFormat = {
  open: '<tool_call>',
  close: '</tool_call>',
  gap: '\n\n',
  parse: (body, tools) => {
    const call = /^\s*<function=([^>\n]+)>([^]*?)<\/function>\s*$/.exec(body);
    if (call === null) return null;
    const [, name = '', inner = ''] = call;
    const parameters = /\s*<parameter=([^>\n]+)>\n?([^]*?)\n?<\/parameter>\s*/y;
    return typedCall({ name: name.trim(), inner, parameters, tools });
  },
};

/** `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…`. */
export const keyValueCalls: CallFormat = {
  open: '<tool_call>',
  close: '</tool_call>',
  gap: '',
  parse: (body, tools) => {
    const call = /^\s*([^<\s]+)\s*((?:<arg_key>[^]*)?)$/.exec(body);
    if (call === null) return null;
    const [, name = '', inner = ''] = call;
    const parameters = /\s*<arg_key>([^]*?)<\/arg_key>\s*<arg_value>([^]*?)<\/arg_value>\s*/y;
    return typedCall({ name, inner, parameters, tools });
  },
};

/** `<invoke name="NAME"><parameter name="KEY">…`, several in one block. */
export const invokeCalls: CallFormat = {
  open: '<minimax:tool_call>',
  close: '</minimax:tool_call>',
  gap: '\n',
  parse: (body, tools) =>
    every(body, /\s*<invoke name="([^"]+)">([^]*?)<\/invoke>\s*/y, (name, inner) => {
      const parameters = /\s*<parameter name="([^"]+)">([^]*?)<\/parameter>\s*/y;
      return typedCall({ name, inner, parameters, tools })?.[0] ?? null;
    }),
};

/** DeepSeek's own marks, in which each value says whether it is a text. `block`: the name of the block around the calls. */
export function dsmlCalls(block: string): CallFormat {
  const mark = '｜DSML｜';
  return {
    open: `<${mark}${block}>`,
    close: `</${mark}${block}>`,
    gap: '\n\n',
    parse: (body) =>
      every(
        body,
        new RegExp(`\\s*<${mark}invoke name="([^"]+)">([^]*?)</${mark}invoke>\\s*`, 'y'),
        (name, inner) => {
          const parameter = new RegExp(
            `\\s*<${mark}parameter name="([^"]*)" string="(true|false)">([^]*?)</${mark}parameter>\\s*`,
            'y',
          );
          const members: (readonly [string, string])[] = [];
          const isWhole = readAll(inner, parameter, ([, key = '', isText, value = '']) => {
            if (isText !== 'true' && !isJson(value)) return false;
            members.push([key, isText === 'true' ? dumpJson(value) : value]);
            return true;
          });
          return isWhole ? { name, arguments: objectOf(members) } : null;
        },
      ),
  };
}

/** A section of calls with ids that name the function, and JSON arguments. */
export const sectionCalls: CallFormat = {
  open: '<|tool_calls_section_begin|>',
  close: '<|tool_calls_section_end|>',
  gap: '',
  parse: (body) =>
    every(
      body,
      /\s*<\|tool_call_begin\|>([^]*?)<\|tool_call_argument_begin\|>([^]*?)<\|tool_call_end\|>\s*/y,
      (id, source) => {
        const name = /^(?:functions\.)?(.+?)(?::\d+)?$/.exec(id.trim())?.[1];
        const text = source.trim();
        if (name === undefined || !text.startsWith('{') || !isJson(text)) return null;
        return { name, arguments: text, id: id.trim() };
      },
    ),
};

function typedCall(call: {
  readonly name: string;
  readonly inner: string;
  readonly parameters: RegExp;
  readonly tools: readonly ToolDefinition[];
}): readonly ParsedCall[] | null {
  const types = parameterTypes(call.tools, call.name);
  const members: (readonly [string, string])[] = [];
  const isWhole = readAll(call.inner, call.parameters, ([, key = '', value = '']) => {
    members.push([key, typedJson(value, types?.get(key))]);
    return true;
  });
  return isWhole ? [{ name: call.name, arguments: objectOf(members) }] : null;
}

/** Whether the whole text is made of matches that `take` accepts. */
function readAll(
  text: string,
  pattern: RegExp,
  take: (match: RegExpExecArray) => boolean,
): boolean {
  let at = 0;
  while (at < text.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null || match[0] === '') return text.slice(at).trim() === '';
    if (!take(match)) return false;
    at += match[0].length;
  }
  return true;
}

function every(
  body: string,
  pattern: RegExp,
  read: (name: string, inner: string) => ParsedCall | null,
): readonly ParsedCall[] | null {
  const calls: ParsedCall[] = [];
  const isWhole = readAll(body, pattern, ([, name = '', inner = '']) => {
    const call = read(name, inner);
    if (call !== null) calls.push(call);
    return call !== null;
  });
  return isWhole && calls.length > 0 ? calls : null;
}
