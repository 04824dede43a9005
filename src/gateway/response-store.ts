/**
 * Responses that a client may go on from by `previous_response_id`, of one rollout and as long as its route lives. What is kept of each is its whole input with
 * its output behind it; inputs are shared with the responses before, so a chain costs what its pieces cost.
 */
import { RequestProblem } from './dialects/dialect.ts';
import { inputOf } from './dialects/responses/input-of.ts';

type JsonObject = Readonly<Record<string, unknown>>;

const mebibyte = 1024 * 1024;
/** As JSON text; the oldest go first. */
const ofOneRollout = 64 * mebibyte;
/** Beyond it each rollout keeps its latest response only. */
const ofAllRollouts = 256 * mebibyte;

/** What all rollouts keep together. */
export interface KeptTotal {
  bytes: number;
}

export class ResponseStore {
  /** In order of their making. */
  readonly #kept = new Map<
    string,
    { readonly input: readonly unknown[]; readonly bytes: number }
  >();
  readonly #total: KeptTotal;
  #bytes = 0;
  #isOver = false;

  constructor(total: KeptTotal) {
    this.#total = total;
  }

  /** The body with the history that it refers to in front of its own input. RequestProblem for a response that is not kept. */
  resolved(body: JsonObject): JsonObject {
    const { previous_response_id: id } = body;
    if (id === undefined || id === null) return body;
    const kept = typeof id === 'string' ? this.#kept.get(id) : undefined;
    if (kept === undefined)
      throw new RequestProblem(
        `previous response ${JSON.stringify(id)} is not kept: it is of another rollout, was sent with store: false, or is too long ago`,
        { kind: 'not-found', field: 'previous_response_id' },
      );
    return { ...body, input: [...kept.input, ...inputItems(body['input'])] };
  }

  /** A request that says `store: false` leaves nothing. `given` = the request as it came, `resolved` = with its history. */
  keep(
    response: JsonObject,
    { given, resolved }: { readonly given: JsonObject; readonly resolved: JsonObject },
  ): void {
    const { id } = response;
    if (this.#isOver || given['store'] === false || typeof id !== 'string') return;
    const output = inputOf(response);
    const input = [...inputItems(resolved['input']), ...output];
    // What was there before is shared; a place in a list is a pointer.
    const bytes = JSON.stringify([given['input'], output]).length + 8 * input.length;
    this.#kept.set(id, { input, bytes });
    this.#count(bytes);
    for (const [oldest, { bytes: freed }] of this.#kept) {
      const isLatest = this.#kept.size === 1;
      if (this.#bytes <= ofOneRollout && (isLatest || this.#total.bytes <= ofAllRollouts)) break;
      this.#kept.delete(oldest);
      this.#count(-freed);
    }
  }

  /** Nothing is kept from now on. Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#kept.clear();
    this.#count(-this.#bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#total.bytes += bytes;
  }
}

function inputItems(input: unknown): readonly unknown[] {
  if (Array.isArray(input)) return input as readonly unknown[];
  return typeof input === 'string' ? [{ role: 'user', content: input }] : [];
}
