import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '../../../../src/core/errors.ts';
import {
  EngineError,
  engineFailure,
} from '../../../../src/environments/docker/engine/engine-error.ts';

const system = (code: string): Error => Object.assign(new Error(`system ${code}`), { code });
const running = {
  code: 'EXEC_FAILED',
  phase: 'agent',
  what: 'a command',
  isRunning: true,
} as const;
const starting = { code: 'ENVIRONMENT_START_FAILED', phase: 'environment', what: 'start' } as const;

const table = [
  [
    'a missing container, running',
    new EngineError(404, 'No such container: x'),
    running,
    'ENVIRONMENT_LOST',
  ],
  [
    'a missing container, starting',
    new EngineError(404, 'No such container: x'),
    starting,
    'ENVIRONMENT_START_FAILED',
  ],
  [
    'a stopped container',
    new EngineError(409, 'Container x is not running'),
    running,
    'ENVIRONMENT_LOST',
  ],
  [
    'a paused container',
    new EngineError(409, 'Container x is paused, unpause'),
    running,
    'ENVIRONMENT_LOST',
  ],
  [
    'a full disk of the engine',
    new EngineError(500, 'write /x: no space left on device'),
    starting,
    'DISK_FULL',
  ],
  ['a full disk of ours', system('ENOSPC'), running, 'DISK_FULL'],
  ['no socket', system('ENOENT'), running, 'ENVIRONMENT_UNAVAILABLE'],
  ['a socket of others', system('EACCES'), starting, 'ENVIRONMENT_UNAVAILABLE'],
  ['a daemon that is down', system('ECONNREFUSED'), starting, 'ENVIRONMENT_UNAVAILABLE'],
  ['a daemon that hangs up', system('ECONNRESET'), running, 'ENVIRONMENT_UNAVAILABLE'],
  ['any other answer', new EngineError(500, 'something else'), running, 'EXEC_FAILED'],
  ['any other failure', new Error('something else'), starting, 'ENVIRONMENT_START_FAILED'],
] as const;

for (const [what, error, of, code] of table)
  test(`${what} becomes ${code}`, () => {
    const failure = engineFailure(error, of);
    assert.equal(failure.code, code);
    assert.equal(failure.phase, of.phase);
    assert.equal(failure.cause, error);
  });

test('a typed error passes through as it is', () => {
  const typed = new RolloutError('IMAGE_NOT_FOUND', 'no image', { phase: 'environment' });
  assert.equal(engineFailure(typed, running), typed);
});

test('a socket that may not be opened is answered with what to do', () => {
  assert.match(engineFailure(system('EACCES'), starting).remedy ?? '', /group "docker"/);
});
