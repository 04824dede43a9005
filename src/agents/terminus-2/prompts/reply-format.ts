/** How each format is explained to a model; the parsers in `parsers/` read what these texts ask for. */
export type ReplyFormat = 'json' | 'xml';

export const replyShapes: Readonly<Record<ReplyFormat, string>> = {
  json: String.raw`Every reply is exactly one JSON object of this shape:

{
  "analysis": "What the terminal shows, what is done already and what is left to do.",
  "plan": "What you do next, and what you expect each command to show.",
  "commands": [
    {"keystrokes": "cd /srv/app\n", "duration": 0.1},
    {"keystrokes": "make test\n", "duration": 20.0}
  ],
  "task_complete": false
}

Fields of the object, in this order:
- "analysis" (text, required): how you read the present state of the terminal.
- "plan" (text, required): your next steps.
- "commands" (list, required): what is typed, in order. An empty list types nothing.
- "task_complete" (true or false, optional): true once the whole task is solved. Without it, the task goes on.

Fields of a command:
- "keystrokes" (text, required): what is typed.
- "duration" (number, optional): how many seconds to wait after typing before the next command or the next look at the screen; 1.0 when absent.`,
  xml: `Every reply is exactly one <response> of this shape:

<response>
<analysis>
What the terminal shows, what is done already and what is left to do.
</analysis>
<plan>
What you do next, and what you expect each command to show.
</plan>
<commands>
<keystrokes duration="0.1">cd /srv/app
</keystrokes>
<keystrokes duration="20.0">make test
</keystrokes>
</commands>
<task_complete>false</task_complete>
</response>

Sections, in this order:
- <analysis> (required): how you read the present state of the terminal.
- <plan> (required): your next steps.
- <commands> (required): one <keystrokes> for each thing that is typed, in order. Empty, it types nothing.
- <task_complete> (optional): the word true inside it once the whole task is solved. Absent, empty or self-closing, it means false.

The attribute of <keystrokes>:
- duration (a number in double quotes): how many seconds to wait after typing before the next command or the next look at the screen; 1.0 when absent.`,
};

const newlineForms: Readonly<Record<ReplyFormat, string>> = {
  json: String.raw`a newline (\n)`,
  xml: 'a line break before </keystrokes>',
};

const emptyWaits: Readonly<Record<ReplyFormat, string>> = {
  json: '{"keystrokes": "", "duration": 10.0}',
  xml: '<keystrokes duration="10.0"></keystrokes>',
};

const formatNotes: Readonly<Record<ReplyFormat, string>> = {
  json: String.raw`- The object must be valid JSON: inside texts write \" for a quote, \\ for a backslash and \n for a line break.
- Write nothing before or after the object: it is ignored, and you get a warning.`,
  xml: `- Never write entities: &lt; and &amp; would be typed as these very characters. Write <, >, & and quotes as they are.
- Spaces and line breaks inside <keystrokes> are typed as well.
- Write nothing before or after the response: it is ignored, and you get a warning. Write one <response> with one <commands>: only the first of each counts.`,
};

export function typingRules(format: ReplyFormat): string {
  return `How keystrokes are typed:
- They reach the terminal exactly as you write them. A shell command runs only when its keystrokes end with ${newlineForms[format]}.
- Special keys go alone in their command, by their tmux names: C-c interrupts a program, C-d ends its input.

How long to wait:
- 0.1 seconds are enough for what answers at once (cd, ls, cat, echo), 1.0 for an ordinary command (find, a small build). Give slow work (long builds, downloads, long scripts) what it needs, never more than 60.0.
- Rather wait too briefly than too long: ${emptyWaits[format]} types nothing and waits on, as often as it takes.

Take care:
${formatNotes[format]}`;
}
