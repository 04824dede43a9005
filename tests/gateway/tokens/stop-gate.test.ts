import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StopGate } from '../../../src/gateway/tokens/stop-gate.ts';
import type { TurnPart } from '../../../src/sessions/codec.ts';

const text = (said: string): TurnPart => ({ type: 'text-delta', text: said });
const thought = (said: string): TurnPart => ({ type: 'reasoning-delta', text: said });
const message = (said: string, reasoning: string | null = null) => ({
  ...{ text: said, reasoning, toolCalls: [] },
});

test('without stop strings everything goes on at once', () => {
  const gate = new StopGate([]);
  const parts = [thought('a'), text('b')];
  assert.equal(gate.push(parts), parts);
  assert.deepEqual(gate.end([], { message: message('b', 'a'), stop: null }).parts, []);
});

test('what may become a stop string waits, and goes on when it does not', () => {
  const gate = new StopGate(['END', 'NO']);
  assert.deepEqual(gate.push([text('one E')]), [text('one ')]);
  assert.deepEqual(gate.push([text('N')]), []);
  assert.deepEqual(gate.push([text('TER N')]), [text('ENTER ')]);
  const { parts } = gate.end([], { message: message('one ENTER N'), stop: null });
  assert.deepEqual(parts, [text('N')]);
});

test('the stop string that ended an answer, and what the last id has behind it, is shown to nobody', () => {
  const gate = new StopGate(['END']);
  assert.deepEqual(gate.push([text('one E')]), [text('one ')]);
  const last = { message: message('one END.'), stop: 'END' };
  assert.deepEqual(gate.end([text('ND.')], last), { parts: [], message: message('one ') });
});

test('a stop string ends thoughts as well, and never reaches over into the text', () => {
  const gate = new StopGate(['END']);
  assert.deepEqual(gate.push([thought('a E')]), [thought('a ')]);
  assert.deepEqual(gate.push([text('ND')]), [thought('E'), text('ND')]);
  const ended = new StopGate(['END']);
  const last = { message: message('', 'a END'), stop: 'END' };
  assert.deepEqual(ended.end([thought('a END')], last), {
    ...{ parts: [thought('a ')], message: message('', 'a ') },
  });
});
