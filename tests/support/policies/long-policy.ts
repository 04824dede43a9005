/**
 * A policy for the mock engine: floods the terminal until its conversation is summed up, sums up, asks and answers when told to, and solves the
 * task after that. Its answers to the side calls are told apart by the prompts that terminus-2 makes.
 */
import {
  answersRequest,
  questionsRequest,
  summaryRequest,
} from '../../../src/agents/terminus-2/prompts/summary-prompts.ts';

interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

const begins = (prompt: string): string => prompt.slice(0, 40);
const summary = begins(summaryRequest({ instruction: '' }));
const questions = begins(questionsRequest({ instruction: '', summary: '', screen: '' }));
const answers = begins(answersRequest({ questions: '' }));

export default function longPolicy({ messages }: Request): { readonly content: string } {
  const texts = messages.map(({ content }) => String(content));
  const last = texts.at(-1) ?? '';
  if (last.startsWith(summary)) return { content: 'The terminal was flooded 🌊.' };
  if (last.startsWith(questions)) return { content: '1. With what?\n2. Why?\r\n3. 4. 5. …' };
  if (last.startsWith(answers)) return { content: 'With numbers, to fill the context.' };
  const handedOver = texts.findIndex((text) => text.startsWith(questions));
  if (handedOver < 0) return typing('seq 1 4000\n');
  const turnsSince = messages.slice(handedOver + 2).filter(({ role }) => role === 'assistant');
  return turnsSince.length === 0 ? typing('mkdir -p /app; echo yes > /app/answer\n') : complete;
}

function typing(keystrokes: string): { readonly content: string } {
  const commands = [{ keystrokes, duration: 0.3 }];
  return { content: JSON.stringify({ analysis: 'on it', plan: 'one command', commands }) };
}

const complete = {
  content: JSON.stringify({ analysis: 'done', plan: 'stop', commands: [], task_complete: true }),
};
