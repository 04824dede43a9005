/**
 * The order in which deliveries go out: those to one URL one after the other, as they were created, and of one rollout the completion before the grader.
 * Two things loosen it, so that nothing waits for ever. Of a rollout the second channel goes when no success of the first is in sight: the first round of
 * attempts is over, its own or that of one that it has to wait for. At one URL a delivery whose receiver works but does not take it steps aside; one whose
 * receiver does not answer holds the others, who would fail as well.
 */
export interface Ordered {
  readonly seq: number;
  readonly url: string;
  readonly rolloutId: string;
}

interface Place<T extends Ordered> {
  readonly item: T;
  readonly turn: PromiseWithResolvers<undefined>;
  readonly stalled: PromiseWithResolvers<undefined>;
  hasTurn: boolean;
  /** `own`: its first round is over. `held`: it waits for one whose round is. */
  stall: 'none' | 'held' | 'own';
  isAside: boolean;
}

export class DeliveryOrder<T extends Ordered> {
  readonly #places = new Map<T, Place<T>>();
  readonly #byUrl = new Map<string, Place<T>[]>();
  readonly #byRollout = new Map<string, Place<T>[]>();

  add(item: T): void {
    const [turn, stalled] = [
      Promise.withResolvers<undefined>(),
      Promise.withResolvers<undefined>(),
    ];
    const state = { hasTurn: false, stall: 'none', isAside: false } as const;
    const place: Place<T> = { item, turn, stalled, ...state };
    this.#places.set(item, place);
    insert(this.#byUrl, item.url, place);
    insert(this.#byRollout, item.rolloutId, place);
    this.#giveTurn(place);
    const first = this.#firstAt(item.url);
    if (!place.hasTurn && first !== place && first?.stall === 'own') this.#stall(place, 'held');
  }

  /** Resolves when nothing has to go out before it, or it was removed. */
  async turn(item: T): Promise<void> {
    await this.#places.get(item)?.turn.promise;
  }

  /** Resolves when no success is in sight; never for one that is removed before. */
  async stalled(item: T): Promise<void> {
    await this.#places.get(item)?.stalled.promise;
  }

  ofRollout(rolloutId: string): readonly T[] {
    return (this.#byRollout.get(rolloutId) ?? []).map(({ item }) => item);
  }

  /** Those at the URL that have had no turn yet. */
  waitingAt(url: string): readonly T[] {
    return withoutTurn(this.#byUrl.get(url));
  }

  waitingOf(rolloutId: string): readonly T[] {
    return withoutTurn(this.#byRollout.get(rolloutId));
  }

  /** Its first round is over without success. */
  stall(item: T, { stepsAside }: { readonly stepsAside: boolean }): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    place.isAside = stepsAside;
    this.#stall(place, 'own');
    if (stepsAside) this.#giveFirstTurn(item.url);
    else
      for (const other of this.#byUrl.get(item.url) ?? [])
        if (!other.hasTurn) this.#stall(other, 'held');
  }

  remove(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    take(this.#byUrl, item.url, place);
    take(this.#byRollout, item.rolloutId, place);
    place.turn.resolve(undefined);
    this.#giveFirstTurn(item.url);
    this.#giveTurnsOf(item.rolloutId);
  }

  #stall(place: Place<T>, stall: 'held' | 'own'): void {
    if (place.stall === 'own') return;
    place.stall = stall;
    place.stalled.resolve(undefined);
    this.#giveTurnsOf(place.item.rolloutId);
  }

  #giveFirstTurn(url: string): void {
    const first = this.#firstAt(url);
    if (first !== undefined) this.#giveTurn(first);
  }

  #giveTurnsOf(rolloutId: string): void {
    for (const place of this.#byRollout.get(rolloutId) ?? []) this.#giveTurn(place);
  }

  #giveTurn(place: Place<T>): void {
    if (place.hasTurn || this.#hasToWait(place)) return;
    place.hasTurn = true;
    if (place.stall === 'held') place.stall = 'none';
    place.turn.resolve(undefined);
  }

  #hasToWait(place: Place<T>): boolean {
    const { seq, url, rolloutId } = place.item;
    const isBefore = (other: Place<T>): boolean => other.item.seq < seq;
    const first = this.#firstAt(url);
    if (first !== undefined && isBefore(first)) return true;
    const ofRollout = this.#byRollout.get(rolloutId) ?? [];
    return ofRollout.some((other) => isBefore(other) && other.stall === 'none');
  }

  #firstAt(url: string): Place<T> | undefined {
    return this.#byUrl.get(url)?.find(({ isAside }) => !isAside);
  }
}

/** Sorted by creation; nearly always at the end. */
function insert<T extends Ordered>(lanes: Map<string, Place<T>[]>, key: string, place: Place<T>) {
  const lane = lanes.get(key) ?? [];
  const at = lane.findLastIndex(({ item }) => item.seq < place.item.seq) + 1;
  lane.splice(at, 0, place);
  lanes.set(key, lane);
}

function take<T extends Ordered>(lanes: Map<string, Place<T>[]>, key: string, place: Place<T>) {
  const lane = lanes.get(key) ?? [];
  lane.splice(lane.indexOf(place), 1);
  if (lane.length === 0) lanes.delete(key);
}

function withoutTurn<T extends Ordered>(lane: readonly Place<T>[] = []): readonly T[] {
  return lane.filter(({ hasTurn }) => !hasTurn).map(({ item }) => item);
}
