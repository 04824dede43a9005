/** What the loop answers to a reply. The headings that begin with "Previous response had" are the ones that models are trained on. */
import { limitOutput } from '../observation/limit-output.ts';
import type { ParsedReply } from '../parsers/parsed-reply.ts';
import type { ReplyFormat } from './reply-format.ts';

const replyNames: Readonly<Record<ReplyFormat, string>> = {
  json: 'JSON response',
  xml: 'response',
};
const completions: Readonly<Record<ReplyFormat, string>> = {
  json: '"task_complete": true in your JSON response',
  xml: '<task_complete>true</task_complete> in your response',
};

/** For the warnings of a turn: its reply was cut off, and what came before the cut was used. */
export const salvageWarning =
  'Your response went over the output limit and was cut off; only its complete part was used';

/** Stands for the output when the terminal ended under the commands. */
export const terminalEnded = 'The terminal has ended; nothing more can be typed.';

export function parseErrorPrompt(
  format: ReplyFormat,
  { error, warnings }: Pick<ParsedReply, 'error' | 'warnings'>,
): string {
  const feedback = [`ERROR: ${error}`];
  if (warnings !== '') feedback.push(`WARNINGS: ${limitOutput(warnings)}`);
  return `Previous response had parsing errors:\n${feedback.join('\n')}\n\nNone of its commands were typed. Answer again with a proper ${replyNames[format]}.`;
}

export function warningsPrompt(parts: {
  readonly warnings: string;
  readonly output: string;
}): string {
  return `Previous response had warnings:\nWARNINGS: ${limitOutput(parts.warnings)}\n\n${parts.output}`;
}

/** Asked once; the task ends when the next reply says the same. */
export function completionQuestion(format: ReplyFormat, output: string): string {
  return `${output}\n\nIs the task really complete? Once you confirm, your work is graded as it stands and nothing can be changed any more. To confirm, write ${completions[format]} once more; otherwise go on working.`;
}

/** `maxTokens`: what the model may write in one reply; null = unknown. */
export function truncationPrompt(parts: {
  readonly maxTokens: number | null;
  readonly warnings: string;
}): string {
  const limit =
    parts.maxTokens === null ? 'the maximum output length' : `${parts.maxTokens} tokens`;
  const text = `Your last response was longer than ${limit} and was cut off. NONE of its actions were carried out. Give them again in smaller pieces: several short responses, each complete in itself; write a large file in parts.`;
  if (parts.warnings === '') return text;
  return `${text}\n\nWarnings about what arrived of it:\n${limitOutput(parts.warnings)}`;
}
