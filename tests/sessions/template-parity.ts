/** Which families are compared with Python, and how one comparison goes: for the proof at full size, and for the goldens. */
import type { ChatMessage } from '../../src/engines/chat-message.ts';
import { checkpointDir, fixedTemplate, type ReferenceJob } from '../support/template-reference.ts';
import { readCheckpoint, type Checkpoint } from '../../src/sessions/families/checkpoint.ts';
import { openFamily, type FamilyCodec } from '../../src/sessions/families/family-codec.ts';
import type { TextRenderer } from '../../src/sessions/families/family.ts';
import { jinjaRenderer } from '../../src/sessions/families/jinja-renderer.ts';
import { families } from '../../src/sessions/families/registry.ts';
import {
  randomConversation,
  type RandomConversation,
} from '../../src/sessions/verify/random-conversation.ts';

export interface ParityRow {
  readonly family: string;
  readonly checkpoint: string;
  /** What renders in Python: Miles' template of this family, the checkpoint's own as it is, or the encoder. */
  readonly against: 'miles' | 'own' | 'encoder' | 'encoder-dropping';
  /** A template of Miles' package. */
  readonly fixed?: string;
  /** Our side uses that template too, since the checkpoint's own cannot be had. */
  readonly isShared?: boolean;
  /** The vocabulary cannot be had: only text is compared. */
  readonly isTextOnly?: boolean;
}

const next = 'qwen3_thinking_2507_and_next_fixed.jinja';
export const parityRows: readonly ParityRow[] = [
  { family: 'qwen3', checkpoint: 'qwen3', against: 'miles', fixed: 'qwen3_fixed.jinja' },
  { family: 'qwen3', checkpoint: 'qwen3', against: 'own' },
  { family: 'qwen35', checkpoint: 'qwen35', against: 'miles', fixed: 'qwen3.5_fixed.jinja' },
  { family: 'qwen35', checkpoint: 'qwen35', against: 'own' },
  { family: 'qwennext', checkpoint: 'qwen3', against: 'miles', fixed: next, isShared: true },
  { family: 'glm47', checkpoint: 'glm47', against: 'miles' },
  { family: 'glm47', checkpoint: 'glm47', against: 'own' },
  {
    ...{ family: 'minimax_m27', checkpoint: 'minimax', against: 'miles' },
    fixed: 'minimax_m27_fixed.jinja',
  },
  { family: 'minimax_m27', checkpoint: 'minimax', against: 'own' },
  {
    ...{ family: 'minimax_m25', checkpoint: 'minimax', against: 'miles', isShared: true },
    fixed: 'minimax_m25_fixed.jinja',
  },
  {
    ...{ family: 'kimi25', checkpoint: 'qwen3', against: 'miles', isShared: true },
    ...{ fixed: 'kimi_k25_fixed.jinja', isTextOnly: true },
  },
  { family: 'deepseekv32', checkpoint: 'deepseekv32', against: 'encoder' },
  { family: 'deepseekv32', checkpoint: 'deepseekv32', against: 'encoder-dropping' },
  { family: 'deepseekv4', checkpoint: 'deepseekv4', against: 'encoder' },
  { family: 'deepseekv4', checkpoint: 'deepseekv4', against: 'encoder-dropping' },
];

export interface Rendering {
  readonly job: ReferenceJob;
  readonly text: string | null;
  readonly ids: readonly number[] | null;
  readonly error: string | null;
}

/** Our renderings of random conversations, with the job that makes Python render the same. */
export async function renderings(
  row: ParityRow,
  options: { readonly seed: number; readonly count: number; readonly ownTemplate: string },
): Promise<readonly Rendering[]> {
  const opened = await open(row, options.ownTemplate);
  return Array.from({ length: options.count }, (_, index) => {
    const conversation = conversationFor(row, options.seed, index);
    const opensTurn = index % 3 !== 0;
    const job: ReferenceJob = {
      messages: conversation.messages,
      tools: conversation.toolsText,
      variables: { ...conversation.templateVariables, ...opened.variables },
      opensTurn,
      template: opened.template,
      encoder: row.against.startsWith('encoder') ? (row.family as ReferenceJob['encoder']) : null,
      words: null,
      vocabulary: row.isTextOnly === true ? null : `${opened.checkpoint.dir}/tokenizer.json`,
    };
    try {
      const { text, ids } = render(
        opened,
        { ...conversation, templateVariables: job.variables },
        opensTurn,
      );
      return { job, text, ids: row.isTextOnly === true ? null : ids, error: null };
    } catch (error) {
      return { job, text: null, ids: null, error: String(error) };
    }
  });
}

interface Opened {
  readonly checkpoint: Checkpoint;
  readonly codec: FamilyCodec;
  /** What renders without the codec's fixed variables; null = the codec does. */
  readonly plain: TextRenderer | null;
  readonly template: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

const now = (): Date => new Date(0);

async function open(row: ParityRow, ownTemplate: string): Promise<Opened> {
  const family = families.find(({ name }) => name === row.family);
  if (family === undefined) throw new Error(`no family ${row.family}`);
  const fixed = row.fixed === undefined ? null : fixedTemplate(row.fixed);
  const checkpoint = await readCheckpoint({
    dir: checkpointDir(row.checkpoint),
    templateFile: row.isShared === true ? fixed : null,
  });
  const codec = await openFamily(family, checkpoint, now);
  const isEncoder = row.against.startsWith('encoder');
  const template = isEncoder ? null : (fixed ?? ownTemplate);
  if (row.against === 'own') {
    const plain = jinjaRenderer(checkpoint, now, { keepsReasoning: false });
    return { checkpoint, codec, plain, template, variables: {} };
  }
  if (row.against === 'encoder-dropping') {
    const plain = await family.openRenderer(checkpoint, now);
    return { checkpoint, codec, plain, template, variables: { drop_thinking: true } };
  }
  return { checkpoint, codec, plain: null, template, variables: family.fixedVariables };
}

function render(
  { plain, codec }: Opened,
  conversation: RandomConversation,
  opensTurn: boolean,
): { readonly text: string; readonly ids: readonly number[] } {
  if (plain === null) {
    const { text, ids } = codec.render(conversation, { opensTurn });
    return { text, ids: [...ids] };
  }
  const text = plain(conversation, { opensTurn });
  return { text, ids: [...codec.encode(text)] };
}

/** The encoder of V3.2 cannot keep thoughts before a user: there only results of tools may follow, as with Miles. It refuses turns without thoughts. */
function conversationFor(row: ParityRow, seed: number, index: number): RandomConversation {
  const roles = new Set(families.find(({ name }) => name === row.family)?.appendRoles);
  const made = randomConversation({ seed, index, roles, isHostile: index % 2 === 1 });
  if (row.family !== 'deepseekv32') return made;
  const isThinking = made.templateVariables['enable_thinking'] === true;
  const messages = made.messages.map((message) =>
    message.role === 'assistant' && isThinking
      ? { ...message, reasoning_content: thoughtsOf(message) }
      : message,
  );
  if (row.against !== 'encoder') return { ...made, messages };
  const firstAnswer = messages.findIndex(({ role }) => role === 'assistant');
  const end = messages.findIndex(
    ({ role }, at) => at > firstAnswer && (role === 'user' || role === 'system'),
  );
  return { ...made, messages: end < 0 ? messages : messages.slice(0, end) };
}

function thoughtsOf({ reasoning_content: thoughts }: ChatMessage): string {
  return typeof thoughts === 'string' && thoughts !== '' ? thoughts : 'So.';
}
