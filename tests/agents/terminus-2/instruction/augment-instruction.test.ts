import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { after } from 'node:test';
import { augmentInstruction } from '../../../../src/agents/terminus-2/instruction/augment-instruction.ts';
import type { ExecRequest, ExecResult } from '../../../../src/environments/environment.ts';

const signal = new AbortController().signal;
const root = await mkdtemp(path.join(tmpdir(), 'skills-'));
after(() => rm(root, { recursive: true }));

/** The shell of this machine. */
const environment = {
  exec: ({ command }: ExecRequest): Promise<ExecResult> =>
    new Promise((resolve) => {
      execFile('sh', ['-c', command], (error, stdout, stderr) =>
        resolve({ exitCode: error === null ? 0 : 1, stdout, stderr, isTruncated: false }),
      );
    }),
};

async function skillFolder(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const dir = path.join(root, name);
  await mkdir(dir, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(dir, file)), { recursive: true });
    await writeFile(path.join(dir, file), content);
  }
  return dir;
}

function augment(skillsDir: string | null): Promise<string> {
  return augmentInstruction('Do it.', { environment, mcpServers: [], skillsDir }, signal);
}

function frontMatter(name: string, description: string): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\nBody.\n`;
}

test('an instruction without servers and skills is as it was', async () => {
  assert.equal(await augment(null), 'Do it.');
});

test('servers are listed with their transport and how they are reached', async () => {
  const mcpServers = [
    { name: 'files', transport: 'stdio' as const, command: 'npx', args: ['serve', '/srv'] },
    { name: 'maps', transport: 'sse' as const, url: 'http://maps:80/sse', args: [] },
    { name: 'tides', transport: 'streamable-http' as const, url: 'http://tides/mcp', args: [] },
  ].map((server) => ({ url: null, command: null, ...server }));
  assert.equal(
    await augmentInstruction('Do it.', { environment, mcpServers, skillsDir: null }, signal),
    `Do it.

MCP Servers:
- files (stdio): npx serve /srv
- maps (sse): http://maps:80/sse
- tides (streamable-http): http://tides/mcp`,
  );
});

test('skills are listed by path, escaped, with the place of their file', async () => {
  const dir = await skillFolder("it's a folder", {
    'b-second/SKILL.md': frontMatter('second', '"a < b && c"'),
    'a-first/SKILL.md': '---\r\ndescription: >\r\n  in two\r\n  lines\r\nname: é💧\r\n---\r\n',
    'c & third/SKILL.md': frontMatter('3', 'true'),
  });
  assert.equal(
    await augment(dir),
    `Do it.

<available_skills>
  <skill>
    <name>é💧</name>
    <description>in two lines</description>
    <location>${dir}/a-first/SKILL.md</location>
  </skill>
  <skill>
    <name>second</name>
    <description>a &lt; b &amp;&amp; c</description>
    <location>${dir}/b-second/SKILL.md</location>
  </skill>
  <skill>
    <name>3</name>
    <description>true</description>
    <location>${dir}/c &amp; third/SKILL.md</location>
  </skill>
</available_skills>`,
  );
});

const noSkills: readonly [title: string, files: Readonly<Record<string, string>>][] = [
  ['an empty folder', {}],
  ['a file at the top', { 'SKILL.md': frontMatter('a', 'b') }],
  ['a file two levels down', { 'x/y/SKILL.md': frontMatter('a', 'b') }],
  ['a file of another name', { 'x/README.md': frontMatter('a', 'b') }],
  ['no front matter', { 'x/SKILL.md': 'name: a\ndescription: b\n' }],
  ['a front matter that does not begin the file', { 'x/SKILL.md': `\n${frontMatter('a', 'b')}` }],
  ['a front matter without an end', { 'x/SKILL.md': '---\nname: a\ndescription: b\n' }],
  ['no name', { 'x/SKILL.md': '---\ndescription: b\n---\n' }],
  ['no description', { 'x/SKILL.md': '---\nname: a\n---\n' }],
  ['a name that is a list', { 'x/SKILL.md': '---\nname: [a]\ndescription: b\n---\n' }],
  ['what is not YAML', { 'x/SKILL.md': '---\nname: "a\ndescription: b: c\n---\n' }],
  ['YAML that is a text', { 'x/SKILL.md': '---\nhello\n---\n' }],
  ['an empty file', { 'x/SKILL.md': '' }],
];

for (const [title, files] of noSkills)
  test(`no skill: ${title}`, async () => {
    assert.equal(await augment(await skillFolder(title, files)), 'Do it.');
  });

test('no skill: a folder that is not there', async () => {
  assert.equal(await augment(path.join(root, 'missing')), 'Do it.');
});

test('no skill: a link instead of a file', async () => {
  const target = await skillFolder('outside', { 'secret.md': frontMatter('a', 'b') });
  const dir = await skillFolder('links', { 'x/other': '' });
  await symlink(path.join(target, 'secret.md'), path.join(dir, 'x/SKILL.md'));
  assert.equal(await augment(dir), 'Do it.');
});

test('one skill beside files that are none is found, control characters replaced', async () => {
  const dir = await skillFolder('mixed', {
    'a/SKILL.md': 'nothing',
    'b/SKILL.md': `${frontMatter('good', '"bell \\u0007"')}${'x'.repeat(100_000)}\0`,
    'c/SKILL.md': '',
  });
  const text = await augment(dir);
  assert.match(text, /<name>good<\/name>\n {4}<description>bell \ufffd<\/description>/);
  assert.equal(text.split('<skill>').length, 2);
});
