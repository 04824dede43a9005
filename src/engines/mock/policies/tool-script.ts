/**
 * Plays a model for agents that offer tools: the conversation brings a script, each turn of which is said or done with whatever the agent calls its shell and
 * its editor. A request without a script or without tools, such as for a title, gets a short text.
 *
 * The script is JSON between two lines, ```script and ```: a list with one entry per turn, `{"shell": COMMAND or a list of them}`, `{"write": FILE, "text":
 * TEXT}`, `{"say": TEXT}` or `{"words": N}`. `{"summary": TEXT, "asked": WORDS}` is no turn: it is said when the last message has these words, and may hold the script
 * to go on with, since the last script of a conversation is played. After its last entry the agent is told that it is done. A turn without a call ends the run; agents that want to be
 * told so by a call get that. aider, which offers no tools, is told of files in its own format: those of `write`, or `{"files": {FILE: TEXT}}` for a turn in which others
 * get a command.
 */
import type { Policy, PolicyReply, PolicyToolCall } from '../policy.ts';

interface Turn {
  readonly shell?: string | readonly string[];
  readonly write?: string;
  readonly text?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly say?: string;
  readonly summary?: string;
  readonly asked?: string;
  readonly words?: number;
  readonly reasoning?: string;
}

type Arguments = Readonly<Record<string, unknown>>;

const scriptPattern = /```script\n([\s\S]*?)\n```/g;

/** What agents call their shell. */
const shells: Readonly<Record<string, (command: string) => Arguments>> = {
  exec_command: (cmd) => ({ cmd }),
  Bash: (command) => ({ command, description: 'as the script says' }),
  bash: (command) => ({ command, description: 'as the script says' }),
  run_shell_command: (command) => ({ command, is_background: false }),
  execute_bash: (command) => ({ command }),
};

const editors: Readonly<Record<string, (file: string, content: string) => Arguments>> = {
  Write: (file, content) => ({ file_path: file, content }),
  write: (file, content) => ({ filePath: file, content }),
  write_file: (file, content) => ({ file_path: file, content }),
  str_replace_editor: (file, content) => ({ command: 'create', path: file, file_text: content }),
};

export const toolScript: Policy = ({ messages, tools }): PolicyReply => {
  const at = messages.findLastIndex(
    ({ role, content }) => role !== 'assistant' && textOf(content).search(scriptPattern) >= 0,
  );
  const script = at < 0 ? null : scriptIn(textOf(messages[at]?.content));
  const names = tools.map(nameOf);
  const edits = names.length === 0 && isAider(messages);
  // Some agents begin with turns that nobody sampled, and aider has them in between.
  const turn = messages
    .slice(at + 1)
    .filter(
      ({ role, content }) => role === 'assistant' && !(edits && /^Ok\b/.test(textOf(content))),
    ).length;
  const asked = at === messages.length - 1 ? '' : textOf(messages.at(-1)?.content);
  const summary = script?.find((entry) => asked.includes(entry.asked ?? '\0'))?.summary;
  if (summary !== undefined) return { content: summary };
  const next = script?.filter((entry) => entry.summary === undefined)[turn];
  if (script === null || next === undefined || (names.length === 0 && !edits))
    return { content: script === null ? 'nothing to do' : 'done' };
  const { say = '', words = 0, reasoning } = next;
  const told = edits ? `${say}${listingsOf(next)}` : say;
  const content = words > 0 ? Array.from({ length: words }, (_, n) => `word${n}`).join(' ') : told;
  const calls = edits ? [] : callsOf(next, names);
  const toolCalls = calls.length > 0 ? calls : endOf(messages, names);
  return {
    content,
    ...(reasoning !== undefined && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  };
};

function callsOf({ shell = [], write, text = '' }: Turn, names: readonly string[]) {
  const calls: PolicyToolCall[] = [];
  const shellName = names.find((name) => Object.hasOwn(shells, name)) ?? '';
  const run = (command: string): void => {
    const make = shells[shellName];
    if (make === undefined) throw new Error(`none of the tools is a shell: ${names.join(', ')}`);
    calls.push({ name: shellName, arguments: make(command) });
  };
  for (const command of typeof shell === 'string' ? [shell] : shell) run(command);
  if (write === undefined) return calls;
  const editor = names.find((name) => Object.hasOwn(editors, name)) ?? '';
  const make = editors[editor];
  if (make !== undefined) calls.push({ name: editor, arguments: make(write, text) });
  // Codex edits by a program of its own in its shell; some agents have nothing but the shell.
  else if (shellName === 'exec_command') run(`apply_patch <<'END'\n${patchOf(write, text)}\nEND`);
  else run(`cat > '${write}' <<'END'\n${text.replace(/\n$/, '')}\nEND`);
  return calls;
}

type Messages = readonly { readonly role: string; readonly content: unknown }[];

/** By the name of the format, which its first message asks for. */
function isAider(messages: Messages): boolean {
  return messages.some(({ role, content }) => {
    return role === 'system' && textOf(content).includes('*file listing*');
  });
}

function listingsOf({ files = {}, write, text = '' }: Turn): string {
  const all = write === undefined ? files : { ...files, [write]: text };
  return Object.entries(all)
    .map(([file, content]) => `${file}\n\`\`\`\n${content}\`\`\`\n`)
    .join('\n');
}

/** What mini-swe-agent takes for the end, which it asks for in its first messages. */
const endOfMini = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

function endOf(
  messages: readonly { readonly content: unknown }[],
  names: readonly string[],
): readonly PolicyToolCall[] {
  if (!messages.slice(0, 2).some(({ content }) => textOf(content).includes(endOfMini))) return [];
  return callsOf({ shell: endOfMini }, names);
}

function patchOf(file: string, text: string): string {
  const lines = text.replace(/\n$/, '').split('\n');
  return [
    '*** Begin Patch',
    `*** Add File: ${file}`,
    ...lines.map((line) => `+${line}`),
    '*** End Patch',
  ].join('\n');
}

function scriptIn(text: string): readonly Turn[] {
  const found = Array.from(text.matchAll(scriptPattern), ([, script = '']) => script);
  return JSON.parse(found.at(-1) ?? '[]') as readonly Turn[];
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { readonly text?: string }) => part.text ?? '').join('');
}

function nameOf(tool: unknown): string {
  return (tool as { readonly function?: { readonly name?: string } }).function?.name ?? '';
}
