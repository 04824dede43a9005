/**
 * What aider keeps of its calls of the model, as steps. One file has each prompt and each answer, a line of text behind the name of who says it; an answer that
 * is empty is that of a call that failed. Another has the events that it would send to its makers, and in them the tokens of each answer. Of a prompt, what
 * is new is the last message of the user: the instruction, or what was wrong with the answer before.
 */
import path from 'node:path';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { CliRecord } from '../installed/cli.ts';
import { asCount, asObject, asText, jsonLines, textLines } from '../installed/log-lines.ts';

export const modelLogName = 'aider.llm.history';
export const eventsName = 'aider.events.jsonl';

interface Message {
  readonly role: string;
  readonly lines: string[];
}

interface Call {
  readonly system: string;
  readonly asked: string;
  /** null = none came, or an empty one. */
  readonly answer: string | null;
}

interface Usage {
  readonly prompt: number;
  readonly completion: number;
}

export async function readAiderLog(dir: string): Promise<CliRecord | null> {
  const calls: Call[] = [];
  for await (const call of callsIn(path.join(dir, modelLogName))) calls.push(call);
  if (calls.length === 0) return null;
  const usages: Usage[] = [];
  let version: string | null = null;
  let editFormat: string | null = null;
  for await (const { event, properties } of jsonLines(path.join(dir, eventsName))) {
    const told = asObject(properties) ?? {};
    version ??= asText(told['aider_version']);
    if (event !== 'message_send') continue;
    editFormat = asText(told['edit_format']);
    usages.push({
      prompt: asCount(told['prompt_tokens']),
      completion: asCount(told['completion_tokens']),
    });
  }
  const sum = (of: (usage: Usage) => number): number =>
    usages.reduce((total, usage) => total + of(usage), 0);
  return {
    sessionId: 'aider',
    agent: { version, extra: { edit_format: editFormat } },
    steps: stepsOf(calls, usages),
    tokens: {
      prompt: sum(({ prompt }) => prompt),
      completion: sum(({ completion }) => completion),
      cached: 0,
    },
  };
}

function stepsOf(calls: readonly Call[], usages: readonly Usage[]): readonly NewStep[] {
  const steps: NewStep[] = [];
  const isTold = calls.filter(({ answer }) => answer !== null).length === usages.length;
  let asked: string | null = null;
  let answers = 0;
  for (const call of calls) {
    if (steps.length === 0 && call.system !== '')
      steps.push({ source: 'system', message: call.system });
    // The same where a call is made again.
    if (call.asked !== asked) steps.push({ source: 'user', message: call.asked });
    asked = call.asked;
    if (call.answer === null) continue;
    const usage = isTold ? usages[answers] : undefined;
    answers += 1;
    steps.push({
      source: 'agent',
      message: call.answer,
      ...(usage !== undefined && {
        metrics: { prompt_tokens: usage.prompt, completion_tokens: usage.completion },
      }),
      llm_call_count: 1,
    });
  }
  return steps;
}

const heading = /^(TO LLM|LLM RESPONSE) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/;
const between = '-------';

async function* callsIn(file: string): AsyncGenerator<Call> {
  let messages: Message[] = [];
  let answer: string[] | null = null;
  let isBegun = false;
  for await (const line of textLines(file)) {
    const head = heading.exec(line)?.[1];
    if (head === 'TO LLM') {
      if (isBegun) yield callOf(messages, answer);
      [messages, answer, isBegun] = [[], null, true];
    } else if (head === 'LLM RESPONSE') answer = [];
    else if (line === between) messages.push({ role: '', lines: [] });
    else {
      const [, role = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      if (role === '') continue;
      if (answer !== null) answer.push(text);
      else if (messages.at(-1)?.role === role) messages.at(-1)?.lines.push(text);
      else if (messages.at(-1)?.role === '') messages.splice(-1, 1, { role, lines: [text] });
    }
  }
  if (isBegun) yield callOf(messages, answer);
}

function callOf(messages: readonly Message[], answer: readonly string[] | null): Call {
  const textOf = (message: Message | undefined): string => message?.lines.join('\n') ?? '';
  return {
    system: textOf(messages.find(({ role }) => role === 'SYSTEM')),
    asked: textOf(messages.findLast(({ role }) => role === 'USER')),
    answer: answer === null || answer.length === 0 ? null : answer.join('\n'),
  };
}
