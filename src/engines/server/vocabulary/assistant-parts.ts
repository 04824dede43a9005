import { z } from 'zod';
import type { Vocabulary } from '../token-model.ts';
import type { ChatMarkers } from './chat-markers.ts';

export interface AssistantParts {
  readonly reasoning: string | null;
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
}

type Segment =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'marker'; readonly id: number };

/** Ids of an assistant's turn, without its role and end, in their parts; null when they are not reasoning, text and calls in this order. */
export function readAssistantParts(
  vocabulary: Vocabulary,
  markers: ChatMarkers,
  ids: readonly number[],
): AssistantParts | null {
  const segments = segmentsOf(vocabulary, markers, ids);
  const take = (kind: { readonly start: number; readonly end: number } | null): string | null => {
    const [open, inner, close] = segments;
    if (kind === null || open?.kind !== 'marker' || open.id !== kind.start) return null;
    if (inner?.kind !== 'text' || close?.kind !== 'marker' || close.id !== kind.end) return null;
    segments.splice(0, 3);
    return inner.text;
  };
  const takeText = (): string => {
    const [first] = segments;
    if (first?.kind !== 'text') return '';
    segments.shift();
    return first.text;
  };

  // Texts stand between all markers; before the first one it is empty where the turn begins with reasoning.
  const lead = takeText();
  const reasoning = lead === '' ? take(markers.think) : null;
  const content = reasoning === null ? lead : takeText();
  const toolCalls: { name: string; arguments: string }[] = [];
  while (segments.length > 0) {
    const call = readCall(take(markers.toolCall));
    if (call === null) return null;
    toolCalls.push(call);
    if (takeText().trim() !== '') return null;
  }
  return { reasoning, content, toolCalls };
}

function segmentsOf(
  vocabulary: Vocabulary,
  markers: ChatMarkers,
  ids: readonly number[],
): Segment[] {
  const known = new Set(
    [markers.think, markers.toolCall].flatMap((kind) =>
      kind === null ? [] : [kind.start, kind.end],
    ),
  );
  const segments: Segment[] = [];
  let from = 0;
  const addText = (to: number): void => {
    const text = vocabulary.decode(ids.slice(from, to), { skipsSpecial: false });
    segments.push({ kind: 'text', text });
    from = to + 1;
  };
  ids.forEach((id, index) => {
    if (!known.has(id)) return;
    addText(index);
    segments.push({ kind: 'marker', id });
  });
  addText(ids.length);
  return segments;
}

/** As we write it: the arguments are kept as they stand, whether they are JSON or not. */
const ownCall = /^\n\{"name": ("(?:[^"\\]|\\.)*"), "arguments": ([^]*)\}\n$/;

const foreignCall = z.looseObject({ name: z.string(), arguments: z.unknown().optional() });

function readCall(body: string | null): { name: string; arguments: string } | null {
  if (body === null) return null;
  try {
    const [, name, callArguments] = ownCall.exec(body) ?? [];
    if (name !== undefined && callArguments !== undefined)
      return { name: z.string().parse(JSON.parse(name)), arguments: callArguments };
    const call = foreignCall.parse(JSON.parse(body));
    return { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) };
  } catch {
    return null;
  }
}
