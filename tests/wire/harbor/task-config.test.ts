import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { parseTaskConfig, type TaskConfig } from '../../../src/wire/harbor/task-config.ts';

function read(toml: string): TaskConfig {
  const result = parseTaskConfig(parse(toml));
  if ('value' in result) return result.value;
  assert.fail(JSON.stringify(result.problems));
}

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce((part: unknown, key) => (part as Record<string, unknown>)[key], value);
}

describe('an empty task.toml', () => {
  it('has the defaults of the format', () => {
    const config = read('');
    assert.equal(config.schema_version, '1.4');
    assert.deepEqual(config.steps, []);
    assert.deepEqual(config.agent, {
      timeout_sec: null,
      user: null,
      network_mode: null,
      allowed_hosts: null,
    });
    assert.equal(config.verifier.timeout_sec, 600);
    assert.equal(config.environment.network_mode, 'public');
    assert.equal(config.environment.build_timeout_sec, 600);
    assert.equal(config.environment.os, 'linux');
    assert.equal(config.environment.cpus, null);
    assert.equal(config.multi_step_reward_strategy, null);
  });
});

// What is written, where it lands, and what it becomes.
const accepted: readonly (readonly [string, string, string, unknown])[] = [
  ['a numeric string for a number', '[agent]\ntimeout_sec = "5"', 'agent.timeout_sec', 5],
  [
    'a string with blanks and exponent',
    '[agent]\ntimeout_sec = " 1.5e2 "',
    'agent.timeout_sec',
    150,
  ],
  ['an integral float for a whole number', '[environment]\ncpus = 2.0', 'environment.cpus', 2],
  ['a numeric string for a whole number', '[environment]\ncpus = "2"', 'environment.cpus', 2],
  ['an integer for a number', '[verifier]\ntimeout_sec = 30', 'verifier.timeout_sec', 30],
  ['true for a number', '[verifier]\ntimeout_sec = true', 'verifier.timeout_sec', 1],
  ['the older version key', 'version = "1.0"', 'schema_version', '1.0'],
  ['both version keys', 'version = "1.0"\nschema_version = "1.3"', 'schema_version', '1.3'],
  [
    'a wrong version beside schema_version',
    'version = 1.0\nschema_version = "1.3"',
    'schema_version',
    '1.3',
  ],
  ['any schema version', 'schema_version = "banana"', 'schema_version', 'banana'],
  ['an operating system in any case', '[environment]\nos = "WINDOWS"', 'environment.os', 'windows'],
  ['memory in G', '[environment]\nmemory = "4G"', 'environment.memory_mb', 4096],
  [
    'memory in lower case and fractions',
    '[environment]\nmemory = "1.5g"',
    'environment.memory_mb',
    1536,
  ],
  ['memory in M', '[environment]\nmemory = "512M"', 'environment.memory_mb', 512],
  ['memory in K, cut to whole MiB', '[environment]\nmemory = "1536K"', 'environment.memory_mb', 1],
  ['storage in G', '[environment]\nstorage = "10G"', 'environment.storage_mb', 10240],
  [
    'memory that agrees with memory_mb',
    '[environment]\nmemory = "1G"\nmemory_mb = "1024"',
    'environment.memory_mb',
    1024,
  ],
  [
    'memory that is no string, dropped',
    '[environment]\nmemory = 4096',
    'environment.memory_mb',
    null,
  ],
  [
    'allow_internet = false',
    '[environment]\nallow_internet = false',
    'environment.network_mode',
    'no-network',
  ],
  [
    'allow_internet = true',
    '[environment]\nallow_internet = true',
    'environment.network_mode',
    'public',
  ],
  [
    'allow_internet as a word',
    '[environment]\nallow_internet = "no"',
    'environment.network_mode',
    'no-network',
  ],
  [
    'allow_internet beside network_mode',
    '[environment]\nallow_internet = false\nnetwork_mode = "public"',
    'environment.network_mode',
    'public',
  ],
  [
    'allow_internet beside an empty list',
    '[environment]\nallow_internet = false\nallowed_hosts = []',
    'environment.network_mode',
    'public',
  ],
  ['an unknown key', '[environment]\ninternet = "optional"', 'environment.network_mode', 'public'],
  [
    'an allow list without hosts',
    '[environment]\nnetwork_mode = "allowlist"',
    'environment.allowed_hosts',
    null,
  ],
  [
    'an empty allow list',
    '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = []',
    'agent.allowed_hosts',
    [],
  ],
  [
    'an empty list in a public phase',
    '[agent]\nnetwork_mode = "public"\nallowed_hosts = []',
    'agent.allowed_hosts',
    [],
  ],
  [
    'hosts, normalised',
    '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["*.Example.COM.", "FE80::0001"]',
    'environment.allowed_hosts',
    ['*.example.com', 'fe80::1'],
  ],
  [
    'a verifier environment open by default',
    '[environment]\nnetwork_mode = "no-network"\n[verifier.environment]\ncpus = 1',
    'verifier.environment.network_mode',
    'public',
  ],
  [
    'a verifier environment with its own allow_internet',
    '[verifier.environment]\nallow_internet = false',
    'verifier.environment.network_mode',
    'no-network',
  ],
  ['a user by name', '[agent]\nuser = "agent"', 'agent.user', 'agent'],
  ['a user by id', '[agent]\nuser = 1000', 'agent.user', 1000],
  ['a numeric user name, kept as text', '[verifier]\nuser = "1000"', 'verifier.user', '1000'],
  ['no steps in an empty array', 'steps = []', 'steps', []],
  [
    'an artifact as a path',
    'artifacts = ["/out"]',
    'artifacts.0',
    { source: '/out', destination: null, exclude: [], service: null },
  ],
  [
    'an empty destination as none',
    'artifacts = [{source = "/o", destination = ""}]',
    'artifacts.0.destination',
    null,
  ],
  [
    'a destination that looks like the manifest',
    'artifacts = [{source = "/o", destination = "./manifest.json"}]',
    'artifacts.0.destination',
    './manifest.json',
  ],
  [
    'a destination called services',
    'artifacts = [{source = "/o", destination = "services"}]',
    'artifacts.0.destination',
    'services',
  ],
  [
    'the service main as none',
    'artifacts = [{source = "o", service = " main "}]',
    'artifacts.0.service',
    null,
  ],
  [
    'a service with an absolute source',
    'artifacts = [{source = "/o", service = "db"}]',
    'artifacts.0.service',
    'db',
  ],
  [
    'a service with a Windows source',
    'artifacts = [{source = "C:\\\\o", service = "db"}]',
    'artifacts.0.source',
    'C:\\o',
  ],
  ['dots in a file name', 'artifacts = ["/a..b/c"]', 'artifacts.0.source', '/a..b/c'],
  [
    'the transport http',
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "http"\nurl = "http://x"',
    'environment.mcp_servers.0.transport',
    'streamable-http',
  ],
  [
    'no transport',
    '[[environment.mcp_servers]]\nname = "m"\nurl = "http://x"',
    'environment.mcp_servers.0.transport',
    'sse',
  ],
  [
    'stdio',
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "stdio"\ncommand = "c"',
    'environment.mcp_servers.0.command',
    'c',
  ],
  [
    'a TPU',
    '[environment.tpu]\ntype = "v5"\ntopology = " 2x4 "',
    'environment.tpu',
    { type: 'v5', topology: '2x4' },
  ],
  [
    'a health check',
    '[environment.healthcheck]\ncommand = "true"',
    'environment.healthcheck',
    {
      command: 'true',
      interval_sec: 5,
      timeout_sec: 30,
      start_period_sec: 0,
      start_interval_sec: 5,
      retries: 3,
    },
  ],
  [
    'a collect hook',
    '[[verifier.collect]]\ncommand = "c"',
    'verifier.collect.0',
    { command: 'c', service: 'main', timeout_sec: 60, user: null },
  ],
  ['a gate on one channel', '[[steps]]\nname = "a"\nmin_reward = "0.5"', 'steps.0.min_reward', 0.5],
  [
    'a gate per channel',
    '[[steps]]\nname = "a"\nmin_reward = {x = 1, y = "0.5"}',
    'steps.0.min_reward',
    { x: 1, y: 0.5 },
  ],
  [
    'a package version of any text',
    '[task]\nname = "o/n"\nversion = "tuesday"',
    'task.version',
    'tuesday',
  ],
  ['a package without a version', '[task]\nname = "o/n"', 'task.version', null],
  [
    'a reward strategy',
    'multi_step_reward_strategy = "final"',
    'multi_step_reward_strategy',
    'final',
  ],
  ['negative numbers, as Harbor does', '[agent]\ntimeout_sec = -1', 'agent.timeout_sec', -1],
];

describe('task.toml accepts', () => {
  for (const [what, toml, path, value] of accepted)
    it(what, () => {
      assert.deepEqual(at(read(toml), path), value);
    });
});
