import { replyShapes, typingRules, type ReplyFormat } from './reply-format.ts';

export interface PromptParts {
  readonly instruction: string;
  readonly terminalState: string;
  /** When the agent is stopped; null = no limit. */
  readonly deadline: Date | null;
  readonly now: Date;
}

/** The first prompt of a run. Texts of the task and the terminal are put in as they are. */
export function renderPrompt(format: ReplyFormat, parts: PromptParts): string {
  const sections = [
    'You solve a task on the command line of a Linux machine. You see its terminal, you answer with a batch of shell commands to type, and you see what came of them; this goes on until you say that the task is solved.',
    replyShapes[format],
    typingRules(format),
    ...(parts.deadline === null ? [] : [timeLimit(parts.deadline, parts.now)]),
    `The task:\n${parts.instruction}`,
    parts.terminalState, // with a heading of its own
  ];
  return sections.join('\n\n');
}

function timeLimit(deadline: Date, now: Date): string {
  const seconds = Math.max(0, Math.floor((deadline.getTime() - now.getTime()) / 1000));
  return `Time limit: you are stopped in ${seconds} seconds, at ${deadline.toISOString()} (UTC). What is not done by then is not done; the work is graded as it stands.`;
}
