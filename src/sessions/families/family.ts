import type { Conversation } from '../codec.ts';
import type { TurnFormat } from '../parsers/turn-format.ts';
import type { Checkpoint } from './checkpoint.ts';

/** Renders text with the words of a checkpoint. Throws CONVERSATION_INVALID. */
export type TextRenderer = (
  conversation: Conversation,
  options: { readonly opensTurn: boolean },
) => string;

/** What differs from family to family; `family-codec.ts` makes a codec of it. */
export interface Family {
  readonly name: string;
  readonly appendRoles: readonly string[];
  readonly fixedVariables: Variables;
  /** Of a request, as they go to the engine: what the family takes for granted is said there. Throws CONVERSATION_INVALID. */
  readonly engineVariables: (variables: Variables) => Variables;
  /** CONFIG_INVALID where the checkpoint has not what the family renders with. */
  openRenderer(checkpoint: Checkpoint, now: () => Date): Promise<TextRenderer>;
  /** Names of tokens that a model stops at. */
  readonly ends: readonly string[];
  readonly boundary: Boundary;
  readonly format: TurnFormat;
  /** What an assistant's turn begins with, from its control token on; null = nothing tells it from others. */
  readonly assistantStart: string | null;
  readonly cuts: Cuts;
}

export type Variables = Readonly<Record<string, unknown>>;

/** Control tokens at which ids are cut to be compared: all of the checkpoint's, or not those that stand inside a turn. */
export type Cuts =
  'all' | { readonly only: readonly string[] } | { readonly without: readonly string[] };

/** What stands between a sampled turn and the text of the next messages. */
export type Boundary =
  /** The end that is sampled, then text that only the template writes. A turn without its end gets it. */
  | { readonly kind: 'closed'; readonly end: string; readonly after: string }
  /** The model samples the opener of the next turn as its stop; what opens it really is in the template's text. */
  | { readonly kind: 'opener'; readonly tokens: readonly string[] }
  | { readonly kind: 'plain' };
