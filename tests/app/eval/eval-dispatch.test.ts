/** What ends an evaluation at once, whatever still runs: a server that has lost a part, a journal that cannot be written. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Dataset } from '../../../src/app/eval/dataset.ts';
import { EvalDispatch, type DispatchParts } from '../../../src/app/eval/eval-dispatch.ts';
import { EvalFolder } from '../../../src/app/eval/eval-folder.ts';
import { EvalItems } from '../../../src/app/eval/eval-items.ts';
import type { EvalEvent } from '../../../src/app/eval/eval-events.ts';
import { compileEvalConfig } from '../../../src/config/eval/read-eval-config.ts';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { ServeFixture } from '../serve-fixture.ts';

let fixture: ServeFixture;
let url = '';
before(async () => {
  fixture = await ServeFixture.create();
  url = (await fixture.start({ '--store': 'memory' })).controlUrl;
});
after(() => fixture[Symbol.asyncDispose]());

interface Dispatched extends AsyncDisposable {
  readonly items: EvalItems;
  readonly run: (concurrency: number) => Promise<RolloutError | null>;
}

async function dispatchOf(
  name: string,
  rows: readonly unknown[],
  parts: {
    readonly lost?: Promise<Error>;
    readonly onEvent?: (event: EvalEvent, items: EvalItems) => void;
  },
): Promise<Dispatched> {
  const file = path.join(fixture.root, `${name}.jsonl`);
  const lines = rows.map((row) => `${JSON.stringify({ metadata: { null: row } })}\n`);
  await writeFile(file, lines.join(''));
  const { machine, clock } = fixture.ports;
  const document = { experiment: { dataset: file } };
  const config = compileEvalConfig({ flags: {}, document, file: `${file}.toml` }, machine);
  const options = { file, mode: null, isChosen: () => true, limit: null, signal: never };
  const dataset = await Dataset.open(options);
  const items = new EvalItems(dataset.size, 1);
  const dispatch = new EvalDispatch({
    ...{ config, dataset, clock, model: null },
    folder: new EvalFolder(fixture.root, name),
    server: {
      ...{ url, key: null, capacity: null, shown: url, isOwn: true },
      lost: parts.lost ?? new Promise(() => undefined),
      look: () => Promise.resolve(null),
      stop: () => Promise.resolve(),
    },
    record: async (event) => {
      await Promise.resolve();
      parts.onEvent?.(event, items);
      items.apply(event);
    },
    onItem: () => undefined,
    note: () => undefined,
  } satisfies DispatchParts);
  return {
    items,
    run: (concurrency) => dispatch.run(items.all, { concurrency, signal: never }),
    [Symbol.asyncDispose]: () => dataset[Symbol.asyncDispose](),
  };
}

const endless = { duration_ms: 600_000 };
const statesOf = ({ all }: EvalItems): readonly string[] => all.map(({ state }) => state);

describe('an evaluation that cannot go on', { timeout: 120_000 }, () => {
  it('halts when its server has lost its backend: what ran is pending', async () => {
    const lost = Promise.withResolvers<Error>();
    const why = new RolloutError('BACKEND_LOST', 'the thread is gone', { phase: 'server' });
    await using dispatched = await dispatchOf('lost', [endless, endless, endless], {
      lost: lost.promise,
      onEvent: (event, { all }) => {
        if (event.type === 'item:started' && all.some(({ state }) => state === 'running'))
          lost.resolve(why);
      },
    });
    assert.equal(await dispatched.run(2), why);
    assert.deepEqual(statesOf(dispatched.items), ['pending', 'pending', 'pending']);
  });

  it('takes a rollout that fails with a lost backend for no failure of its row', async () => {
    await using dispatched = await dispatchOf('told', [{ fail: 'BACKEND_LOST' }, endless], {});
    assert.equal((await dispatched.run(1))?.code, 'BACKEND_LOST');
    assert.deepEqual(statesOf(dispatched.items), ['pending', 'pending']);
  });

  it('rejects at once when its journal cannot be written, and acknowledges nothing', async () => {
    await using dispatched = await dispatchOf('full', [{ duration_ms: 0 }, endless], {
      onEvent: (event) => {
        if (event.type !== 'item:started') throw new Error('no room');
      },
    });
    await assert.rejects(dispatched.run(2), (error) => isRolloutError(error, 'JOURNAL_FAILED'));
    assert.ok(!statesOf(dispatched.items).includes('ended'));
  });
});
