import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ModelPart } from '../../../src/engines/model-call.ts';
import { SampledCalls, type ToolCallPiece } from '../../../src/engines/shared/sampled-calls.ts';

function piece(fields: Partial<ToolCallPiece>): ToolCallPiece {
  return { index: null, id: null, name: null, arguments: '', position: 0, count: 1, ...fields };
}

/** One line per part. */
function read(pieces: readonly (Partial<ToolCallPiece> | 'text')[]): {
  readonly lines: readonly string[];
  readonly calls: readonly string[];
} {
  const parts: ModelPart[] = [];
  const calls = new SampledCalls('req', (part) => parts.push(part));
  for (const each of pieces)
    if (each === 'text') calls.interrupt();
    else assert.equal(calls.add(piece(each)), null);
  calls.end();
  return {
    lines: parts.map((part) => {
      if (part.type === 'tool-call-start') return `start ${part.index} ${part.id} ${part.name}`;
      if (part.type === 'tool-call-delta') return `delta ${part.index} ${part.arguments}`;
      return part.type === 'tool-call-end' ? `end ${part.index}` : part.type;
    }),
    calls: calls.calls.map(({ id, name, arguments: given }) => `${id} ${name} ${given}`),
  };
}

describe('the pieces of tool calls', () => {
  it('of calls side by side may be mixed; each call ends once, a complete one when another begins', () => {
    const { lines } = read([
      { index: 0, id: 'a', name: 'run', arguments: '{' },
      { index: 1, id: 'b', name: 'see', arguments: '{}' },
      { index: 0, arguments: '}' },
      { index: 2, id: 'c', name: 'run', arguments: 'no JSON' },
    ]);
    assert.deepEqual(lines, [
      'start 0 a run',
      'delta 0 {',
      'start 1 b see',
      'delta 1 {}',
      'end 1',
      'delta 0 }',
      'end 0',
      'start 2 c run',
      'delta 2 no JSON',
      'end 2',
    ]);
  });

  it('end a complete call when a text begins, and leave an open one open', () => {
    const { lines } = read([
      { index: 0, id: 'a', name: 'run', arguments: '{}' },
      'text',
      { index: 1, id: 'b', name: 'run', arguments: '{' },
      'text',
      { index: 1, arguments: '}' },
    ]);
    assert.deepEqual(
      lines.filter((line) => line.startsWith('end') || line.startsWith('delta')),
      ['delta 0 {}', 'end 0', 'delta 1 {', 'delta 1 }', 'end 1'],
    );
  });

  it('keep white space that follows a complete call in its result', () => {
    const { calls } = read([
      { index: 0, id: 'a', name: 'run', arguments: '{}' },
      { index: 1, id: 'b', name: 'run', arguments: '{}' },
      { index: 0, arguments: '\n' },
    ]);
    assert.deepEqual(calls, ['a run {}\n', 'b run {}']);
  });

  it('without an index go on with the call whose id they name', () => {
    const { calls } = read([
      { id: 'a', name: 'run', arguments: '{"a":' },
      { id: 'b', name: 'run', arguments: '', position: 1, count: 2 },
      { id: 'a', arguments: '1}' },
      { id: 'b', arguments: '{}' },
    ]);
    assert.deepEqual(calls, ['a run {"a":1}', 'b run {}']);
  });

  it('without index, id and name go on with the calls in their order', () => {
    const { calls } = read([
      { id: 'a', name: 'run', position: 0, count: 2 },
      { id: 'b', name: 'see', position: 1, count: 2 },
      { arguments: '{"a":1}', position: 0, count: 2 },
      { arguments: '{"b":2}', position: 1, count: 2 },
    ]);
    assert.deepEqual(calls, ['a run {"a":1}', 'b see {"b":2}']);
  });

  it('take an id that comes after the name, until arguments need a handle', () => {
    assert.deepEqual(read([{ name: 'run' }, { id: 'a' }, { arguments: '{}' }]).calls, ['a run {}']);
    const late = [
      { name: 'run', arguments: '{' },
      { index: null, id: 'a', arguments: '}' },
    ];
    assert.deepEqual(read(late).calls, ['req-0 run {}']);
  });

  it('come in the order in which the calls began, also where a host says nothing of the first', () => {
    const { lines } = read([
      { index: 0, name: 'run' },
      { index: 1, name: 'see', arguments: '{}' },
    ]);
    assert.deepEqual(lines.slice(0, 2), ['start 0 req-0 run', 'start 1 req-1 see']);
  });

  it('are refused where a call has two names or goes on after its end', () => {
    const calls = new SampledCalls('req', () => undefined);
    calls.add(piece({ index: 0, id: 'a', name: 'run', arguments: '{}' }));
    calls.add(piece({ index: 1, id: 'b', name: 'run', arguments: '{' }));
    assert.match(calls.add(piece({ index: 0, arguments: 'x' })) ?? '', /goes on after/);
    assert.match(calls.add(piece({ index: 1, id: 'b', name: 'see' })) ?? '', /two names/);
  });

  it('are refused where there are more calls than any model makes in an answer', () => {
    const calls = new SampledCalls('req', () => undefined);
    const problems = Array.from({ length: 1_025 }, (_, index) =>
      calls.add(piece({ index, id: `c${index}`, name: 'run', arguments: '{}' })),
    );
    assert.match(problems.pop() ?? '', /more than 1024 tool calls/);
    assert.ok(problems.every((problem) => problem === null));
    assert.equal(calls.calls.length, 1_024);
    assert.equal(calls.add(piece({ index: 0 })), null);
  });
});
