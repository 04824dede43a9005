/** A policy plays the model: it is given the conversation and says the reply. A module exports one as default or as `policy`. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { ChatMessage, ToolDefinition } from '../chat-message.ts';
import { builtInPolicies } from './policies/built-in.ts';

export interface PolicyRequest {
  /** Read back from the prompt's ids, whichever way they came. */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  /** Messages of the assistant so far. */
  readonly turn: number;
  readonly model: string;
  readonly seed: number;
  /** In [0, 1); the same request of the same seed draws the same numbers. */
  readonly random: () => number;
}

export interface PolicyToolCall {
  readonly name: string;
  /** A text is sampled as it stands, anything else as its JSON. */
  readonly arguments: unknown;
}

export interface PolicyReply {
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly PolicyToolCall[];
  /** `length` = the reply breaks off without an end token. */
  readonly finish?: 'stop' | 'length';
}

/** What it throws is a failed request, never a failed engine. */
export type Policy = (request: PolicyRequest) => PolicyReply | Promise<PolicyReply>;

/** A built-in policy by its name, or the module of a path. CONFIG_INVALID for what is neither. */
export async function loadPolicy(nameOrFile: string): Promise<Policy> {
  const builtIn = builtInPolicies.get(nameOrFile);
  if (builtIn !== undefined) return builtIn;
  // Node's own sentence for a missing file names the file that imports it, which says nothing to whoever mistyped a name.
  if (!existsSync(nameOrFile))
    throw refusal(`${nameOrFile} is neither a policy's name nor a file`, null);
  let module: { readonly default?: unknown; readonly policy?: unknown };
  try {
    module = (await import(pathToFileURL(path.resolve(nameOrFile)).href)) as typeof module;
  } catch (error) {
    throw refusal(`${nameOrFile}: ${messageOf(error)}`, error);
  }
  const policy = module.default ?? module.policy;
  if (typeof policy !== 'function') throw refusal(`${nameOrFile} exports no function`, null);
  return policy as Policy;
}

function refusal(message: string, cause: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'config',
    field: '--policy',
    remedy:
      'Name a module that exports a function as default or as policy, ' +
      `or one of: ${[...builtInPolicies.keys()].join(', ')}.`,
    cause,
  });
}
