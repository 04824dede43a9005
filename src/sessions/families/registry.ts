/** The families that are known, and how a checkpoint of one becomes a codec. */
import { RolloutError } from '../../core/errors.ts';
import { jsonCalls } from '../parsers/json-calls.ts';
import {
  coderCalls,
  dsmlCalls,
  invokeCalls,
  keyValueCalls,
  sectionCalls,
} from '../parsers/marked-calls.ts';
import type { TurnFormat } from '../parsers/turn-format.ts';
import { readCheckpoint } from './checkpoint.ts';
import { deepseekV32, deepseekV4, withThinkingFlag } from './deepseek-renderer.ts';
import type { Boundary, Family } from './family.ts';
import { type FamilyCodec, openFamily } from './family-codec.ts';
import { jinjaRenderer, type JinjaRules } from './jinja-renderer.ts';

const think = { open: '<think>', close: '</think>' };
const allRoles = ['tool', 'user', 'system', 'assistant'] as const;
const withoutSystem = ['tool', 'user', 'assistant'] as const;

interface JinjaFamily
  extends
    Omit<Family, 'openRenderer' | 'engineVariables' | 'cuts'>,
    Partial<Pick<Family, 'cuts'>>,
    JinjaRules {}

const fromTemplate = ({ keepsReasoning, ...family }: JinjaFamily): Family => ({
  cuts: 'all',
  ...family,
  engineVariables: (variables) => variables,
  openRenderer: (checkpoint, now) =>
    Promise.resolve(jinjaRenderer(checkpoint, now, { keepsReasoning })),
});

const imEnd: Boundary = { kind: 'closed', end: '<|im_end|>', after: '\n' };
const qwen = {
  appendRoles: allRoles,
  fixedVariables: { clear_thinking: false },
  ends: ['<|im_end|>', '<|endoftext|>'],
  boundary: imEnd,
  format: { reasoning: think, calls: jsonCalls },
  assistantStart: '<|im_start|>assistant',
  keepsReasoning: true,
} as const;
const coder: TurnFormat = { reasoning: think, calls: coderCalls };
const kimi = {
  appendRoles: allRoles,
  fixedVariables: { preserve_thinking: true },
  ends: ['<|im_end|>'],
  boundary: { kind: 'closed', end: '<|im_end|>', after: '' },
  format: { reasoning: think, calls: sectionCalls },
  assistantStart: '<|im_assistant|>',
  // It stands between the name of a role and its words.
  cuts: { without: ['<|im_middle|>'] },
  keepsReasoning: false,
} as const;
const minimax = {
  appendRoles: withoutSystem,
  fixedVariables: { clear_thinking: false },
  ends: ['[e~['],
  boundary: { kind: 'closed', end: '[e~[', after: '\n' },
  format: { reasoning: think, calls: invokeCalls },
  assistantStart: ']~b]ai',
  keepsReasoning: true,
} as const;
const deepseek = {
  fixedVariables: { drop_thinking: false },
  ends: ['<｜end▁of▁sentence｜>'],
  boundary: { kind: 'closed', end: '<｜end▁of▁sentence｜>', after: '' },
  assistantStart: '<｜Assistant｜>',
  cuts: { only: ['<｜User｜>', '<｜Assistant｜>'] },
  engineVariables: withThinkingFlag,
} as const;

export const families: readonly Family[] = [
  fromTemplate({ name: 'qwen3', ...qwen }),
  fromTemplate({ name: 'qwen35', ...qwen, appendRoles: withoutSystem, format: coder }),
  fromTemplate({ name: 'qwennext', ...qwen }),
  fromTemplate({
    name: 'glm47',
    appendRoles: allRoles,
    fixedVariables: { clear_thinking: false },
    ends: ['<|observation|>', '<|user|>', '<|endoftext|>'],
    boundary: { kind: 'opener', tokens: ['<|observation|>', '<|user|>'] },
    format: { reasoning: think, calls: keyValueCalls },
    assistantStart: '<|assistant|>',
    keepsReasoning: false,
  }),
  fromTemplate({
    name: 'nemotron3',
    appendRoles: allRoles,
    fixedVariables: { truncate_history_thinking: false },
    ends: ['<|im_end|>'],
    boundary: imEnd,
    format: coder,
    assistantStart: '<|im_start|>assistant\n',
    keepsReasoning: false,
  }),
  fromTemplate({ name: 'kimi25', ...kimi }),
  fromTemplate({ name: 'kimi26', ...kimi }),
  fromTemplate({ name: 'minimax_m25', ...minimax }),
  fromTemplate({ name: 'minimax_m27', ...minimax }),
  {
    name: 'deepseekv32',
    ...deepseek,
    appendRoles: allRoles,
    format: { reasoning: think, calls: dsmlCalls('function_calls') },
    openRenderer: deepseekV32,
  },
  {
    name: 'deepseekv4',
    ...deepseek,
    appendRoles: withoutSystem,
    format: { reasoning: think, calls: dsmlCalls('tool_calls') },
    openRenderer: deepseekV4,
  },
  fromTemplate({
    name: 'default',
    appendRoles: allRoles,
    fixedVariables: {},
    ends: [],
    boundary: { kind: 'plain' },
    format: { reasoning: null, calls: null },
    assistantStart: null,
    keepsReasoning: false,
  }),
];

export interface OpenCodecOptions {
  readonly family: string;
  /** Folder of the checkpoint. */
  readonly tokenizer: string;
  /** A chat template in place of the checkpoint's own; null = that one. */
  readonly templateFile: string | null;
  /** For templates that print the date. */
  readonly now: () => Date;
}

/** CONFIG_INVALID for a family that is not known, and a checkpoint that is not of it. */
export async function openCodec(options: OpenCodecOptions): Promise<FamilyCodec> {
  const family = families.find(({ name }) => name === options.family);
  if (family === undefined)
    throw new RolloutError('CONFIG_INVALID', `no family of models is called ${options.family}`, {
      phase: 'config',
      field: '--family',
      remedy: `Name one of ${families.map(({ name }) => name).join(', ')}.`,
    });
  const { tokenizer: dir, templateFile } = options;
  return openFamily(family, await readCheckpoint({ dir, templateFile }), options.now);
}
