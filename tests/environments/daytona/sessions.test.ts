import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { LogDecoder } from '../../../src/environments/daytona/sessions/log-decoder.ts';
import {
  endOfInput,
  inputLines,
  sessionScript,
} from '../../../src/environments/daytona/sessions/session-script.ts';

const mark = 'c0ffee00c0ffee00';

/** Lines as the daemon logs them: each with its stream's number three times, and always with an end. */
function logged(stream: 1 | 2, output: Buffer): Buffer {
  const lines = output.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return Buffer.from(
    lines.map((line) => `${String.fromCharCode(stream).repeat(3)}${line}\n`).join(''),
    'latin1',
  );
}

function decoded(
  log: Buffer,
  pieceBytes = 7,
): { readonly bytes: Record<'stdout' | 'stderr', Buffer>; readonly decoder: LogDecoder } {
  const bytes = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  const decoder = new LogDecoder(mark, {
    onBytes: (stream, piece) => {
      bytes[stream] = Buffer.concat([bytes[stream], piece]);
    },
  });
  for (let at = 0; at < log.length; at += pieceBytes)
    decoder.write(log.subarray(at, at + pieceBytes));
  return { bytes, decoder };
}

function ran(argv: readonly string[], input: Buffer): ReturnType<typeof decoded> {
  const result = spawnSync('sh', ['-c', sessionScript(argv, mark)], {
    input: `${inputLines(input)}${endOfInput}\n`,
    maxBuffer: 64 * 1024 * 1024,
  });
  return decoded(Buffer.concat([logged(1, result.stdout), logged(2, result.stderr)]));
}

const outputs: Readonly<
  Record<
    string,
    {
      readonly argv: readonly string[];
      readonly input?: Buffer;
      readonly stdout: Buffer;
      readonly stderr?: string;
      readonly exitCode?: number;
    }
  >
> = {
  'no output at all': { argv: ['true'], stdout: Buffer.alloc(0) },
  'text without an end of line': { argv: ['printf', 'a\nb'], stdout: Buffer.from('a\nb') },
  'bytes that are no text': {
    argv: ['printf', '\\001\\001\\001\\002\\000\\377\\n'],
    stdout: Buffer.from([1, 1, 1, 2, 0, 255, 10]),
  },
  'both streams and a code': {
    argv: ['sh', '-c', 'echo out; echo err >&2; exit 3'],
    stdout: Buffer.from('out\n'),
    stderr: 'err\n',
    exitCode: 3,
  },
  'the beginning of the mark': {
    argv: ['printf', mark.slice(0, 12)],
    stdout: Buffer.from(mark.slice(0, 12)),
  },
  'arguments with quotes': {
    argv: ['printf', '%s', `it's "$HOME"`],
    stdout: Buffer.from(`it's "$HOME"`),
  },
};

for (const [what, { argv, stdout, stderr = '', exitCode = 0 }] of Object.entries(outputs))
  test(`a session passes ${what} exactly`, () => {
    const { bytes, decoder } = ran(argv, Buffer.alloc(0));
    assert.deepEqual(bytes.stdout, stdout);
    assert.equal(bytes.stderr.toString('utf8'), stderr);
    assert.equal(decoder.exitCode, exitCode);
    assert.ok((decoder.shell ?? 0) > 1);
  });

test('a session passes input of any bytes, in many lines, and its end', () => {
  const input = randomBytes(200_000);
  const { bytes, decoder } = ran(['cat'], input);
  assert.ok(bytes.stdout.equals(input));
  assert.equal(decoder.exitCode, 0);
});

test('control: without the encoding the daemon changes what a program wrote', () => {
  const plain = spawnSync('printf', ['a\nb']).stdout;
  const log = logged(1, plain).toString('latin1').replaceAll('\x01', '');
  assert.notEqual(log, plain.toString('latin1'));
});

test('lines of the daemon itself between ours are left out', () => {
  const text = Buffer.from(`hello ${mark} 0\n`).toString('base64');
  const end = Buffer.from(`${mark}\n`).toString('base64');
  const log = Buffer.concat([
    logged(1, Buffer.from(`bash: warning: no job control\n${text}\n`)),
    logged(2, Buffer.from(`${end}\n`)),
  ]);
  const { bytes, decoder } = decoded(log, 1);
  assert.equal(bytes.stdout.toString('utf8'), 'hello ');
  assert.equal(decoder.exitCode, 0);
});
