/** The goldens of chat templates: conversations of ours, with what the Python packages rendered of them. `GOLDEN=write npm run prove -- templates` writes them. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { families } from '../../src/sessions/families/registry.ts';
import { randomConversation } from '../../src/sessions/verify/random-conversation.ts';
import {
  checkpointDir,
  fixedTemplate,
  renderInPython,
  type ReferenceJob,
} from '../support/template-reference.ts';
import { jinjaCases } from './jinja-cases.ts';

const dir = path.join(import.meta.dirname, '../golden/templates');

/** Stand-ins for what an encoder says of tools, so that its own words are nowhere in this project. */
export const toolWords =
  'Tools, {dsml_token}:\n{tool_schemas}\n{thinking_start_token}{thinking_end_token}\n';

export interface GoldenRow {
  readonly messages: ReferenceJob['messages'];
  readonly tools: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly opensTurn: boolean;
  /** Null where only its digest is kept: it holds words of a vendor's template. */
  readonly text: string | null;
  readonly textDigest: string | null;
  readonly idsDigest: string | null;
  readonly idCount: number | null;
  readonly error: string | null;
}

export interface Golden {
  readonly made: string;
  readonly rows: readonly GoldenRow[];
}

const made =
  'GOLDEN=write npm run prove -- templates: rendered by miles-tito-tokenizers 0.1.1 over transformers 5.24.0, Jinja2 3.1.6 and tokenizers 0.23.3';

export const digestOf = (value: string | readonly number[]): string =>
  createHash('sha256')
    .update(typeof value === 'string' ? value : value.join(' '))
    .digest('hex');

export async function readGolden(name: string): Promise<Golden> {
  return JSON.parse(await readFile(path.join(dir, `${name}.json`), 'utf8')) as Golden;
}

export async function writeGoldens(): Promise<void> {
  await writeGolden('qwen3', conversationJobs('qwen3', 24), { keepsText: false });
  for (const encoder of ['deepseekv32', 'deepseekv4'] as const)
    await writeGolden(encoder, conversationJobs(encoder, 16), { keepsText: true });
  const scratch = await mkdtemp(path.join(os.tmpdir(), 'slipway-jinja-'));
  try {
    const jobs = jinjaCases.map(async ({ template, variables }, index) => {
      const file = path.join(scratch, `${index}.jinja`);
      await writeFile(file, template);
      return {
        ...plainJob,
        template: file,
        variables: variables as unknown as ReferenceJob['variables'],
      };
    });
    await writeGolden('jinja', await Promise.all(jobs), { keepsText: true });
  } finally {
    await rm(scratch, { recursive: true });
  }
}

const plainJob: ReferenceJob = {
  ...{ messages: [], tools: '[]', variables: {}, opensTurn: false },
  ...{ template: null, encoder: null, words: null, vocabulary: null },
};

function conversationJobs(name: string, count: number): readonly ReferenceJob[] {
  const family = families.find((one) => one.name === name);
  const isEncoder = name.startsWith('deepseek');
  // The encoder of V3.2 can only keep thoughts before results of tools.
  const drops = name === 'deepseekv32';
  return Array.from({ length: count }, (_, index) => {
    const roles = new Set(family?.appendRoles);
    const made = randomConversation({ seed: 11, index, roles, isHostile: index % 2 === 1 });
    const messages = made.messages.map((message) =>
      drops && message.role === 'assistant'
        ? { ...message, reasoning_content: message.reasoning_content ?? 'So.' }
        : message,
    );
    const fixed = drops ? { drop_thinking: true } : family?.fixedVariables;
    return {
      ...plainJob,
      messages,
      tools: made.toolsText,
      variables: { ...made.templateVariables, ...fixed },
      opensTurn: index % 3 !== 0,
      template: isEncoder ? null : fixedTemplate(`${name}_fixed.jinja`),
      encoder: isEncoder ? (name as ReferenceJob['encoder']) : null,
      words: isEncoder ? toolWords : null,
      vocabulary: isEncoder ? null : path.join(checkpointDir(name), 'tokenizer.json'),
    };
  });
}

async function writeGolden(
  name: string,
  jobs: readonly ReferenceJob[],
  { keepsText }: { readonly keepsText: boolean },
): Promise<void> {
  const answers = await renderInPython(jobs);
  const rows = jobs.map((job, index): GoldenRow => {
    const { text = null, ids = null, error = null } = answers[index] ?? {};
    const { messages, tools, variables, opensTurn } = job;
    return {
      ...{ messages, tools, variables, opensTurn, text: keepsText ? text : null },
      textDigest: text === null ? null : digestOf(text),
      idsDigest: ids === null ? null : digestOf(ids),
      ...{ idCount: ids?.length ?? null, error },
    };
  });
  const lines = rows.map((row) => JSON.stringify(row)).join(',\n');
  await writeFile(
    path.join(dir, `${name}.json`),
    `{"made": ${JSON.stringify(made)}, "rows": [\n${lines}\n]}\n`,
  );
}
