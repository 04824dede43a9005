/** One precedence, flags over variables over the file over defaults, for every setting of the table; all problems at once; no secret in the configuration. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Fields } from '../../../src/config/fields.ts';
import { readMachine, type Machine } from '../../../src/config/machine.ts';
import { maskedValue } from '../../../src/config/serve/masked-value.ts';
import {
  compileServeConfig,
  readServeConfig,
  type ServeConfig,
  type ServeFlags,
} from '../../../src/config/serve/read-serve-config.ts';
import { settingRows, type SettingRow } from '../../../src/config/serve/setting-table.ts';
import { isRolloutError } from '../../../src/core/errors.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'serve-config-'));
});
after(() => rm(root, { recursive: true, force: true }));

interface Given {
  readonly flags?: ServeFlags;
  readonly variables?: Record<string, string>;
  readonly document?: Fields;
}

function machineWith(variables: Record<string, string> = {}): Machine {
  return readMachine({ HOME: '/me', ...variables }, '/here');
}

function compile({ flags = {}, variables, document = {} }: Given): ServeConfig {
  return compileServeConfig({ flags, document, file: '/etc/slipway.toml' }, machineWith(variables));
}

function problemsOf(given: Given): string {
  try {
    compile(given);
  } catch (error) {
    assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
    return `${error.describe()}\n${error.detail ?? ''}`;
  }
  assert.fail('nothing was refused');
}

/** Three values of a setting, as text, that differ from each other and from the default. */
function valuesOf({ path, setting: { kind } }: SettingRow): readonly [string, string, string] {
  if (path.endsWith('kvHigh')) return ['0.91', '0.92', '0.93'];
  if (kind.expects.startsWith('env:') || path === 'keys.control')
    return ['env:ONE', 'env:TWO', 'file:three'];
  if (kind.expects.startsWith('one of')) {
    const choices = kind.expects.slice('one of '.length).split(', ');
    return [choices[0]!, choices.at(-1)!, choices[0]!];
  }
  if (kind.expects === 'true or false') return ['true', 'false', 'true'];
  if (kind.expects === 'a table of sampling parameters')
    return ['{"seed":1}', '{"seed":2}', '{"seed":3}'];
  if (kind.expects.startsWith('a table of'))
    return ['{"a":"env:A"}', '{"b":"env:B"}', '{"c":"file:c"}'];
  if (kind.expects === 'a table' || kind.expects.startsWith('a table, or'))
    return ['{"a":1}', '{"a":2}', '{"a":3}'];
  if (kind.expects.endsWith('from 0 to 1')) return ['0.1', '0.2', '0.3'];
  if (/^(a whole number|a number|seconds)/.test(kind.expects)) return ['5001', '5002', '5003'];
  return ['one', 'two', 'three'];
}

/** As a document holds it. */
function inDocument({ setting: { kind } }: SettingRow, value: string): unknown {
  const read = kind.read(value, true);
  assert.ok('value' in read, `${value}: ${kind.expects}`);
  return kind.show(read.value);
}

function documentWith(key: string, value: unknown): Fields {
  const [last = '', ...sections] = key.split('.').reverse();
  return sections.reduce<Fields>((inner, name) => ({ [name]: inner }), { [last]: value });
}

describe('the configuration of slipway serve', () => {
  it('takes every setting from a flag before a variable before the file before its default', () => {
    for (const row of settingRows) {
      const [inFile, inVariable, inFlag] = valuesOf(row);
      const document = documentWith(row.key, inDocument(row, inFile));
      const variables = { [row.variable]: inVariable };
      const flags = { [row.flag]: row.setting.kind.isList ? [inFlag] : inFlag };
      const steps: readonly [Given, string, string | null][] = [
        [{ document, variables, flags }, `flag ${row.flag}`, inFlag],
        [{ document, variables }, `variable ${row.variable}`, inVariable],
        [{ document }, 'file /etc/slipway.toml', inFile],
        [{}, 'default', null],
      ];
      for (const [given, from, value] of steps) {
        const found = compile(given).origins.find(({ key }) => key === row.key);
        assert.equal(found?.from, from, row.key);
        const { kind } = row.setting;
        if (value === null) continue;
        const read = kind.read(value, true);
        const dir = from.startsWith('file ') ? '/etc' : '/here';
        assert.ok('value' in read);
        const located = kind.locate?.(read.value, dir) ?? read.value;
        assert.deepEqual(found.value, kind.show(located), row.key);
      }
    }
  });

  it('gives no two settings the same flag, variable or key', () => {
    for (const name of ['flag', 'variable', 'key'] as const)
      assert.equal(new Set(settingRows.map((row) => row[name])).size, settingRows.length, name);
  });

  it('derives defaults from other settings, wherever those come from', () => {
    const rows: readonly [Given, (config: ServeConfig) => unknown, unknown][] = [
      [{}, ({ listen }) => [listen.port, listen.dataPort], [8000, 8001]],
      [{ flags: { '--port': '9000' } }, ({ listen }) => listen.dataPort, 9001],
      [{ flags: { '--port': '0' } }, ({ listen }) => listen.dataPort, 0],
      [{ flags: { '--host': '10.0.0.1' } }, ({ listen }) => listen.dataHost, '10.0.0.1'],
      [{}, ({ callbacks }) => callbacks.privateAddresses, 'allow'],
      [{ flags: { '--host': '0.0.0.0' } }, ({ callbacks }) => callbacks.privateAddresses, 'deny'],
      [
        { document: { admission: { max_concurrent: 32 } } },
        ({ admission }) => admission.maxQueueDepth,
        32,
      ],
      [{}, ({ dataDir }) => dataDir, '/me/.local/state/slipway/server'],
      [{ document: { data_dir: 'data' } }, ({ dataDir }) => dataDir, '/etc/data'],
      [{ flags: { '--data-dir': 'data' } }, ({ dataDir }) => dataDir, '/here/data'],
      [{ document: { shutdown: { drain_sec: 1.5 } } }, ({ shutdown }) => shutdown.drainMs, 1500],
    ];
    for (const [given, pick, expected] of rows) assert.deepEqual(pick(compile(given)), expected);
  });

  it('honours the variables of the Osmosis entry point, below its own', () => {
    const variables = { _OSMOSIS_ROLLOUT_PORT: '9100', _OSMOSIS_ROLLOUT_INSTANCE_ID: 'i-7' };
    const { listen } = compile({ variables });
    assert.deepEqual([listen.port, listen.instanceId, listen.host], [9100, 'i-7', '127.0.0.1']);
    assert.equal(
      compile({ variables: { ...variables, SLIPWAY_LISTEN_PORT: '9200' } }).listen.port,
      9200,
    );
  });

  it('reads an empty variable as not set', () => {
    assert.equal(compile({ variables: { SLIPWAY_LISTEN_PORT: '' } }).listen.port, 8000);
  });

  it('reports everything that is wrong, each by its path', () => {
    const text = problemsOf({
      document: {
        listen: { prot: 8000, port: 'x' },
        admision: {},
        limits: 7,
        tenants: { a: { weight: 0, colour: 'red' }, 'b c': {} },
      },
      variables: { SLIPWAY_LOG_LEVEL: 'loud' },
      flags: { '--prot': '1', '--max-concurrent': '0' },
    });
    for (const part of [
      '[listen.prot]: there is no such setting — Did you mean listen.port?',
      '[listen.port]: expected a whole number from 0 to 65535',
      '[admision]: there is no such setting — Did you mean admission?',
      '[limits]: is a table',
      '[tenants.a.weight]: expected a number of at least 0.001',
      '[tenants.a.colour]: there is no such setting',
      '[tenants.b c]: a tenant is named by',
      '[variable SLIPWAY_LOG_LEVEL]: expected one of debug, info, warn, error',
      '[--prot]: there is no such setting — Did you mean --port?',
      '[flag --max-concurrent]: expected a whole number of at least 1',
    ])
      assert.ok(text.includes(part), `${part}\nnot in\n${text}`);
  });

  it('refuses processes of the gateway for which there are no ports', () => {
    for (const [listen, workers, problem] of [
      [{ data_port: 65_534 }, 3, /\[gateway.workers\]: the ports would go up to 65536/],
      [{ port: 8003, data_port: 8001 }, 3, /\[gateway.workers\]: the ports from 8001 to 8003/],
    ] as const)
      assert.match(problemsOf({ document: { listen, gateway: { workers } } }), problem);
    for (const [listen, workers] of [
      [{ data_port: 65_534 }, 2],
      [{ port: 8003, data_port: 8001 }, 2],
      [{ port: 65_535, data_port: 0 }, 64],
    ] as const)
      assert.equal(
        compile({ document: { listen, gateway: { workers } } }).gateway.workers,
        workers,
      );
  });

  it('refuses an empty address, which would be every address', () => {
    for (const given of [
      { flags: { '--host': '' } },
      { document: { listen: { host: '' } } },
      { document: { listen: { data_host: ' ' } } },
    ])
      assert.match(problemsOf(given), /expected a text that is not empty/);
  });

  it('refuses a secret where the place of one belongs, and does not repeat it', () => {
    for (const given of [
      { flags: { '--control-key': ['hunter2hunter2hunter2'] } },
      { document: { keys: { control: ['hunter2hunter2hunter2'] } } },
      { document: { tenants: { a: { key: 'hunter2hunter2hunter2' } } } },
      { variables: { SLIPWAY_ENGINE_KEY: 'hunter2hunter2hunter2' } },
      { document: { telemetry: { otlp_headers: { authorization: 'hunter2hunter2hunter2' } } } },
    ]) {
      const text = problemsOf(given);
      assert.match(text, /expected env:NAME or file:PATH( for each)?, never the secret itself/);
      assert.doesNotMatch(text, /hunter2/);
    }
  });

  it('compiles tenants, with their defaults, and is frozen throughout', () => {
    const { tenants } = compile({
      document: { tenants: { a: { key: 'env:A', weight: 2 }, b: { id_prefix: 'b::' } } },
    });
    assert.deepEqual(tenants, {
      a: { key: ['env:A'], idPrefix: null, weight: 2 },
      b: { key: [], idPrefix: 'b::', weight: 1 },
    });
    const config = compile({});
    assert.ok(Object.isFrozen(config) && Object.isFrozen(config.keys.control));
  });

  it('finds slipway.toml in the current folder, and another file by flag or variable', async () => {
    await writeFile(join(root, 'slipway.toml'), '[listen]\nport = 7001\n');
    await writeFile(join(root, 'other.yaml'), 'listen:\n  port: 7002\n');
    const machine = readMachine({ HOME: root }, root);
    assert.equal((await readServeConfig({}, machine)).listen.port, 7001);
    assert.equal((await readServeConfig({ '--config': 'other.yaml' }, machine)).listen.port, 7002);
    const named = readMachine({ HOME: root, SLIPWAY_CONFIG: 'other.yaml' }, root);
    assert.equal((await readServeConfig({}, named)).listen.port, 7002);
    await assert.rejects(readServeConfig({ '--config': 'none.toml' }, machine), {
      code: 'CONFIG_INVALID',
      field: '--config',
    });
  });

  it('masks what is called a key and who logs in by a URL', () => {
    assert.deepEqual(
      maskedValue({
        llm_kwargs: { api_key: 'sk-1', max_tokens: 7 },
        url: 'https://me:secret@host/x',
        list: ['http://a:b@c'],
      }),
      {
        llm_kwargs: { api_key: '***', max_tokens: 7 },
        url: 'https://***@host/x',
        list: ['http://***@c'],
      },
    );
  });
});
