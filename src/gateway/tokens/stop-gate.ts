/**
 * Keeps stop strings away from the client. They are sampled, so they are among the ids, and their text is not to be seen. Whatever may become one waits; with
 * the end the engine says whether it did.
 */
import type { SampledMessage, TurnPart } from '../../sessions/codec.ts';

type Spoken = Extract<TurnPart, { readonly type: 'text-delta' | 'reasoning-delta' }>;

export class StopGate {
  readonly #stops: readonly string[];
  #held: Spoken | null = null;

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '');
  }

  /** What may go out. */
  push(parts: readonly TurnPart[]): readonly TurnPart[] {
    if (this.#stops.length === 0) return parts;
    return parts.flatMap((part) => this.#pass(part));
  }

  /** The last ones, and the message without what is not to be seen; `stop`: the stop string that ended the answer. */
  end(
    parts: readonly TurnPart[],
    { message, stop }: { readonly message: SampledMessage; readonly stop: string | null },
  ): { readonly parts: readonly TurnPart[]; readonly message: SampledMessage } {
    const passed = [...this.push(parts)];
    const held = this.#held;
    this.#held = null;
    if (held === null) return { parts: passed, message };
    const at = stop === null ? -1 : held.text.indexOf(stop);
    if (at < 0) return { parts: [...passed, held], message };
    const cut = held.text.length - at;
    const shown = { ...held, text: held.text.slice(0, at) };
    return {
      parts: shown.text === '' ? passed : [...passed, shown],
      message:
        held.type === 'text-delta'
          ? { ...message, text: message.text.slice(0, -cut) }
          : { ...message, reasoning: (message.reasoning ?? '').slice(0, -cut) },
    };
  }

  #pass(part: TurnPart): readonly TurnPart[] {
    const held = this.#held;
    const isSame = held !== null && held.type === part.type;
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta') {
      this.#held = null;
      return held === null ? [part] : [held, part];
    }
    const before = held === null || isSame ? [] : [held];
    const text = isSame ? held.text + part.text : part.text;
    const from = this.#begin(text);
    this.#held = from === text.length ? null : { type: part.type, text: text.slice(from) };
    const shown = text.slice(0, from);
    return shown === '' ? before : [...before, { type: part.type, text: shown }];
  }

  /** Where the first stop string begins, or what may yet become one. */
  #begin(text: string): number {
    const places = this.#stops.map((stop) => {
      const at = text.indexOf(stop);
      if (at >= 0) return at;
      for (let length = Math.min(stop.length - 1, text.length); length > 0; length -= 1)
        if (text.endsWith(stop.slice(0, length))) return text.length - length;
      return text.length;
    });
    return Math.min(text.length, ...places);
  }
}
