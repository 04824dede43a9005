import type { ModelPart } from '../engines/model-call.ts';

/** A piece of an answer in which an upstream may have put its key. One that spells it over several pieces is not found. */
export function maskedPart(part: ModelPart, secrets: readonly string[]): ModelPart {
  const mask = (text: string): string =>
    secrets.reduce((left, secret) => left.replaceAll(secret, '[REDACTED]'), text);
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
