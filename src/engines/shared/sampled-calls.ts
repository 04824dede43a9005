/**
 * Tool calls while their pieces arrive. Hosts differ in what they say of a piece, and a piece in the wrong call is a wrong command in somebody's sandbox:
 *
 * - `index` may be missing, or 0 for every call. Then the id tells calls apart, and where there is none, a name beside arguments that are complete already.
 * - The id may be missing, come later, or be another one with every piece. A piece without a name goes on with the call that its index says.
 * - The name may come after the id, or again with every piece. A call starts when its name is known; what has been sampled of it by then waits.
 * - Pieces of parallel calls may be mixed. A call ends when something else begins and its arguments are complete, else with the answer.
 *
 * What fits none of this is no call that could be told apart from another one, and is refused.
 */
import type { ModelPart, SampledToolCall } from '../model-call.ts';
import { JsonEnd } from './json-end.ts';

/** Each piece looks at all of them: an answer without end would hold up everybody else. */
const maxCalls = 1024;

export interface ToolCallPiece {
  /** null = the host does not say. */
  readonly index: number | null;
  readonly id: string | null;
  readonly name: string | null;
  readonly arguments: string;
  /** Where it stands among the pieces that came with it, of how many. */
  readonly position: number;
  readonly count: number;
}

interface GrowingCall {
  readonly index: number;
  readonly end: JsonEnd;
  id: string | null;
  name: string | null;
  arguments: string;
  /** The end of `arguments` that has not gone out. */
  waiting: string;
  state: 'unnamed' | 'open' | 'ended';
}

export class SampledCalls {
  readonly #requestId: string;
  readonly #emit: (part: ModelPart) => void;
  /** In order of appearance. */
  readonly #calls: GrowingCall[] = [];
  /** The call that an index of the host's means now. */
  readonly #atIndex = new Map<number, GrowingCall>();
  #last: GrowingCall | null = null;

  constructor(requestId: string, emit: (part: ModelPart) => void) {
    this.#requestId = requestId;
    this.#emit = emit;
  }

  get calls(): readonly SampledToolCall[] {
    return this.#calls
      .toSorted((a, b) => a.index - b.index)
      .map((call) => ({
        id: this.#idOf(call),
        name: call.name ?? '',
        arguments: call.arguments,
      }));
  }

  /** What is wrong with the piece; null = it was taken. */
  add(given: ToolCallPiece): string | null {
    // Hosts that repeat a field may repeat it empty.
    const piece = { ...given, id: said(given.id), name: said(given.name) };
    const call = this.#callOf(piece);
    if (call === null) return `the answer has more than ${maxCalls} tool calls`;
    if (call !== this.#last) this.#settle(call);
    this.#last = call;
    if (piece.name !== null && call.name !== null && piece.name !== call.name)
      return `a tool call has two names, ${JSON.stringify(call.name)} and ${JSON.stringify(piece.name)}`;
    if (call.state === 'ended' && piece.arguments.trim() !== '')
      return 'a tool call goes on after its arguments were complete';
    call.name ??= piece.name;
    if (call.state === 'unnamed') call.id ??= piece.id;
    call.arguments += piece.arguments;
    call.waiting += piece.arguments;
    call.end.push(piece.arguments);
    if (call.name !== null && (call.id !== null || call.arguments !== '')) this.#send(call);
    return null;
  }

  /** Something else begins: a text, for example. */
  interrupt(): void {
    if (this.#last === null) return;
    this.#settle(null);
    this.#last = null;
  }

  /** The answer is over. A call whose name never came starts without one. */
  end(): void {
    for (const call of this.#calls) {
      this.#send(call);
      this.#endCall(call);
    }
  }

  /** null = there is no room for one more. */
  #callOf(piece: ToolCallPiece): GrowingCall | null {
    const known = this.#known(piece);
    if (known !== null && !isAnother(known, piece)) return known;
    if (this.#calls.length >= maxCalls) return null;
    const { index } = piece;
    const isFree = index !== null && this.#calls.every((call) => call.index !== index);
    const call: GrowingCall = {
      index: isFree ? index : Math.max(-1, ...this.#calls.map((each) => each.index)) + 1,
      end: new JsonEnd(),
      id: piece.id,
      name: null,
      arguments: '',
      waiting: '',
      state: 'unnamed',
    };
    this.#calls.push(call);
    if (index !== null) this.#atIndex.set(index, call);
    return call;
  }

  /** The call that the piece seems to go on with. */
  #known({ index, id, name, position, count }: ToolCallPiece): GrowingCall | null {
    if (index !== null) return this.#atIndex.get(index) ?? null;
    const sameId = id === null ? undefined : this.#calls.findLast((call) => call.id === id);
    if (sameId !== undefined) return sameId;
    // Two in one list are two calls.
    if (name !== null && position > 0) return null;
    if (id === null && name === null && count > 1) return this.#calls[position] ?? null;
    const last = this.#last ?? this.#calls.at(-1) ?? null;
    if (last === null || id === null || last.id === null) return last;
    return last.end.isComplete ? null : last;
  }

  /** Something else begins: what is known of the calls so far goes out before it. */
  #settle(except: GrowingCall | null): void {
    for (const call of this.#calls) {
      if (call === except) continue;
      if (call.name !== null) this.#send(call);
      if (call.end.isComplete) this.#endCall(call);
    }
  }

  #send(call: GrowingCall): void {
    if (call.state === 'ended') return;
    const { index } = call;
    if (call.state === 'unnamed') {
      const start = { index, id: this.#idOf(call), name: call.name ?? '' };
      this.#emit({ type: 'tool-call-start', ...start });
      call.id = start.id;
      call.state = 'open';
    }
    const text = call.waiting;
    call.waiting = '';
    if (text !== '') this.#emit({ type: 'tool-call-delta', index, arguments: text });
  }

  #endCall(call: GrowingCall): void {
    if (call.state !== 'open') return;
    call.state = 'ended';
    this.#emit({ type: 'tool-call-end', index: call.index });
  }

  /** Only a handle for the answer to it; an engine that gives none still needs one that is unique. */
  #idOf({ id, index }: GrowingCall): string {
    return id ?? `${this.#requestId}-${index}`;
  }
}

function said(field: string | null): string | null {
  return field === '' ? null : field;
}

/** Whether a named piece begins a call of its own although it seems to go on with one that is named. */
function isAnother(call: GrowingCall, piece: ToolCallPiece): boolean {
  if (piece.name === null || call.name === null) return false;
  const isUnderWay = call.arguments !== '' && !call.end.isComplete;
  if (piece.id !== null && call.id !== null) return piece.id !== call.id && !isUnderWay;
  if (piece.name !== call.name) return !isUnderWay;
  return call.end.isComplete && piece.arguments !== '';
}
