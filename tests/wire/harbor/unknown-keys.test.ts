import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { taskConfigSchema } from '../../../src/wire/harbor/task-config.ts';
import { unknownKeys } from '../../../src/wire/harbor/unknown-keys.ts';

describe('unknown keys', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['colour = "red"', ['colour']],
    ['[environment]\ninternet = true\ncpus = 1', ['environment.internet']],
    ['[environment]\nartifacts = ["/a"]', ['environment.artifacts']],
    ['[[steps]]\nname = "a"\n[[steps]]\nname = "b"\ntimeout = 5', ['steps[1].timeout']],
    ['[verifier.environment.healthcheck]\ncmd = "x"', ['verifier.environment.healthcheck.cmd']],
    ['artifacts = ["/a", {source = "/b", as = "c"}]', ['artifacts[1].as']],
    ['[metadata]\nanything = {goes = 1}', []],
    ['[environment.env]\nA = "1"\n[solution.env]\nB = "2"', []],
    ['version = "1.0"\n[environment]\nallow_internet = true\nmemory = "1G"', []],
    ['[[steps]]\nname = "a"\nmin_reward = {x = 1}', []],
    ['environment = 5', []],
  ];
  for (const [toml, fields] of rows)
    it(`of ${JSON.stringify(toml)} are ${JSON.stringify(fields)}`, () => {
      assert.deepEqual(unknownKeys(taskConfigSchema, parse(toml)), fields);
    });
});
