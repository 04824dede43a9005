/**
 * A group at work: its places are filled side by side, a lost member is made anew alone, and when all have their ends the group is scored and filtered. A group
 * that is given up stops its members and waits for them, so that nothing of it goes on behind its back.
 */
import { RolloutError } from '../../core/errors.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { CollectedGroup, DroppedGroup, GroupSeed, MemberRemains } from '../group.ts';
import type { CollectedMember, MemberEnd, MemberRequest } from '../member.ts';
import { oldestVersion } from '../training-sample.ts';
import { finishGroup } from './finish-group.ts';
import { MemberPlace } from './member-place.ts';
import type { MemberRun } from './member-run.ts';
import type { RolloutGate } from './rollout-gate.ts';

export type GroupResult =
  | { readonly kind: 'kept'; readonly group: CollectedGroup }
  | { readonly kind: 'dropped'; readonly group: DroppedGroup }
  /** An abort cut it off. */
  | {
      readonly kind: 'unfinished';
      readonly seed: GroupSeed;
      readonly remains: readonly MemberRemains[];
    };

export interface LiveGroupParts extends Pick<
  CollectorParts,
  'options' | 'causes' | 'hooks' | 'clock' | 'weightVersion' | 'observe'
> {
  readonly runName: string;
  readonly gate: RolloutGate;
  readonly startRun: (request: MemberRequest) => MemberRun;
  /** Fires when rewards and filters are not waited for any more. */
  readonly finishing: AbortSignal;
  /** A place has its end: room for others, where samples are counted. */
  readonly onPlaceDone: () => void;
}

export class LiveGroup {
  readonly seed: GroupSeed;
  readonly result: Promise<GroupResult>;
  /** Every place has its end, or was cut off; rewards and filters may follow. */
  readonly placed: Promise<void>;
  readonly #parts: LiveGroupParts;
  readonly #places: readonly MemberPlace[];
  readonly #runs = new Set<MemberRun>();
  readonly #startedMs: number;
  #open: number;
  #isCut = false;
  #lost: { readonly reason: 'given-up' | 'lost'; readonly why: string } | null = null;

  constructor(seed: GroupSeed, parts: LiveGroupParts) {
    this.seed = seed;
    this.#parts = parts;
    this.#startedMs = parts.clock.monotonicMs();
    const masksOld = parts.options.unfinished === 'resume-masked';
    this.#places = Array.from({ length: parts.options.groupSize }, (_, at) => {
      const remains = seed.remains.find(({ memberIndex }) => memberIndex === at) ?? null;
      return new MemberPlace(at, remains, masksOld);
    });
    this.#open = this.#places.filter(({ member }) => member === null).length;
    this.placed = this.#fillAll();
    this.result = this.#run();
  }

  /** Places without an end. */
  get openPlaces(): number {
    return this.#open;
  }

  get runs(): readonly MemberRun[] {
    return [...this.#runs];
  }

  /** Version of the weights when the oldest of what it has or runs was started; null = unknown. */
  get oldestVersion(): number | null {
    const members = this.#places.map(({ member }) => member).filter((each) => each !== null);
    const running = [...this.#runs].map(({ request }) => request.weightVersion);
    return oldestOf([...members.map(versionOf), ...running]);
  }

  /** Nothing of it starts any more; what runs is its caller's to end. What is not complete then is unfinished. */
  cut(): void {
    this.#isCut = true;
  }

  async #fillAll(): Promise<void> {
    await Promise.all(this.#places.map((place) => this.#fill(place)));
  }

  async #run(): Promise<GroupResult> {
    await this.placed;
    if (this.#lost !== null) return this.#dropped(this.#lost.reason, this.#lost.why);
    const members = this.#places.map(({ member }) => member).filter((each) => each !== null);
    if (members.length < this.#places.length) return this.#unfinished();
    return await this.#finish(members);
  }

  async #fill(place: MemberPlace): Promise<void> {
    while (place.member === null && this.#lost === null && !this.#isCut) {
      const run = this.#parts.startRun(this.#request(place));
      this.#runs.add(run);
      const end = await run.ended;
      this.#runs.delete(run);
      if (end !== null) this.#tellEnd(run, end);
      const { causes, options, gate, observe } = this.#parts;
      const { maxAttempts } = options;
      const isOpen = gate.isOpen && !this.#isCutOff();
      const verdict = place.take(run, end, { causes, maxAttempts, isOpen });
      // Its siblings were stopped because of it: their ends say nothing.
      if (this.#isLost()) break;
      if (verdict.kind === 'give-up') this.#lose('given-up', verdict.why);
      if (verdict.kind === 'lost') this.#lose('lost', verdict.why);
      if (verdict.kind === 'cut') return;
      if (verdict.kind !== 'refill' || end === null) continue;
      observe({ type: 'member:refilled', request: run.request, end });
      await this.#pause(place.attempts);
    }
    this.#open -= 1;
    this.#parts.onPlaceDone();
  }

  #lose(reason: 'given-up' | 'lost', why: string): void {
    this.#lost = { reason, why };
    const stopped = new RolloutError('CANCELLED', `its group came to nothing: ${why}`, {
      phase: 'queue',
    });
    for (const run of this.#runs) run.stop(stopped);
  }

  /** A machine that just failed gets a moment; the closing of the gate ends the wait, and the next attempt is turned away. */
  async #pause(attempts: number): Promise<void> {
    const { options, clock, gate } = this.#parts;
    const ms = options.refillPauseMs * 2 ** (attempts - 1);
    if (ms > 0) await clock.sleep(ms, gate.closing).catch(() => undefined);
  }

  /** Asked behind a wait, in which a sibling may have lost the group. */
  #isLost(): boolean {
    return this.#lost !== null;
  }

  /** Asked behind a wait, in which somebody may have cut it off. */
  #isCutOff(): boolean {
    return this.#isCut;
  }

  async #finish(members: readonly CollectedMember[]): Promise<GroupResult> {
    const { hooks, options, finishing, clock } = this.#parts;
    const group: CollectedGroup = {
      ...{ seed: this.seed, members, durationMs: clock.monotonicMs() - this.#startedMs },
      oldestVersion: oldestOf(members.map(versionOf)),
    };
    try {
      const finished = await finishGroup(group, { hooks, hookMs: options.hookMs }, finishing);
      if (finished.kind === 'kept') return finished;
      return this.#dropped(finished.reason, finished.detail);
    } catch {
      return this.#unfinished();
    }
  }

  #unfinished(): GroupResult {
    const remains = this.#places.map((place) => place.remains);
    return { kind: 'unfinished', seed: this.seed, remains };
  }

  #dropped(reason: DroppedGroup['reason'], detail: string | null): GroupResult {
    const ends = this.#places.map(({ lastEnd }) => lastEnd);
    return { kind: 'dropped', group: { seed: this.seed, reason, detail, ends } };
  }

  #request(place: MemberPlace): MemberRequest {
    const { options, runName, weightVersion } = this.#parts;
    const { groupIndex, firstIndex, row, rounds } = this.seed;
    const { memberIndex } = place;
    const attempt = place.nextAttempt();
    const round = rounds === 0 ? '' : `r${rounds}`;
    return {
      rolloutId: `${runName}-g${groupIndex}${round}-m${memberIndex}-a${attempt}`,
      ...{ groupIndex, memberIndex, index: firstIndex + memberIndex, attempt, row },
      weightVersion: weightVersion(),
      seed: options.samplingSeed === null ? null : options.samplingSeed + memberIndex,
      resume: options.unfinished.startsWith('resume') ? place.partial : [],
    };
  }

  #tellEnd(run: MemberRun, end: MemberEnd): void {
    const { request, durationMs } = run;
    const isLate = !this.#parts.gate.isOpen;
    this.#parts.observe({ type: 'member:ended', request, end, durationMs, isLate });
  }
}

/** null = one of them is unknown, or there are none. */
function oldestOf(versions: readonly (number | null)[]): number | null {
  const known = versions.filter((version) => version !== null);
  return known.length < versions.length || known.length === 0 ? null : Math.min(...known);
}

const versionOf = ({ request, end }: CollectedMember): number | null =>
  oldestVersion(request.weightVersion, end.samples);
