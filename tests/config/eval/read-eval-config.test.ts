import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import {
  compileEvalConfig,
  readEvalConfig,
  type EvalConfig,
  type EvalFlags,
} from '../../../src/config/eval/read-eval-config.ts';
import { readMachine } from '../../../src/config/machine.ts';
import { RolloutError } from '../../../src/core/errors.ts';

function compile(toml: string, flags: EvalFlags = {}): EvalConfig {
  const machine = readMachine({ HOME: '/home/me', TOKEN: 'secret-of-mine' }, '/here');
  return compileEvalConfig({ flags, document: parse(toml), file: '/conf/math.toml' }, machine);
}

const rows = '[experiment]\ndataset = "rows.jsonl"\n';

describe('the configuration of an evaluation', () => {
  it('has defaults, and paths start at the file or, for flags, at the current folder', () => {
    const config = compile(rows);
    assert.deepEqual(
      [config.name, config.outputDir, config.datasetFile, config.repeats, config.passThreshold],
      ['math', '/here/.slipway/evals', '/conf/rows.jsonl', 1, 1],
    );
    const flagged = compile(rows, { name: 'other', output: 'out', datasetFile: 'b.csv' });
    assert.deepEqual(
      [flagged.name, flagged.outputDir, flagged.datasetFile],
      ['other', '/here/out', '/here/b.csv'],
    );
  });

  it('limits a run by its parts and a minute, by an hour when a part has no limit, or as it is told', () => {
    const limits = (text: string): number => compile(`${rows}[evaluation]\n${text}`).itemTimeoutMs;
    assert.equal(limits('agent_workflow_timeout_s = 100\ngrader_timeout_s = 20'), 180_000);
    assert.equal(limits('agent_workflow_timeout_s = 100'), 3_600_000);
    assert.equal(limits('item_timeout_s = 7'), 7_000);
  });

  it('takes what a configuration of Osmosis says, and names what has no effect', () => {
    const config = compile(
      'experiment = {dataset = "d.csv", rollout = "r", entrypoint = "main.py", model_path = "q/m", commit_sha = "abcdef1"}\n' +
        'evaluation = {limit = 5, n = 2, batch_size = 4, pass_threshold = 0.5}\n' +
        'env = {A = "x", B = 1}\nsecrets = {required = ["TOKEN"]}\nadvanced = {rollout_pool = 3}',
    );
    assert.deepEqual(
      [config.limit, config.repeats, config.batchSize, config.passThreshold, config.modelName],
      [5, 2, 4, 0.5, 'q/m'],
    );
    assert.deepEqual(config.variables, { A: 'x', B: '1' });
    for (const key of [
      'experiment.rollout',
      'experiment.entrypoint',
      'experiment.commit_sha',
      'advanced.rollout_pool',
    ])
      // prettier-ignore
      assert.ok(config.warnings.some((warning) => warning.startsWith(`${key} has no effect`)), key);
  });

  it('takes the model of a configuration of Osmosis where it can, and else says why not', () => {
    const named = '[experiment]\ndataset = "d.csv"\nmodel_path = "q/m"\n';
    for (const [toml, said] of [
      [`${named}[backend]\nkind = "local"`, /^experiment\.model_path has no effect: .*native/],
      [`${named}[backend.native]\nmodel = "openai/o"`, /model_path has no effect: backend\.native/],
      [`server_url = "http://h:1"\n${named}`, /model_path has no effect: .*server_url/],
    ] as const) {
      const { modelName, warnings } = compile(toml);
      assert.equal(modelName, null);
      assert.match(warnings.join('\n'), said);
    }
  });

  it('says that variables do not reach a server that runs already', () => {
    const { warnings } = compile(`server_url = "http://h:1"\n${rows}[env]\nA = "x"`);
    assert.deepEqual(warnings, ['env has no effect on the server at server_url']);
  });

  it('that is no TOML is refused with the line', async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-toml-'));
    try {
      await writeFile(path.join(dir, 'e.toml'), 'a = 1\n[b\n');
      const machine = readMachine({ HOME: dir }, dir);
      await assert.rejects(readEvalConfig('e.toml', {}, machine), /at line 2, column \d+/);
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('hands the tables of slipway.toml on to the server that it starts', () => {
    const { serveDocument } = compile(
      `${rows}[backend]\nkind = "null"\n[admission]\nmax_concurrent = 2`,
    );
    assert.deepEqual(JSON.parse(JSON.stringify(serveDocument)), {
      backend: { kind: 'null' },
      admission: { max_concurrent: 2 },
    });
  });

  const refusals: readonly (readonly [what: string, toml: string, said: RegExp])[] = [
    ['no dataset', '', /experiment\.dataset.*no dataset/],
    ['an unknown key', `${rows}[evaluation]\nlimt = 3`, /evaluation\.limt.*evaluation\.limit\?/],
    ['an unknown table', `${rows}[evalution]\nn = 3`, /evalution.*Did you mean evaluation\?/],
    ['a wrong kind of value', `${rows}[evaluation]\nn = 0`, /evaluation\.n.*of at least 1|from 1/],
    ['a key instead of its place', `${rows}[model]\nurl = "http://h/v1"\nkey = "sk-1"`, /model\.key.*never the secret/], // prettier-ignore
    [
      'a secret that is not set',
      `${rows}[secrets]\nrequired = ["NOT_THERE"]`,
      /NOT_THERE is not set/,
    ],
    ['listeners', `${rows}[listen]\nport = 1`, /listen.*server_url/],
    ['tables of a server that runs already', `server_url = "http://h:1"\n${rows}[backend]\nkind = "null"`, /\[backend\].*server_url/], // prettier-ignore
    ['a key for no server', `server_key = "env:K"\n${rows}`, /server_key.*no server_url/],
    ['an address that is none', `${rows}[model]\nurl = "engine:30000"`, /model\.url.*http/],
    ['a key for no model', `${rows}[model]\nkey = "env:TOKEN"`, /model\.key.*no model\.url/],
    ['a password in an address', `${rows}[model]\nurl = "http://u:sk-1@h/v1"`, /model\.url.*model\.key/], // prettier-ignore
    ['a limit that no timer takes', `${rows}[evaluation]\nitem_timeout_s = 3e9`, /item_timeout_s.*1000000/], // prettier-ignore
    ['a model of a server that runs already', `server_url = "http://h:1"\n${rows}[model]\nname = "m"`, /model\.name.*server_url/], // prettier-ignore
    ['a model for another backend', `${rows}[model]\nname = "m"\n[backend]\nkind = "local"`, /model\.name.*native/], // prettier-ignore
    ['two models', `${rows}[model]\nname = "m"\n[backend.native]\nmodel = "openai/o"`, /model\.name.*backend\.native\.model/], // prettier-ignore
    ['a variable that is a table', `${rows}[env.A]\nb = 1`, /env\.A/],
  ];
  for (const [what, toml, said] of refusals)
    it(`refuses ${what}, with the field and what to do`, () => {
      assert.throws(
        () => compile(toml),
        (error: unknown) =>
          error instanceof RolloutError &&
          error.code === 'CONFIG_INVALID' &&
          error.remedy !== null &&
          said.test(error.describe()) &&
          !error.describe().includes('sk-1'),
      );
    });

  it('reports everything at once', () => {
    assert.throws(
      () => compile(`${rows}[evaluation]\nn = 0\nlimit = "x"\nfoo = 1`),
      (error: unknown) =>
        error instanceof RolloutError &&
        ['evaluation.n', 'evaluation.limit', 'evaluation.foo'].every((key) =>
          error.detail?.includes(`[${key}]`),
        ),
    );
  });
});
