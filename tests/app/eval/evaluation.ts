/** Evaluations of rows of the null backend, in folders of a test. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { slipwayInProcess, type Ended } from '../../support/in-process-cli.ts';

export const modelKey = 'key-of-the-model-7f3a';
export const ownSecret = 'secret-of-the-rows-19c2';

export interface EvalDocument {
  readonly exit_code: number;
  readonly resumed: number;
  readonly halted: { readonly code: string } | null;
  readonly metrics: {
    readonly pending: number;
    readonly success: number;
    readonly failed: number;
    readonly pass_rate: number | null;
    readonly slipway: { readonly pass_rate: number | null };
  };
  readonly items: readonly {
    readonly row_index: number;
    readonly rollout_id: string | null;
    readonly status: string;
    readonly reward: number | null;
    readonly error_type: string | null;
  }[];
}

export class Evaluation {
  readonly dir: string;
  /** Of its process. */
  variables: Readonly<Record<string, string>>;

  private constructor(root: string, name: string) {
    this.dir = path.join(root, name);
    this.variables = {
      ...{ SLIPWAY_STATE_DIR: path.join(root, 'state'), HOME: root },
      ...{ MODEL_KEY: modelKey, OWN_SECRET: ownSecret },
    };
  }

  /** In a folder `name` of `root`. */
  static async of(
    [root, name]: readonly [root: string, name: string],
    rows: readonly unknown[],
    toml = '',
  ): Promise<Evaluation> {
    const made = new Evaluation(root, name);
    await rm(made.dir, { recursive: true, force: true });
    await mkdir(made.dir);
    const text = rows.map((row) => `${JSON.stringify({ metadata: { null: row } })}\n`);
    await writeFile(path.join(made.dir, 'rows.jsonl'), text.join(''));
    await made.configure(toml);
    return made;
  }

  async configure(toml: string, table = '[backend]\nkind = "null"'): Promise<void> {
    const text = `${toml}\n[experiment]\ndataset = "rows.jsonl"\n${table}\n`;
    await writeFile(path.join(this.dir, 'e.toml'), text);
  }

  results(...names: readonly string[]): string {
    return path.join(this.dir, '.slipway/evals/e', ...names);
  }

  async run(...flags: readonly string[]): Promise<Ended> {
    return await slipwayInProcess(['eval', 'run', 'e.toml', ...flags], {
      ...{ cwd: this.dir, variables: this.variables },
    });
  }

  async document(...flags: readonly string[]): Promise<EvalDocument> {
    const { stdout, stderr } = await this.run('--json', ...flags);
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout) as EvalDocument;
  }

  async lines(name: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const text = await readFile(this.results(name), 'utf8').catch(() => '');
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  async endings(): Promise<readonly unknown[]> {
    return (await this.lines('events.jsonl')).filter(({ type }) => type === 'item:ended');
  }
}

/** By path. */
export async function textsBelow(dir: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return new Map(
    await Promise.all(
      files.map(async ({ parentPath, name }) => {
        const file = path.join(parentPath, name);
        return [file, await readFile(file, 'latin1')] as const;
      }),
    ),
  );
}
