/**
 * How the ids of a session differ from its conversation rendered anew: both are cut at their control tokens and compared piece by piece, as text. Only what the
 * model itself spelled in its own way may differ.
 */
import type { ChatCodec } from '../codec.ts';
import { conversationOf } from './chat-request.ts';
import { idsOf, messagesOf, type TurnNode } from './turn-node.ts';

export interface SessionMismatch {
  readonly type:
    'special_token_count' | 'special_token_type' | 'assistant_text' | 'non_assistant_text';
  /** -1 = of the whole. */
  readonly segment_index: number;
  readonly expected_text: string;
  readonly actual_text: string;
  readonly detail: string;
}

type Segment = { readonly special: number } | { readonly special: null; readonly text: string };

/** Empty = they agree; null before the first turn. Throws what the template throws. */
export function mismatchOf(
  node: TurnNode | null,
  codec: ChatCodec,
): readonly SessionMismatch[] | null {
  if (node === null) return null;
  const conversation = conversationOf(messagesOf(node), node.request);
  const { ids } = codec.render(conversation, { opensTurn: false });
  return compareIds(ids, idsOf(node), codec);
}

export function compareIds(
  rendered: Int32Array,
  held: Int32Array,
  codec: ChatCodec,
): readonly SessionMismatch[] {
  const expected = segmentsOf(withoutTrailing(rendered, codec), codec);
  const actual = segmentsOf(withoutTrailing(held, codec), codec);
  if (patternOf(expected) !== patternOf(actual))
    return [
      {
        ...{ type: 'special_token_count', segment_index: -1 },
        ...{ expected_text: '', actual_text: '' },
        detail: `rendered anew there are ${expected.length} segments, in the session ${actual.length}`,
      },
    ];
  const mismatches: SessionMismatch[] = [];
  for (const [at, segment] of expected.entries()) {
    const other = actual[at];
    if (other === undefined) continue;
    const texts = { expected_text: textOf(segment, codec), actual_text: textOf(other, codec) };
    if (segment.special === null && other.special === null) {
      if (segment.text === other.text) continue;
      const isAssistant = [expected, actual].every((all) => isAssistantText(all, at, codec));
      const type = isAssistant ? 'assistant_text' : 'non_assistant_text';
      mismatches.push({ type, segment_index: at, ...texts, detail: 'the texts differ' });
    } else if (segment.special !== other.special)
      mismatches.push({
        ...{ type: 'special_token_type', segment_index: at, ...texts },
        detail: `control tokens ${String(segment.special)} and ${String(other.special)}`,
      });
  }
  return mismatches;
}

function withoutTrailing(ids: Int32Array, codec: ChatCodec): Int32Array {
  return ids.subarray(0, ids.findLastIndex((id) => !codec.isTrailing(id)) + 1);
}

function segmentsOf(ids: Int32Array, codec: ChatCodec): readonly Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  const close = (to: number): void => {
    if (to > from) segments.push({ special: null, text: codec.decode(ids.subarray(from, to)) });
  };
  for (const [at, id] of ids.entries()) {
    if (!codec.isCut(id)) continue;
    close(at);
    segments.push({ special: id });
    from = at + 1;
  }
  close(ids.length);
  return segments;
}

const patternOf = (segments: readonly Segment[]): string =>
  segments.map(({ special }) => (special === null ? 't' : 's')).join('');

function textOf(segment: Segment, codec: ChatCodec): string {
  return segment.special === null ? segment.text : codec.decode(Int32Array.of(segment.special));
}

/** Whether it stands behind the control token of an assistant's turn, and begins as such a turn does. */
function isAssistantText(segments: readonly Segment[], at: number, codec: ChatCodec): boolean {
  const { assistantStart } = codec;
  const [before, segment] = [segments[at - 1], segments[at]];
  if (assistantStart === null || before === undefined || segment === undefined) return false;
  if (before.special === null || segment.special !== null) return false;
  return (textOf(before, codec) + segment.text).startsWith(assistantStart);
}
