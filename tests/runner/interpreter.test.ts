import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { runnerPackageDir, runnerVariables } from '../../src/runner/interpreter.ts';

test('code in Python gets the variables of the server, without those that are for the server itself', () => {
  const given = {
    HOME: '/home',
    SLIPWAY_API_KEY: 'key',
    SLIPWAY_PYTHON: 'py',
    PYTHONPATH: '/usual',
  };
  assert.deepEqual(runnerVariables({ python: 'py', path: ['/own'] }, given), {
    HOME: '/home',
    PYTHONPATH: [runnerPackageDir, '/own', '/usual'].join(path.delimiter),
    PYTHONUNBUFFERED: '1',
  });
});
