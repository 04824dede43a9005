/** The examples for trainers in Python, over samples of a real server and engine, with the classes of the trainers' own packages. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { interpreterFile, milesPeerDir } from '../../scripts/setup/miles-peer.js';
import { trainerPeersDir } from '../../scripts/setup/trainer-peers.js';
import { ServeFixture } from '../app/serve-fixture.ts';
import { serve } from '../engines/server/serving.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

it('samples become what verl, SkyRL, slime and prime-rl take', { timeout: 120_000 }, async () => {
  for (const dir of [trainerPeersDir(), milesPeerDir()])
    assert.ok(existsSync(dir), 'no trainers: npm run setup -- tests');
  await using fixture = await ServeFixture.create();
  const server = await fixture.start();
  await using engine = await serve({});
  const folders = [
    ...['python', 'examples/trainers'].map((dir) => path.join(repositoryDir, dir)),
    ...[trainerPeersDir(), milesPeerDir()],
  ];
  const { stdout } = await promisify(execFile)(
    readFileSync(path.join(milesPeerDir(), interpreterFile), 'utf8').trim(),
    [
      ...['-B', path.join(repositoryDir, 'tests/support/trainer-examples.py')],
      ...[...folders, server.controlUrl, `${engine.url}/v1`],
    ],
    { env: { PATH: process.env['PATH'] } },
  );
  // Two calls with one prompt are two samples of six tokens.
  assert.deepEqual(JSON.parse(stdout), {
    verl: {
      ...{ registered: ['slipway'], reward: 0.5, lengths: [6, 6, 6], trained: 6 },
      fields: [
        ...['extra_fields', 'metrics', 'num_turns', 'prompt_ids', 'response_ids'],
        ...['response_logprobs', 'response_mask', 'reward_score'],
      ],
    },
    skyrl: { rewards: [0.5, 0.5, 0], trained: [6, 6, 0], metrics: { 'slipway/lost': 1 } },
    // A control: the trainer's own check sees masks that do not fit.
    'shifted masks': 'refused',
    slime: [0, 0, 1, 1].map((index) => [index, 0.5, 'completed', 'z', true, 6]),
    'slime masked': [true, true, false, false].map((isOut) => [isOut, isOut ? 0 : 6]),
    'prime-rl': [0.25, 0.25, -0.25, -0.25].map((advantage) => [advantage, 1, 6]),
    'prime-rl masked': 2,
  });
});
