/** Rollouts that are to be trained on, from the request to the samples that the API hands out: on disk before anybody is told of the end, and what is said of them is true. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { auditSamples } from '../../src/app/audit-samples.ts';
import type { RunningServer } from '../../src/app/serve.ts';
import type { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { RolloutDetailDocument } from '../../src/wire/api/rollout.ts';
import type { SampleLine } from '../../src/wire/samples/sample-lines.ts';
import { ChatUpstream, type Answer } from '../fakes/chat-upstream.ts';
import { until } from '../support/until.ts';
import { nullRollout, ServeFixture } from './serve-fixture.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Each call goes on from the one before; ids only for who asks for them, and a payload only where that is asked for. */
function growing(): Answer {
  const path: number[] = [7, 8];
  return (response, { body }) => {
    const asked = JSON.parse(body.toString()) as Fields;
    const prompt = [...path];
    const own = [100 + path.length, 101 + path.length];
    path.push(...own, 9);
    const ids = { prompt_token_ids: prompt };
    const choice = {
      ...{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' },
      ...(asked['return_token_ids'] === true && { token_ids: own }),
      ...(asked['logprobs'] === true && {
        logprobs: { content: own.map((id) => ({ token: 'x', logprob: -id / 7 })) },
      }),
    };
    const routed = Buffer.from(Int32Array.from({ length: (prompt.length + 1) * 4 }, (_, at) => at).buffer); // prettier-ignore
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        ...(asked['return_token_ids'] === true && ids),
        choices: [choice],
        ...(asked['return_routed_experts'] === true && {
          sglext: { routed_experts: routed.toString('base64') },
        }),
      }),
    );
  };
}

/** An engine that knows of no ids, and refuses to hear of them. */
const withoutIds: Answer = (response, { body }) => {
  const field = /return_\w+/.exec(body.toString())?.[0];
  response.writeHead(field === undefined ? 200 : 400, { 'content-type': 'application/json' });
  response.end(
    field === undefined
      ? '{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
      : JSON.stringify({ error: { message: `Unrecognized request argument supplied: ${field}` } }),
  );
};

class Bench implements AsyncDisposable {
  readonly server: RunningServer;
  readonly #controller: RolloutController;
  readonly #fixture: ServeFixture;

  private constructor(fixture: ServeFixture, server: RunningServer, controller: RolloutController) {
    this.#fixture = fixture;
    this.server = server;
    this.#controller = controller;
  }

  static async open(flags: Readonly<Record<string, string>> = {}): Promise<Bench> {
    const fixture = await ServeFixture.create();
    const server = await fixture.start(flags);
    const controller = await fixture.controller({ serverUrl: server.controlUrl });
    return new Bench(fixture, server, controller);
  }

  /** Resolves with its last callback. */
  async run(
    id: string,
    { does = {}, train, answer }: { does?: Fields; train?: unknown; answer?: Answer },
  ) {
    const { metadata, ...rest } = nullRollout(id, does);
    await using upstream = answer === undefined ? null : await ChatUpstream.start(answer);
    return await this.#controller.run({
      ...rest,
      ...(upstream !== null && { chat_completions_url: `${upstream.url}/v1` }),
      metadata: { ...metadata, ...(train !== undefined && { slipway_train: train }) },
    });
  }

  async get(route: string): Promise<Response> {
    return await fetch(`${this.server.controlUrl}${route}`);
  }

  async samplesOf(id: string): Promise<Fields | null> {
    const detail = (await (await this.get(`/api/v1/rollouts/${id}`)).json()) as RolloutDetailDocument; // prettier-ignore
    return detail.outcome?.samples ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fixture[Symbol.asyncDispose]();
  }
}

async function audited(text: string) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-samples-'));
  try {
    const file = path.join(dir, 'samples.ndjson');
    await writeFile(file, text);
    return await auditSamples(file, never);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

describe('a rollout that is to be trained on', { timeout: 120_000 }, () => {
  it('has its samples when its end is told, though the server keeps no calls and knows nothing of the engine', async () => {
    await using bench = await Bench.open({ '--gateway-capture': 'false' });
    const end = await bench.run('r1', {
      ...{ does: { agent_calls: 2, reward: 0.25 }, answer: growing() },
      train: { routed_experts: true },
    });
    assert.equal(end.status, 'success');
    const said = await bench.samplesOf('r1');
    const { link, ...counts } = said ?? {};
    assert.deepEqual(counts, {
      ...{ count: 1, tokens: 7, trained_tokens: 4, without_log_probs: 0 },
      ...{ labels: { opening: 1 }, calls: 2, calls_without_ids: 0, not_trainable: null },
    });
    const status = (await (await bench.get('/rollout/r1/status')).json()) as Fields;
    assert.deepEqual(status['samples'], said);
    const response = await bench.get('/api/v1/rollouts/r1/samples');
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson');
    const text = await response.text();
    assert.equal((await audited(text)).link, link);
    await assert.rejects(audited(text.replace('[7,8,102,', '[7,8,103,')), /SAMPLES_INVALID|call 1/);
    const sample = JSON.parse(text.split('\n')[1] ?? '') as SampleLine;
    assert.deepEqual(sample.tokens, [7, 8, 102, 103, 9, 105, 106]);
    assert.deepEqual(sample.loss_mask, [1, 1, 0, 1, 1]);
    assert.deepEqual(sample.log_probs, [-102 / 7, -103 / 7, 0, -105 / 7, -106 / 7]);
    assert.deepEqual([sample.reward, sample.weight], [0.25, 1]);
    const miles = await bench.get('/api/v1/rollouts/r1/samples?format=miles&layers=2');
    const bytes = Buffer.from(await miles.arrayBuffer());
    const header = JSON.parse(
      bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString(),
    ) as Readonly<Record<string, { readonly shape: readonly number[] } | undefined>>;
    assert.deepEqual(header['rollout_routed_experts.0']?.shape, [6, 2, 2]);
    const files = (await (await bench.get('/api/v1/rollouts/r1/files')).json()) as {
      readonly files: readonly { readonly path: string }[];
    };
    assert.ok(files.files.some((file) => file.path === 'samples.ndjson'));
  });

  it('says why it has none', async () => {
    await using bench = await Bench.open({ '--rollouts-train': 'true' });
    const rows = [
      ['no-ids', { does: { agent_calls: 1 }, answer: withoutIds }],
      ['no-calls', { does: {}, answer: growing() }],
      ['no-calls', { does: {} }],
      ['outcome', { does: { agent_calls: 1, fail: 'ENVIRONMENT_LOST' }, answer: growing() }],
      ['outcome', { train: { picker: 'best' } }],
    ] as const;
    for (const [at, [reason, row]] of rows.entries()) {
      await bench.run(`r${at}`, row);
      const said = await bench.samplesOf(`r${at}`);
      assert.equal((said?.['not_trainable'] as Fields | null)?.['reason'], reason, `row ${at}`);
      const refused = await bench.get(`/api/v1/rollouts/r${at}/samples`);
      const { code } = (await refused.json()) as Fields;
      assert.deepEqual([refused.status, code], [409, 'SAMPLES_UNAVAILABLE']);
    }
    await bench.run('unwanted', { does: { agent_calls: 1 }, train: false, answer: growing() });
    assert.equal(await bench.samplesOf('unwanted'), null);
    const status = (await (await bench.get('/rollout/unwanted/status')).json()) as Fields;
    assert.deepEqual(Object.keys(status), ['rollout_id', 'status', 'reward', 'err_message']);
  });

  it('that is cancelled has none', async () => {
    await using bench = await Bench.open();
    const ending = bench
      .run('r1', { does: { duration_ms: 60_000 }, train: true })
      .catch(() => null);
    await until('it runs', async () => {
      const { status } = (await (await bench.get('/rollout/r1/status')).json()) as Fields;
      return status === 'running';
    });
    await fetch(`${bench.server.controlUrl}/rollout/cancel`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: '{"ids":["r1"]}',
    });
    const said = await bench.samplesOf('r1');
    assert.equal((said?.['not_trainable'] as Fields | null)?.['reason'], 'cancelled');
    void ending;
  });

  it('may be on a process of the gateway of its own', async () => {
    await using bench = await Bench.open({ '--gateway-workers': '1', '--data-port': '0' });
    await bench.run('r1', { does: { agent_calls: 2 }, train: true, answer: growing() });
    assert.equal((await bench.samplesOf('r1'))?.['trained_tokens'], 4);
  });
});
