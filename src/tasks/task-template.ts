import { defaultSchemaVersion } from '../wire/harbor/task-config.ts';
import { writeTaskToml } from './write-task-toml.ts';

export interface TemplateFile {
  /** Below the task folder, forward slashes. */
  readonly relative: string;
  readonly text: string;
  readonly isExecutable: boolean;
}

/** The files of a new task: count the lines of a text and write the number down. */
export function taskFiles(name: string): readonly TemplateFile[] {
  return [
    plain('task.toml', taskToml(name)),
    plain('instruction.md', instruction),
    plain('environment/Dockerfile', dockerfile),
    plain('environment/notes.txt', notes),
    script('solution/solve.sh', solution),
    script('tests/test.sh', tests),
  ];
}

function plain(relative: string, text: string): TemplateFile {
  return { relative, text, isExecutable: false };
}

function script(relative: string, text: string): TemplateFile {
  return { relative, text, isExecutable: true };
}

function taskToml(name: string): string {
  return writeTaskToml({
    schema_version: defaultSchemaVersion,
    task: name.includes('/') ? { name, description: '' } : null,
    metadata: { difficulty: 'easy', tags: ['example'] },
    verifier: { timeout_sec: 900 },
    agent: { timeout_sec: 900 },
    environment: { build_timeout_sec: 600, network_mode: 'public' },
  });
}

const instruction = `Count the lines of \`/app/notes.txt\` and write the number, nothing else, to \`/app/answer.txt\`.
`;

/** The image that set-up makes where no registry answers, so that a new task runs wherever the bundled ones do. */
const dockerfile = `FROM debian:bookworm-slim
WORKDIR /app
COPY notes.txt /app/notes.txt
`;

const notes = `The first line.
The second line.
The third line.
`;

const solution = `#!/bin/bash
set -e
wc -l < /app/notes.txt > /app/answer.txt
`;

const tests = `#!/bin/bash
# The reward is what this script leaves in /logs/verifier: a number in reward.txt, or an object of numbers in reward.json.
answer=$(cat /app/answer.txt 2>/dev/null | tr -d '[:space:]')
if [ "$answer" = 3 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`;
