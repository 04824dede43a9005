import type { ModelPart } from '../engines/model-call.ts';

/** A piece of an answer in which an upstream may have put its key. One that spells it over several pieces is not found. */
export function maskedPart(part: ModelPart, mask: (text: string) => string): ModelPart {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return { ...part, text: mask(part.text) };
    case 'tool-call-start':
      return { ...part, id: mask(part.id), name: mask(part.name) };
    case 'tool-call-delta':
      return { ...part, arguments: mask(part.arguments) };
    case 'tool-call-end':
    case 'prompt-ids':
    case 'tokens-delta':
    case 'end':
      return part;
  }
}
