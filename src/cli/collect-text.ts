/** A collection in words. */
import type { CollectorEvent, CollectPlan, DroppedGroup } from '../app/collect.ts';
import type { CollectedBatchLine } from '../wire/api/collected-lines.ts';

export function collectPlanText(plan: CollectPlan): string {
  const { rows, skippedLines, batches, batchGroups, startGroups, groupSize, openGroups } = plan;
  const more = startGroups > batchGroups ? ` out of ${startGroups} started` : '';
  return [
    `${rows} rows${skippedLines === 0 ? '' : `, ${skippedLines} lines are no JSON object and are skipped`}`,
    `${batches === null ? 'batches until the rows end' : `${batches} batches`} of ${batchGroups} groups${more}, ${groupSize} rollouts each`,
    ...(openGroups === 0 ? [] : [`${openGroups} groups of an earlier run are rolled out first`]),
  ].join('\n');
}

export function batchText(line: CollectedBatchLine): string {
  const { batch, groups, started, collect_ms: ms, mean_reward: reward, dropped, abort } = line;
  const mean = reward === null ? 'no reward' : `mean reward ${reward.toFixed(3)}`;
  const words = Object.entries(dropped).map(([reason, count]) => `${count} ${reason}`);
  return [
    `batch ${batch + 1}: ${groups} of ${started.groups} groups in ${(ms / 1_000).toFixed(1)} s, ${mean}`,
    ...(line.refilled === 0 ? [] : [`  ${line.refilled} lost rollouts were made anew`]),
    ...(words.length === 0 ? [] : [`  dropped: ${words.join(', ')}`]),
    ...(line.returned === 0 ? [] : [`  ${line.returned} groups wait for the next batch`]),
    ...(abort === null ? [] : [`  ${abortText(abort)}`]),
    ...(abort?.problems ?? []).map((problem) => `  problem: ${problem}`),
  ].join('\n');
}

function abortText(abort: NonNullable<CollectedBatchLine['abort']>): string {
  const how = Object.entries(abort.by).map(([word, count]) => `${count} ${word}`);
  const end = abort.is_complete ? 'all confirmed gone' : 'not all is confirmed gone';
  const rollouts = `${abort.rollouts} rollouts (${how.join(', ') || 'none'})`;
  const engines = `${abort.engines} ${abort.engines === 1 ? 'engine' : 'engines'}`;
  return `abort: ${rollouts}, ${engines}, agent hook ${abort.hook}, ${abort.duration_ms} ms, ${end}`;
}

const everyMs = 10_000;

/** A line now and then while a batch is collected. */
export class CollectProgress {
  readonly #say: (text: string) => void;
  #timer: NodeJS.Timeout | null = null;
  #needed = 0;
  #live = 0;
  #ended = 0;
  #refilled = 0;
  #complete = 0;

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  begin({ batchGroups }: CollectPlan): void {
    this.#needed = batchGroups;
    this.#timer = setInterval(() => this.#tell(), everyMs);
    this.#timer.unref();
  }

  see(event: CollectorEvent): void {
    if (event.type === 'member:started') this.#live += 1;
    else if (event.type === 'member:ended') {
      this.#live -= 1;
      this.#ended += 1;
    } else if (event.type === 'member:refilled') this.#refilled += 1;
    else if (event.type === 'group:kept') this.#complete += 1;
    else if (event.type === 'group:dropped') this.#tellLost(event.group);
  }

  /** What a filter or the abort drops is as it should be; anything else is news. */
  #tellLost({ seed, reason, detail, ends }: DroppedGroup): void {
    if (reason === 'filtered' || reason === 'aborted' || reason === 'surplus') return;
    const message = ends.find((end) => end?.message != null)?.message ?? null;
    const why = [detail, message].filter((part) => part !== null).join(': ');
    this.#say(`  row ${seed.row.rowIndex}: its group is ${reason}${why === '' ? '' : `, ${why}`}`);
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  #tell(): void {
    this.#say(
      `  ${this.#live} rollouts run, ${this.#ended} ended, ${this.#refilled} made anew; ` +
        `${this.#complete} groups handed over, ${this.#needed} to a batch`,
    );
  }
}
