import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dockerfileBases } from '../../../src/environments/shared/dockerfile-bases.ts';

const rows: readonly { title: string; text: string; bases: readonly string[] }[] = [
  {
    title: 'one FROM',
    text: 'FROM debian:bookworm-slim\nRUN true',
    bases: ['debian:bookworm-slim'],
  },
  { title: 'lower case and flags', text: 'from --platform=linux/amd64 a:1 as x\n', bases: ['a:1'] },
  {
    title: 'stages of the file and scratch are not outside',
    text: 'FROM a AS Build\nFROM scratch\nCOPY --from=build /x /\nCOPY --from=0 /x /\nFROM build\n',
    bases: ['a'],
  },
  {
    title: 'defaults of global ARGs',
    text: 'ARG V=3.13\nARG B=python:${V}\nFROM ${B}-slim\nFROM img:${NOPE:-1}\nFROM x:$V',
    bases: ['python:3.13-slim', 'img:1', 'x:3.13'],
  },
  { title: 'an ARG without a value leaves the name out', text: 'ARG B\nFROM $B\n', bases: [] },
  {
    title: 'COPY --from and mounts name images too',
    text: 'FROM a\nCOPY --from=tool:1 /b /b\nRUN --mount=type=bind,from=other:2,target=/x true',
    bases: ['a', 'tool:1', 'other:2'],
  },
  {
    title: 'comments, continued lines and here-documents',
    text: '# FROM no\nFROM \\\n  # still no\n  a\nRUN <<EOT\nFROM inside\nEOT\nCOPY <<-"E" /f\n\tFROM z\n\tE\nFROM b',
    bases: ['a', 'b'],
  },
];

for (const row of rows)
  test(`outside images of a Dockerfile: ${row.title}`, () => {
    assert.deepEqual(dockerfileBases(row.text), row.bases);
  });
