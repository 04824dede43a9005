import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { parseTaskConfig } from '../../../src/wire/harbor/task-config.ts';

function problemsOf(toml: string): readonly string[] {
  const result = parseTaskConfig(parse(toml));
  assert.ok('problems' in result, 'the document was accepted');
  return result.problems.map(({ field, message }) => `${field}: ${message}`);
}

// What is written, and the field and message of the one problem.
const refused: readonly (readonly [string, string, RegExp])[] = [
  [
    'a number for a string',
    'schema_version = 1.4',
    /^schema_version: expected string, received number/,
  ],
  ['a number for the older version', 'version = 1.0', /^version: expected string/],
  ['a number in env', '[environment.env]\nA = 1', /^environment\.env\.A: expected string/],
  ['a date for a table', 'environment = 1979-05-27', /^environment: expected a table/],
  ['text for a table', 'agent = "oracle"', /^agent: expected a table/],
  ['text for the steps', 'steps = "one"', /^steps: expected array/],
  [
    'a fraction of a CPU',
    '[environment]\ncpus = 0.5',
    /^environment\.cpus: expected a whole number/,
  ],
  ['text for a number', '[agent]\ntimeout_sec = "soon"', /^agent\.timeout_sec: expected number/],
  ['an infinite number', '[agent]\ntimeout_sec = inf', /^agent\.timeout_sec: /],
  ['not a number', '[verifier]\ntimeout_sec = nan', /^verifier\.timeout_sec: /],
  [
    'an upper-case network mode',
    '[environment]\nnetwork_mode = "PUBLIC"',
    /^environment\.network_mode: /,
  ],
  ['an unknown network mode', '[agent]\nnetwork_mode = "lan"', /^agent\.network_mode: /],
  ['an unknown operating system', '[environment]\nos = "plan9"', /^environment\.os: /],
  [
    'hosts in a public environment',
    '[environment]\nallowed_hosts = ["a.com"]',
    /^environment\.allowed_hosts: must be empty/,
  ],
  [
    'hosts without network',
    '[environment]\nnetwork_mode = "no-network"\nallowed_hosts = ["a.com"]',
    /^environment\.allowed_hosts: must be empty/,
  ],
  [
    'hosts beside allow_internet',
    '[environment]\nallow_internet = false\nallowed_hosts = ["a.com"]',
    /^environment\.allowed_hosts: must be empty/,
  ],
  [
    'phase hosts without a mode',
    '[agent]\nallowed_hosts = ["a.com"]',
    /^agent\.allowed_hosts: needs network_mode/,
  ],
  [
    'no phase hosts without a mode',
    '[verifier]\nallowed_hosts = []',
    /^verifier\.allowed_hosts: needs network_mode/,
  ],
  [
    'hosts in a public phase',
    '[verifier]\nnetwork_mode = "public"\nallowed_hosts = ["a.com"]',
    /^verifier\.allowed_hosts: must be empty/,
  ],
  [
    'a URL as a host',
    '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["ok.com", "http://x"]',
    /^environment\.allowed_hosts\[1\]: /,
  ],
  [
    'a size without unit',
    '[environment]\nmemory = "4096"',
    /^environment\.memory: expected a number with the suffix/,
  ],
  ['a size in GB', '[environment]\nstorage = "4GB"', /^environment\.storage: expected/],
  [
    'two sizes that disagree',
    '[environment]\nmemory = "4G"\nmemory_mb = 1024',
    /^environment\.memory: says 4096 MiB/,
  ],
  [
    'text for allow_internet',
    '[environment]\nallow_internet = "maybe"',
    /^environment\.allow_internet: /,
  ],
  [
    'stdio without a command',
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "stdio"',
    /^environment\.mcp_servers\[0\]\.command: is required/,
  ],
  [
    'sse without a URL',
    '[[environment.mcp_servers]]\nname = "m"',
    /^environment\.mcp_servers\[0\]\.url: is required/,
  ],
  [
    'http without a URL',
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "http"',
    /^environment\.mcp_servers\[0\]\.url: is required/,
  ],
  [
    'an unknown transport',
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "tcp"\nurl = "x"',
    /^environment\.mcp_servers\[0\]\.transport: /,
  ],
  [
    'a health check without a command',
    '[environment.healthcheck]\nretries = 1',
    /^environment\.healthcheck\.command: is required/,
  ],
  [
    'a TPU of no type',
    '[environment.tpu]\ntype = ""\ntopology = "2x2"',
    /^environment\.tpu\.type: must not be empty/,
  ],
  [
    'a TPU of one dimension',
    '[environment.tpu]\ntype = "v5"\ntopology = "4"',
    /^environment\.tpu\.topology: /,
  ],
  [
    'a shared verifier with an environment',
    '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1',
    /^verifier\.environment_mode: .*exclude each other/,
  ],
  [
    'an unknown verifier mode',
    '[verifier]\nenvironment_mode = "own"',
    /^verifier\.environment_mode: /,
  ],
  [
    'a collect hook without a command',
    '[[verifier.collect]]\nservice = "db"',
    /^verifier\.collect\[0\]\.command: is required/,
  ],
  [
    'a source that climbs',
    'artifacts = ["/a/../b"]',
    /^artifacts\[0\]\.source: must not contain "\.\."/,
  ],
  [
    'a Windows source that climbs',
    'artifacts = ["C:\\\\a\\\\..\\\\b"]',
    /^artifacts\[0\]\.source: must not contain "\.\."/,
  ],
  [
    'a relative source of a service',
    'artifacts = [{source = "o", service = "db"}]',
    /^artifacts\[0\]\.source: must be absolute/,
  ],
  [
    'a service that is no name',
    'artifacts = [{source = "/o", service = "-db"}]',
    /^artifacts\[0\]\.service: /,
  ],
  [
    'an absolute destination',
    'artifacts = [{source = "/o", destination = "/x"}]',
    /^artifacts\[0\]\.destination: must be relative/,
  ],
  [
    'a destination that climbs',
    'artifacts = [{source = "/o", destination = "a/../../x"}]',
    /^artifacts\[0\]\.destination: must not contain/,
  ],
  [
    'a destination with backslashes',
    'artifacts = [{source = "/o", destination = "a\\\\b"}]',
    /^artifacts\[0\]\.destination: uses forward slashes/,
  ],
  [
    'a destination of nothing',
    'artifacts = [{source = "/o", destination = "."}]',
    /^artifacts\[0\]\.destination: names no file/,
  ],
  [
    'the manifest as a destination',
    'artifacts = [{source = "/o", destination = "manifest.json/"}]',
    /^artifacts\[0\]\.destination: manifest\.json/,
  ],
  ['an artifact that is a number', 'artifacts = [1]', /^artifacts\[0\]: expected a table/],
  ['a package name without org', '[task]\nname = "n"', /^task\.name: expected org\/name/],
  ['a package name that climbs', '[task]\nname = "o/n..m"', /^task\.name: must not contain/],
  ['a package of no name', '[task]\nversion = "1"', /^task\.name: is required/],
  [
    'an empty package version',
    '[task]\nname = "o/n"\nversion = ""',
    /^task\.version: must not be empty/,
  ],
  [
    'an author of no name',
    '[task]\nname = "o/n"\nauthors = [{email = "a@b"}]',
    /^task\.authors\[0\]\.name: is required/,
  ],
  [
    'an unknown reward strategy',
    'multi_step_reward_strategy = "best"',
    /^multi_step_reward_strategy: /,
  ],
  ['a step without a name', '[[steps]]\nmin_reward = 1', /^steps\[0\]\.name: is required/],
  ['an empty step name', '[[steps]]\nname = ""', /^steps\[0\]\.name: must name a folder/],
  ['a step name with a slash', '[[steps]]\nname = "a/b"', /^steps\[0\]\.name: .*slash/],
  ['a step name with a backslash', '[[steps]]\nname = "a\\\\b"', /^steps\[0\]\.name: .*slash/],
  ['a step name that climbs', '[[steps]]\nname = ".."', /^steps\[0\]\.name: must not contain/],
  [
    'a step name that is this folder',
    '[[steps]]\nname = "."',
    /^steps\[0\]\.name: must name a folder/,
  ],
  [
    'a step name twice',
    '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n[[steps]]\nname = "a"',
    /^steps\[2\]\.name: repeats the name "a"/,
  ],
  [
    'text in a reward gate',
    '[[steps]]\nname = "a"\nmin_reward = {x = "high"}',
    /^steps\[0\]\.min_reward: expected a number, or a table/,
  ],
  ['a fraction as a user id', '[agent]\nuser = 1.5', /^agent\.user: expected a whole number/],
  [
    'a table for a user',
    '[agent]\nuser = {name = "x"}',
    /^agent\.user: expected a user name or a numeric id/,
  ],
  [
    'text for the retries of a step',
    '[[steps]]\nname = "a"\nhealthcheck = {command = "x", retries = "many"}',
    /^steps\[0\]\.healthcheck\.retries: /,
  ],
  [
    'text for a list of GPUs',
    '[environment]\ngpu_types = "h100"',
    /^environment\.gpu_types: expected array/,
  ],
  ['text for metadata', 'metadata = "none"', /^metadata: expected a table/],
];

describe('task.toml refuses', () => {
  for (const [what, toml, problem] of refused)
    it(what, () => {
      const problems = problemsOf(toml);
      assert.equal(problems.length, 1, problems.join('\n'));
      assert.match(problems[0]!, problem);
    });
});

describe('the problems of a task.toml', () => {
  it('are all reported, also those that one field has with another', () => {
    const problems = problemsOf(`
      artifacts = ["/a/../b"]
      [agent]
      timeout_sec = "soon"
      allowed_hosts = []
      [environment]
      cpus = 0.5
      memory = "4G"
      memory_mb = 1
      allowed_hosts = ["a.com"]
      [[steps]]
      name = "a"
      [steps.agent]
      user = 1.5
      [[steps]]
      name = "a"
    `);
    assert.deepEqual(
      new Set(problems.map((problem) => problem.split(': ')[0])),
      new Set([
        'artifacts[0].source',
        'agent.timeout_sec',
        'agent.allowed_hosts',
        'environment.cpus',
        'environment.memory',
        'environment.allowed_hosts',
        'steps[0].agent.user',
        'steps[1].name',
      ]),
    );
    assert.equal(problems.length, 8);
  });

  it('quote a key that is no plain word', () => {
    assert.deepEqual(problemsOf('[environment.env]\n"a.b" = 1').length, 1);
    assert.match(problemsOf('[environment.env]\n"a.b" = 1')[0]!, /^environment\.env\."a\.b": /);
  });
});
