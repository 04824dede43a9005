/** What a server has to be, to be the server of an evaluation. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { ownServerConfig, reachServer } from '../../../src/app/eval/eval-server.ts';
import { compileEvalConfig } from '../../../src/config/eval/read-eval-config.ts';
import { readMachine } from '../../../src/config/machine.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';

const answers: readonly (readonly [
  what: string,
  status: number,
  body: string,
  said: string | number | null,
])[] = [
  ['what it runs at once', 200, '{"capacity":{"max_concurrent":3}}', 3],
  ['nothing about that', 200, '{"status":"ok"}', null],
  ['that it wants a key', 401, '', null],
  ['as a server of models does', 200, '', 'SERVER_UNREACHABLE'],
  ['that it knows no such path', 404, '{}', 'SERVER_UNREACHABLE'],
  ['that it cannot', 503, '{}', 'SERVER_UNREACHABLE'],
];

describe('a server that is named', () => {
  for (const [what, status, body, said] of answers)
    it(`and says ${what} is ${typeof said === 'string' ? 'refused' : 'taken'}`, async () => {
      const server = createServer((_request, response) => response.writeHead(status).end(body));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      try {
        const reached = reachServer({ url, key: null }, never);
        if (typeof said === 'string')
          await assert.rejects(reached, (error) => isRolloutError(error, 'SERVER_UNREACHABLE'));
        else assert.equal((await reached).capacity, said);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
});

describe('a server in this process', () => {
  for (const [name, asked] of [
    ['mock', 'openai/mock'],
    ['Qwen/Qwen3-4B', 'openai/Qwen/Qwen3-4B'],
    ['openai/mock', 'openai/mock'],
  ] as const)
    it(`asks for the model ${name} by its whole name`, () => {
      const machine = readMachine({ HOME: '/home/me' }, '/here');
      const document = { experiment: { dataset: 'rows.jsonl', model_path: name } };
      const config = compileEvalConfig({ flags: {}, document, file: '/conf/e.toml' }, machine);
      const { backend } = ownServerConfig(config, '/results/server', { machine });
      assert.equal((backend.native as { readonly model: string | null }).model, asked);
    });
});
