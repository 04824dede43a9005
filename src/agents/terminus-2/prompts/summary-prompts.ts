/** What is asked and said when a conversation is replaced by a summary of it. */

/** Messages of the trajectory where the conversation was replaced. */
export const compactionNote =
  'The context was nearly full: the work so far was summed up, and the conversation goes on from the summary.';
export const overflowNote =
  'The conversation no longer fitted the context: it was shortened, and goes on from what is known of the work so far.';
export const failedSummaryNote =
  'The context was nearly full, but summing up the work so far failed: the conversation goes on as it is.';

/** Put to the whole conversation. */
export function summaryRequest({ instruction }: { readonly instruction: string }): string {
  return `Your place is about to be taken by another agent, who will see nothing of this conversation. Write the report that it needs to go on with the task.

The task:
${instruction}

Say in the report:
1. what was done, step by step, with the commands that mattered and what they showed;
2. what was found out: files and folders with their paths, settings, versions, names, numbers, error messages word for word;
3. what the machine is like now: what was made, changed or removed, what is running;
4. what did not work, and why;
5. how far the task is, and what is left to do.

Leave out nothing that would have to be found out again.`;
}

/** Put to an empty conversation. */
export function questionsRequest(parts: {
  readonly instruction: string;
  readonly summary: string;
  readonly screen: string;
}): string {
  return `You take over a task from another agent.

The task:
${parts.instruction}

Its report:
${parts.summary}

The terminal now:
${parts.screen}

Before you go on, you may ask that agent what the report leaves open. Ask at least five questions, numbered, about what you need to know to finish the task. Ask only; do not begin to work.`;
}

/** Put to the whole conversation with the report. */
export function answersRequest({ questions }: { readonly questions: string }): string {
  return `The agent that takes over has read your report and asks:

${questions}

Answer each question in full, from what you have seen. Where you do not know, say so.`;
}

/** The next prompt, after the task and the questions. */
export function handoffPrompt({ answers }: { readonly answers: string }): string {
  return `The agent before you answers:

${answers}

Nobody is left to ask. Go on with the task from here, in the form of response that you were given at the start.`;
}

/** Put to an empty conversation when there is no room for the long way. */
export function shortSummaryRequest(parts: {
  readonly instruction: string;
  readonly screen: string;
}): string {
  return `Work on a task is cut off in the middle, and another agent goes on with it.

The task:
${parts.instruction}

The end of the terminal:
${parts.screen}

Say in two or three sentences where the work stands and what comes next.`;
}

export function shortSummaryHandoff(parts: {
  readonly instruction: string;
  readonly summary: string;
}): string {
  return `The task:
${parts.instruction}

Where the work stands:
${parts.summary}

Go on with the task from here.`;
}

/** When no summary could be had. */
export function screenHandoff(parts: {
  readonly instruction: string;
  readonly screen: string;
}): string {
  return `The task:
${parts.instruction}

Work on it has begun. The end of the terminal:
${parts.screen}

Go on with the task from here.`;
}
