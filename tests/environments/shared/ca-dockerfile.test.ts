import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCaCertificates } from '../../../src/environments/shared/ca-dockerfile.ts';

test('each stage gets the certificates right after its FROM, scratch and comments do not', () => {
  const text = [
    'ARG VERSION=1',
    'FROM --platform=linux/amd64 \\',
    '  debian:12 AS build',
    'RUN echo \\',
    '  from here',
    '# FROM nothing',
    'FROM scratch',
    'COPY --from=build /x /x',
    'from debian:12',
    'RUN true',
  ].join('\n');
  const shape = withCaCertificates(text, ['COPY .slipway /x'])
    .split('\n')
    .map((line) => (line.startsWith('ARG SSL_CERT_FILE=') ? 'CA' : line))
    .filter(
      (line) => !/^ARG [A-Z_]+=\/etc\/slipway/.test(line) && !line.startsWith('COPY .slipway'),
    );
  assert.deepEqual(shape, [
    'ARG VERSION=1',
    'FROM --platform=linux/amd64 \\',
    '  debian:12 AS build',
    'CA',
    'RUN echo \\',
    '  from here',
    '# FROM nothing',
    'FROM scratch',
    'COPY --from=build /x /x',
    'from debian:12',
    'CA',
    'RUN true',
  ]);
});
