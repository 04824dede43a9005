import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameReader } from '../../../../src/environments/docker/engine/frame-reader.ts';

function frame(stream: 1 | 2, text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

const recorded = Buffer.concat([
  frame(1, 'first '),
  frame(2, 'oops'),
  frame(1, ''),
  frame(1, 'second'),
  frame(2, '!'),
]);

for (const size of [1, 3, 7, 8, 9, 1000])
  test(`frames are told apart when they arrive in pieces of ${size} bytes`, () => {
    const seen = { stdout: '', stderr: '' };
    const reader = new FrameReader((stream, bytes) => (seen[stream] += bytes.toString()));
    for (let at = 0; at < recorded.length; at += size)
      reader.write(recorded.subarray(at, at + size));
    assert.deepEqual(seen, { stdout: 'first second', stderr: 'oops!' });
  });

test('a piece of a frame is passed on before the frame is whole', () => {
  const seen: string[] = [];
  const reader = new FrameReader((_stream, bytes) => seen.push(bytes.toString()));
  reader.write(frame(1, 'half and half').subarray(0, 12));
  assert.deepEqual(seen, ['half']);
});
