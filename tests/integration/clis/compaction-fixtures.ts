/**
 * The calls of a compacted trial as a fixture: what was asked, without the vendors' texts. Such a text is a list in which a number stands for that many letters of
 * it; what is left are our own words, and those by which a call is known.
 */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { listOf, recordOf, textOf } from '../../../src/engines/shared/json.ts';
import type { ReadCall } from '../../../src/gateway/capture/read-calls.ts';
import type { CallMessage, ForestCall, SampledWords } from '../../../src/sessions/forest-call.ts';

type Veiled = string | readonly (number | string)[];

interface FixtureMessage {
  readonly role: string;
  readonly content: Veiled;
  readonly arguments: readonly string[];
}

export interface FixtureCall {
  readonly call: number;
  readonly client: string | null;
  readonly repeats: number | null;
  readonly messages: readonly FixtureMessage[];
  readonly answer: SampledWords;
  readonly time: ForestCall['time'];
}

const shortText = 60;
const ownWords =
  /(```script\n[\s\S]*?\n```|The numbers are counted, .*|create a detailed summary of|CONTEXT CHECKPOINT COMPACTION)/;

const fileOf = (agent: string): string =>
  path.resolve(import.meta.dirname, `../../golden/agents/compaction/${agent}.json`);

export async function saveCompaction(agent: string, calls: readonly ReadCall[]): Promise<void> {
  await writeFile(fileOf(agent), `${JSON.stringify(calls.map(fixtureOf), null, 1)}\n`);
}

/** In the order in which they ended. */
export function readCompaction(agent: string): readonly FixtureCall[] {
  return JSON.parse(readFileSync(fileOf(agent), 'utf8')) as readonly FixtureCall[];
}

/** As a gateway and a forest read it. */
export function messageOf({ role, content, arguments: given }: FixtureMessage): CallMessage {
  const parts = typeof content === 'string' ? [content] : content;
  return {
    role,
    content: parts.map((part) => (typeof part === 'number' ? 'x'.repeat(part) : part)).join(''),
    ...(given.length > 0 && {
      tool_calls: given.map((text) => ({ function: { arguments: text } })),
    }),
  };
}

function fixtureOf({ call, client, repeats, request, answer, facts }: ReadCall): FixtureCall {
  const messages = (listOf(recordOf(JSON.parse(request))?.['messages']) ?? []).map(recordOf);
  const argumentsIn = (calls: unknown): readonly string[] =>
    (listOf(calls) ?? []).map((one) => {
      const { arguments: given } = recordOf(recordOf(one)?.['function']) ?? recordOf(one) ?? {};
      return textOf(given) ?? '';
    });
  const endedMs = Date.parse(answer?.timestamp ?? '');
  return {
    ...{ call, client, repeats },
    messages: messages.map((message) => ({
      role: textOf(message?.['role']) ?? '',
      content: veiled(textIn(message?.['content'])),
      arguments: argumentsIn(message?.['tool_calls']),
    })),
    answer: {
      text: textOf(answer?.message) ?? '',
      toolArguments: argumentsIn(facts['sampled_tool_calls']),
    },
    time: { sentMs: endedMs - Number(facts['duration_ms']), endedMs },
  };
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  return (listOf(content) ?? []).map((part) => textOf(recordOf(part)?.['text']) ?? '').join('\n');
}

function veiled(text: string): Veiled {
  if (text.length <= shortText) return text;
  return text.split(ownWords).flatMap((part, at) => {
    if (part === '') return [];
    return [at % 2 === 1 ? part : part.length];
  });
}
