import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countFixtures } from './counted-fixtures.ts';
import { checkForms } from './equal-forms.ts';
import { fuzzRequests } from './fuzzed-requests.ts';
import { fuzzStreams } from './fuzzed-streams.ts';
import { judged, type ProvenDialect } from './judged-answer.ts';
import { seeByName } from './named-events.ts';

describe('the dialects, small (all of it: npm run prove -- dialects)', { timeout: 120_000 }, () => {
  it('have two hundred fixtures and more', () => {
    assert.ok(countFixtures().total >= 200);
  });

  it('answer requests with any fault in their own shape, and lose no text of those that they take', async () => {
    const { answered, refused, problems } = await fuzzRequests(120, 1);
    assert.deepEqual(problems, []);
    assert.ok(answered > 20 && refused > 20, `${answered} answered, ${refused} refused`);
  });

  it('come to exactly one end whatever their upstream sends', async () => {
    const { endings, problems } = await fuzzStreams(120, 1);
    assert.deepEqual(problems, []);
    assert.ok((endings['streamed'] ?? 0) > 20, JSON.stringify(endings));
    assert.ok((endings['failed-in-stream'] ?? 0) > 20, JSON.stringify(endings));
  });

  for (const dialect of ['messages', 'responses'] as const)
    it(`show every event of ${dialect} to who listens for names alone, and none without them`, async () => {
      const { sent, seen, seenOfDataOnly } = await seeByName(dialect);
      assert.ok(sent > 300);
      assert.deepEqual({ seen, seenOfDataOnly }, { seen: sent, seenOfDataOnly: 0 });
    });

  it('say the same streamed and whole', () => {
    checkForms(100, 1);
  });
});

describe('the judge of answers', () => {
  const answer = (status: number, body: string, type = 'application/json') => ({
    ...{ status, headers: { 'content-type': type }, body: Buffer.from(body) },
  });
  const stream = 'text/event-stream';
  const wrong: readonly (readonly [string, ProvenDialect, ReturnType<typeof answer>])[] = [
    ['a failure of the gateway', 'messages', answer(500, '{"type":"error"}')],
    ['the envelope of another dialect', 'messages', answer(400, '{"error":{"message":"x"}}')],
    ['text', 'responses', answer(400, 'Bad request')],
    ['a chat completion', 'responses', answer(200, '{"object":"chat.completion"}')],
    ['a stream without an end', 'messages', answer(200, ': nothing\n\n', stream)],
    [
      'an event without its name',
      'responses',
      answer(200, 'data: {"type":"response.created","sequence_number":0}\n\n', stream),
    ],
  ];
  for (const [what, dialect, given] of wrong)
    it(`finds ${what}`, () => {
      assert.throws(() => judged(dialect, given));
    });
});
