/** `slipway preflight --json` in a folder of its own, with what it printed and what it left. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import {
  preflightReportSchema,
  type PreflightCheckName,
  type PreflightReport,
  type PreflightResult,
} from '../../src/wire/preflight-report.ts';
import { slipwayInProcess, type Ended, type InProcessOptions } from './in-process-cli.ts';

export interface Preflight extends Ended {
  readonly report: PreflightReport;
  /** The only one of a name. */
  readonly one: (name: PreflightCheckName) => PreflightResult;
}

export class PreflightFolder implements AsyncDisposable {
  readonly root: string;
  /** Of `slipway preflight`. */
  readonly scratchDir: string;
  readonly stateDir: string;
  readonly dataDir: string;
  readonly variables: Readonly<Record<string, string>>;

  #tmpBefore: string | undefined;

  private constructor(root: string) {
    this.root = root;
    this.scratchDir = path.join(root, 'tmp');
    this.stateDir = path.join(root, 'state');
    this.dataDir = path.join(this.stateDir, 'server');
    this.variables = { SLIPWAY_STATE_DIR: this.stateDir, HOME: root };
  }

  static async create(): Promise<PreflightFolder> {
    const folder = new PreflightFolder(await mkdtemp(path.join(os.tmpdir(), 'slipway-pre-')));
    await mkdir(folder.scratchDir);
    folder.#tmpBefore = process.env['TMPDIR'];
    process.env['TMPDIR'] = folder.scratchDir;
    return folder;
  }

  async write(name: string, text: string): Promise<string> {
    const file = path.join(this.root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  /** On free ports, unless the flags say otherwise. */
  async run(flags: readonly string[], options: Partial<InProcessOptions> = {}): Promise<Preflight> {
    const ports = flags.includes('--port') ? [] : ['--port', '0'];
    const ended = await slipwayInProcess(['preflight', '--json', ...ports, ...flags], {
      cwd: this.root,
      ...options,
      variables: { ...this.variables, ...options.variables },
    });
    assert.notEqual(ended.stdout, '', ended.stderr);
    assert.deepEqual(await readdir(this.scratchDir), [], 'no file of a check is left');
    const report = preflightReportSchema.parse(JSON.parse(ended.stdout));
    assert.equal(ended.exitCode, report.ok ? 0 : 1);
    assert.equal(
      report.ok,
      report.checks.every(({ status }) => status !== 'failed'),
    );
    return {
      ...ended,
      report,
      one(name) {
        const [found, ...others] = report.checks.filter((check) => check.name === name);
        assert.ok(found !== undefined && others.length === 0, `${name}: ${ended.stdout}`);
        return found;
      },
    };
  }

  /** Everything below the folder but what a sandbox runtime keeps for the next start. */
  async files(): Promise<readonly string[]> {
    const names = await readdir(this.root, { recursive: true });
    return names.filter((name) => !name.startsWith('state/')).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#tmpBefore === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = this.#tmpBefore;
    await rm(this.root, { recursive: true, force: true });
  }
}
