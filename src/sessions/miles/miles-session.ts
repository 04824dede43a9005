/** One session: its turns, what it says of itself, and its samples in Miles' container. */
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { milesContainer, type MilesSample } from '../../wire/samples/miles-container.ts';
import type { ChatCodec } from '../codec.ts';
import { readChatRequest, type ChatRequest, type RequestRules } from './chat-request.ts';
import { LinearTurns } from './linear-turns.ts';
import { mergeTurns, type MergedSample } from './merge-turns.ts';
import type { MessageMatcher } from './message-matcher.ts';
import { mismatchOf } from './mismatch.ts';
import type { ReplayRules } from './replay.ts';
import {
  isLeafSample,
  pickProblem,
  type LeafSample,
  type SamplePicker,
  type SamplePostprocessor,
} from './sample-hooks.ts';
import { refusal } from './session-error.ts';
import type { SessionTurns } from './session-turns.ts';
import { TreeTurns } from './tree-turns.ts';
import { idsOf, pathTo, recordsOf, type TurnNode } from './turn-node.ts';

export type SessionVersion = 'v1' | 'v2';

export interface SessionRules {
  readonly version: SessionVersion;
  readonly codec: ChatCodec;
  readonly matches: MessageMatcher;
  /** What the engine is asked for beside tokens, for the trainer. */
  readonly replay: ReplayRules;
  /** For templates, below what requests say. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
  readonly picker: { readonly name: string; readonly pick: SamplePicker };
  readonly postprocessor: { readonly name: string; readonly process: SamplePostprocessor };
  /** Turns of a session of the second version. */
  readonly maxNodes: number;
  readonly nowS: () => number;
  readonly logger: Logger;
}

export interface SamplesRequest {
  /** null = no limit. */
  readonly maxTokens: number | null;
  /** What the agent says of its run; null = nothing. The second version's. */
  readonly agent: Readonly<Record<string, unknown>> | null;
}

type Fields = Readonly<Record<string, unknown>>;

export class MilesSession {
  readonly id: string;
  readonly turns: SessionTurns;
  readonly #rules: SessionRules;

  constructor(id: string, rules: SessionRules) {
    this.id = id;
    this.#rules = rules;
    this.turns = rules.version === 'v1' ? new LinearTurns(rules) : new TreeTurns(rules);
  }

  /** SESSION_REQUEST_INVALID, CONVERSATION_INVALID. */
  read(body: Buffer): ChatRequest {
    const { templateVariables, codec } = this.#rules;
    const rules: RequestRules = {
      ...{ templateVariables, fixedVariables: codec.fixedVariables },
      engineVariables: (variables) => codec.engineVariables(variables),
    };
    return readChatRequest(body, rules);
  }

  /** As JSON. */
  document(): string {
    const records = recordsOf(this.turns.active).join(',');
    const metadata = JSON.stringify(this.#metadata());
    return `{"session_id":${JSON.stringify(this.id)},"records":[${records}],"metadata":${metadata}}`;
  }

  /** Miles' container. SESSION_SAMPLES_FAILED, SESSION_HOOK_FAILED. */
  samples(request: SamplesRequest): Buffer {
    const isLinear = this.#rules.version === 'v1';
    const sessionMetadata = {
      ...this.#metadata(),
      ...(!isLinear && request.agent !== null && { agent: request.agent }),
    };
    const samples = isLinear ? this.#line(request) : this.#leaves(request);
    if (samples.length > 0) return milesContainer({ samples, sessionMetadata, emptyReason: null });
    const emptyReason = this.turns.nodes.length === 0 ? 'no_records' : 'all_truncated';
    return milesContainer({ samples, sessionMetadata, emptyReason });
  }

  #line(request: SamplesRequest): readonly MilesSample[] {
    const merged = this.#merged(this.turns.active, request);
    return merged === null ? [] : [milesSample(merged, { lifecycle: merged.lifecycle })];
  }

  #leaves(request: SamplesRequest): readonly MilesSample[] {
    const { nodes } = this.turns;
    const samples = leavesOf(nodes).flatMap((leaf): readonly LeafSample[] => {
      const sample = this.#merged(leaf, request);
      if (sample === null) return [];
      const path = pathTo(leaf).map(({ seq }) => seq);
      const mismatch = this.#mismatch(leaf);
      const metadata = {
        lifecycle: sample.lifecycle,
        leaf: {
          node_id: leaf.seq,
          parent: leaf.parent?.seq ?? null,
          path_node_ids: path,
          response_id: leaf.reply.responseId,
        },
        accumulated_token_ids: [...idsOf(leaf)],
        ...(mismatch !== null && { tito_session_mismatch: mismatch }),
      };
      return [{ leaf, path, sample, metadata, reward: null }];
    });
    return this.#hooked(samples, request).map(({ sample, metadata, reward }) => ({
      ...milesSample(sample, metadata),
      reward,
    }));
  }

  #hooked(samples: readonly LeafSample[], { agent }: SamplesRequest): readonly LeafSample[] {
    const { picker, postprocessor, logger } = this.#rules;
    const context = {
      ...{ nodes: this.turns.nodes, agent },
      warn: (message: string, fields: Fields) =>
        logger.log('warn', message, { ...fields, session: this.id }),
    };
    try {
      const picked: unknown = picker.pick(samples, context);
      const problem = pickProblem(samples, picked);
      if (problem !== null) throw new Error(problem);
      const processed: unknown = postprocessor.process(picked as readonly LeafSample[], context);
      if (!Array.isArray(processed) || !processed.every(isLeafSample))
        throw new Error('the post-processor gave back something other than a list of samples');
      return processed;
    } catch (cause) {
      throw refusal(
        'SESSION_HOOK_FAILED',
        `session sample hook failed (picker=${picker.name}, postprocessor=${postprocessor.name}): ${messageOf(cause)}`,
        { cause },
      );
    }
  }

  #merged(leaf: TurnNode | null, { maxTokens }: SamplesRequest): MergedSample | null {
    const { codec, replay } = this.#rules;
    return mergeTurns(pathTo(leaf), { snapshot: idsOf(leaf), codec, maxTokens, replay });
  }

  #metadata(): Fields {
    const { active, nodes } = this.turns;
    const { codec, version } = this.#rules;
    const mismatch = this.#mismatch(active);
    return {
      ...(mismatch !== null && { tito_session_mismatch: mismatch }),
      accumulated_token_ids: [...idsOf(active)],
      max_trim_tokens: codec.maxTrim,
      ...(version === 'v2' && { tree: treeOf(nodes) }),
    };
  }

  /** null also where the conversation cannot be rendered anew: that is no reason to keep its samples back. */
  #mismatch(node: TurnNode | null): readonly unknown[] | null {
    try {
      return mismatchOf(node, this.#rules.codec);
    } catch (error) {
      const why = { session: this.id, error: messageOf(error) };
      this.#rules.logger.log('warn', 'a session was not compared with its conversation', why);
      return null;
    }
  }
}

/** In the order of their commits. */
function leavesOf(nodes: readonly TurnNode[]): readonly TurnNode[] {
  const parents = new Set(nodes.map(({ parent }) => parent));
  return nodes.filter((node) => !parents.has(node));
}

function treeOf(nodes: readonly TurnNode[]): Fields {
  return {
    nodes: nodes.map((node) => ({
      ...{ id: node.seq, parent: node.parent?.seq ?? null, seq: node.seq },
      truncated: node.reply.finishReason === 'length',
      committed_at: node.committedS,
      completion_span: [node.promptEnd, node.end],
      num_tokens: node.end,
      response_id: node.reply.responseId,
    })),
    leaves: leavesOf(nodes).map((leaf) => ({
      node_id: leaf.seq,
      path_node_ids: pathTo(leaf).map(({ seq }) => seq),
    })),
  };
}

function milesSample(merged: MergedSample, metadata: Fields): MilesSample {
  const { tokens, lossMask, logprobs, response, status, weightVersions } = merged;
  const { cachedTokens, promptTokens, routedExperts, indexerTopk } = merged;
  return {
    ...{ tokens, lossMask, logprobs, response, status, weightVersions, cachedTokens, promptTokens },
    ...{ routedExperts, indexerTopk, metadata },
    responseLength: lossMask.length,
  };
}
