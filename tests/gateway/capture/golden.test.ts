import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { EngineKind } from '../../../src/engines/engine.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import {
  isWholeCapture,
  readCalls,
  type ReadCall,
} from '../../../src/gateway/capture/read-calls.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { loadCases, type GoldenCase } from '../golden.ts';
import { bearer, openCall, startRelay } from '../relay-fixture.ts';

interface CapturedCase extends GoldenCase {
  readonly engine: EngineKind;
  readonly calls: readonly CaseCall[];
  /** Per call what is kept of it; absent = not looked at. */
  readonly captured: readonly Readonly<Record<string, unknown>>[];
}

interface CaseCall {
  readonly path: string;
  readonly client?: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** One answer per request that the upstream gets of this call. */
  readonly upstream: readonly {
    readonly status: number;
    readonly type: string;
    readonly body: string;
    /** The connection breaks behind it. */
    readonly isCut?: boolean;
  }[];
  /** Fields of the last request; null = it does not have it. */
  readonly sent?: Readonly<Record<string, unknown>>;
  readonly isSentAsItCame?: boolean;
  readonly requests?: number;
  readonly status?: number;
  /** The whole body that the client gets. */
  readonly seen?: string;
  readonly hides?: readonly string[];
  readonly isCut?: boolean;
}

describe('what is captured of model calls', { timeout: 120_000 }, () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-capture-'));
  });
  after(() => rm(dir, { recursive: true, force: true }));

  for (const [index, each] of (loadCases('captured') as readonly CapturedCase[]).entries())
    it(`${each.case}: ${each.title}`, async () => {
      let answers: readonly CaseCall['upstream'][number][] = [];
      let asked = 0;
      await using upstream = await ChatUpstream.start((response) => {
        const answer = answers[asked];
        asked += 1;
        assert.ok(answer !== undefined, 'it is asked more often than it should be');
        response.writeHead(answer.status, { 'content-type': answer.type });
        if (answer.isCut !== true) response.end(answer.body);
        else response.write(answer.body, () => upstream.cutConnections());
      });
      const capture = new FileCapture({
        ...{ dir: path.join(dir, String(index)), clock: systemClock, logger: silentLogger },
      });
      await using running = await startRelay({ capture, engineKind: each.engine });
      const route = await running.route('r', `${upstream.url}/v1`);
      for (const call of each.calls) {
        [answers, asked] = [call.upstream, 0];
        await look(call, { url: running.url, headers: bearer(route) });
        const received = upstream.received.at(-1);
        const sent = JSON.parse(received?.body.toString() ?? '{}') as Record<string, unknown>;
        assert.equal(asked, call.requests ?? call.upstream.length);
        for (const [name, value] of Object.entries(call.sent ?? {}))
          assert.deepEqual(sent[name] ?? null, value, name);
        if (call.isSentAsItCame === true)
          assert.equal(received?.body.toString(), JSON.stringify(call.body));
      }
      await running.relay.revoke('r');
      const file = await running.relay.captured('r');
      assert.ok(file !== null);
      assert.ok(await isWholeCapture(file));
      const kept: ReadCall[] = [];
      for await (const call of readCalls(file)) kept.push(call);
      kept.sort((a, b) => a.call - b.call);
      assert.equal(kept.length, each.captured.length);
      for (const [at, wanted] of each.captured.entries()) {
        const found = factsOf(kept[at]!);
        for (const [name, value] of Object.entries(wanted))
          assert.deepEqual(found[name], value, `call ${at + 1}: ${name}`);
      }
    });
});

async function look(
  call: CaseCall,
  { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
): Promise<void> {
  const { client = 'a-client/1.0', body, status = 200, seen, hides = [], isCut = false } = call;
  const answer = await openCall(url + call.path, {
    headers: { ...headers, 'content-type': 'application/json', 'user-agent': client },
    body: JSON.stringify(body),
  });
  assert.equal(answer.statusCode, status);
  const pieces: Buffer[] = [];
  const read = (async () => {
    for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  })();
  if (isCut) await assert.rejects(read);
  else await read;
  const text = Buffer.concat(pieces).toString();
  if (seen !== undefined) assert.equal(text, seen);
  for (const hidden of hides) assert.ok(!text.includes(hidden), `${hidden} in ${text}`);
}

/** What the fixtures name. */
function factsOf(call: ReadCall): Readonly<Record<string, unknown>> {
  const { answer, facts } = call;
  const metrics = answer?.metrics ?? {};
  const extra = metrics.extra ?? {};
  return {
    ...call,
    ...{ status: facts['status'], problem: facts['problem'], tokens: facts['tokens'] },
    ...{ text: answer?.message, toolCalls: facts['sampled_tool_calls'] },
    finishReason: extra['finish_reason'] ?? null,
    weightVersion: extra['weight_version'],
    promptIds: metrics.prompt_token_ids ?? null,
    outputIds: metrics.completion_token_ids ?? null,
    logprobs: metrics.logprobs ?? null,
    usage: [metrics.prompt_tokens, metrics.completion_tokens],
  };
}
