/** `--secrets-file`: what is in it reaches the code that is evaluated, and nothing that is written. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Evaluation, textsBelow } from './evaluation.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-secrets-'));
});
after(() => rm(root, { recursive: true, force: true }));

const token = 'token-of-the-file-b81d';
const multiline = '-----BEGIN\nline-of-the-key-77\n-----END';

/** Its graders see the variables; its workflow tells everybody about them. */
const code = `
export class Workflow {
  async run() {
    console.log('TOKEN is', process.env.TOKEN);
    return [{ role: 'assistant', content: process.env.TOKEN + ' ' + process.env.PEM }];
  }
}
export class Grade {
  async grade(ctx) {
    const { TOKEN, PLAIN, OVER, OWN_SECRET } = process.env;
    const isRight = [TOKEN, PLAIN, OVER, OWN_SECRET].join() === ${JSON.stringify([token, 'from the table', 'of the file', 'of the shell'].join())};
    ctx.setReward(isRight ? 1 : 0);
  }
}
`;

async function evaluation(name: string, secrets: string): Promise<Evaluation> {
  const made = await Evaluation.of([root, name], []);
  const row = { metadata: { any: 'thing' }, user_prompt: 'tell', ground_truth: '-' };
  await writeFile(path.join(made.dir, 'rows.jsonl'), `${JSON.stringify(row)}\n`);
  await writeFile(path.join(made.dir, 'code.ts'), code);
  await writeFile(path.join(made.dir, '.secrets'), secrets, { mode: 0o600 });
  const table =
    '[secrets]\nrequired = ["TOKEN"]\n[env]\nPLAIN = "from the table"\nOVER = "of the table"\n' +
    '[backend]\nkind = "local"\n[backend.local]\nworkflow = "./code.ts:Workflow"\ngrader = "./code.ts:Grade"';
  await made.configure('', table);
  made.variables = { ...made.variables, OVER: 'of the shell', OWN_SECRET: 'of the shell' };
  return made;
}

describe('a file of secrets', { timeout: 240_000 }, () => {
  it('gives variables to the code, over those of the table and of the shell, and stands in no file', async () => {
    const made = await evaluation(
      'used',
      `# mine\nexport TOKEN='${token}'\nOVER="of the file" # wins\nPEM="${multiline}"\n`,
    );
    const { stdout, stderr, exitCode } = await made.run('--yes', '--json', '--secrets-file', '.secrets'); // prettier-ignore
    assert.equal(exitCode, 0, stdout + stderr);
    assert.match(stdout, /"reward": 1,/);
    assert.doesNotMatch(stderr, /warning/);
    const texts = await textsBelow(path.join(made.dir, '.slipway'));
    assert.ok([...texts.keys()].some((file) => file.endsWith('/trajectory.json')));
    assert.ok([...texts.values()].some((text) => text.includes('TOKEN is [REDACTED]')));
    for (const [file, text] of [...texts, ['stdout', stdout], ['stderr', stderr]] as const)
      for (const secret of [token, 'of the file', 'line-of-the-key-77'])
        assert.ok(!text.includes(secret), `${file} holds a secret`);
  });

  it('that others may read is taken with a warning', async () => {
    const made = await evaluation('open', `TOKEN=${token}\n`);
    await chmod(path.join(made.dir, '.secrets'), 0o644);
    const { stderr } = await made.run('--yes', '--secrets-file', '.secrets');
    assert.match(stderr, /warning: .*\.secrets is open to others than its owner: chmod 600/);
  });

  const refused: readonly (readonly [what: string, secrets: string, flags: readonly string[], RegExp])[] = [
    ['is needed for what must be set', '', [], /CONFIG_INVALID \[secrets\.required\]: the variable TOKEN/],
    ['that is not there is refused', '', ['--secrets-file', 'none'], /CONFIG_INVALID \[--secrets-file\]: .*none: no such file/],
    ['with a wrong line is refused by the number of the line', `TOKEN=1\n${token}`, ['--secrets-file', '.secrets'], /CONFIG_INVALID \[--secrets-file line 2\]: expected NAME=value/],
  ]; // prettier-ignore
  for (const [index, [what, secrets, flags, said]] of refused.entries())
    it(what, async () => {
      const made = await evaluation(`refused-${index}`, secrets);
      const { stderr, exitCode } = await made.run('--yes', ...flags);
      assert.match(stderr, said);
      assert.equal(exitCode, 2);
      assert.ok(!stderr.includes(token));
    });
});
