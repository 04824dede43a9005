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
  const expected = segmentsOf(withoutEnd(rendered, codec), codec);
  const actual = segmentsOf(withoutEnd(held, codec), codec);
  if (patternOf(expected) !== patternOf(actual))
    return [
      {
        ...{ type: 'special_token_count', segment_index: -1 },
        ...{ expected_text: '', actual_text: '' },
        detail: `rendered anew there are ${expected.length} segments, in the session ${actual.length}`,
      },
    ];
  const marker = assistantMarker(codec);
  const mismatches: SessionMismatch[] = [];
  for (const [at, segment] of expected.entries()) {
    const other = actual[at];
    if (other === undefined) continue;
    const texts = { expected_text: textOf(segment, codec), actual_text: textOf(other, codec) };
    if (segment.special === null && other.special === null) {
      if (segment.text === other.text) continue;
      const isAssistant =
        marker !== null &&
        (marker.special === null || expected[at - 1]?.special === marker.special) &&
        segment.text.startsWith(marker.text) &&
        other.text.startsWith(marker.text);
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

/** Templates write white space behind the end of the last turn, which is not sampled; some have no end there at all. */
function withoutEnd(ids: Int32Array, codec: ChatCodec): Int32Array {
  for (let at = ids.length - 1; at >= 0; at -= 1) {
    const id = ids[at];
    if (id === undefined) break;
    if (codec.isEnd(id)) return ids.subarray(0, at);
    if (codec.isSpecial(id) || codec.decode(ids.subarray(at, at + 1)).trim() !== '') break;
  }
  return ids;
}

function segmentsOf(ids: Int32Array, codec: ChatCodec): readonly Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  const close = (to: number): void => {
    if (to > from) segments.push({ special: null, text: codec.decode(ids.subarray(from, to)) });
  };
  for (const [at, id] of ids.entries()) {
    if (!codec.isSpecial(id)) continue;
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

/** How the assistant's turn opens, as the template writes it; null = nothing tells it from other turns. */
function assistantMarker(
  codec: ChatCodec,
): { readonly special: number | null; readonly text: string } | null {
  if (codec.family === 'default') return null;
  const conversation = {
    messages: [{ role: 'user', content: 'x' } as const],
    ...{ tools: [], templateVariables: {} },
  };
  const open = codec.render(conversation, { opensTurn: true }).ids;
  const shut = codec.render(conversation, { opensTurn: false }).ids;
  const [first, second] = segmentsOf(open.subarray(shut.length), codec);
  if (first === undefined) return null;
  if (first.special === null) return first.text === '' ? null : first;
  return { special: first.special, text: second?.special === null ? second.text : '' };
}
