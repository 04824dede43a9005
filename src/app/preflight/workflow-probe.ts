/**
 * Whether the classes of the backend `harbor` can be loaded where they run: by the Python of a task's sandbox, with the packages that the server would
 * install for it. Everything is copied into the sandbox: its layers are fixed by the time its Python is known.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { compileHarborOptions, type HarborOptions } from '../../backends/harbor/harbor-options.ts';
import { PythonPackages, sandboxPythonSchema } from '../../backends/harbor/python-packages.ts';
import { inSandboxCommand, projectLayer } from '../../backends/harbor/sandbox-layers.ts';
import { partInput } from '../../backends/harbor/staged-task.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Environment } from '../../environments/environment.ts';
import { runnerPackageDir } from '../../runner/interpreter.ts';
import type { AppPorts } from '../ports.ts';
import { optionsOf } from '../serve/open-backend.ts';
import { passed, warned, type Verdict } from './verdict.ts';

const root = '/tmp/slipway-preflight';
const importMs = 120_000;

const answerSchema = z.object({
  problems: z.array(
    z.object({ part: z.string(), message: z.string(), missing: z.string().nullable() }),
  ),
});
type Problem = z.output<typeof answerSchema>['problems'][number];

export class WorkflowProbe {
  readonly #options: HarborOptions;
  /** On this machine; null = the code is in the image. */
  readonly #codeDir: string | null;
  readonly #packages: PythonPackages | null;

  private constructor(
    options: HarborOptions,
    at: { readonly codeDir: string | null; readonly packages: PythonPackages | null },
  ) {
    this.#options = options;
    this.#codeDir = at.codeDir;
    this.#packages = at.packages;
  }

  /** null = the backend loads no class of the user. CONFIG_INVALID. */
  static async open(
    config: ServeConfig,
    { ports, scratchDir }: { readonly ports: AppPorts; readonly scratchDir: string },
  ): Promise<WorkflowProbe | null> {
    if (config.backend.kind !== 'harbor') return null;
    const options = compileHarborOptions(optionsOf(config), config.baseDir);
    const { workflow, grader, codeDir, requirements } = options;
    if (workflow === null && grader === null) return null;
    const dataDir = path.join(scratchDir, 'workflow');
    await mkdir(dataDir, { recursive: true });
    const code = codeDir === null ? null : (await projectLayer(codeDir, dataDir)).hostDir;
    const { interpreter: python, path: folders } = config.python;
    const packages =
      requirements === null
        ? null
        : new PythonPackages(requirements, {
            ...{ dataDir, clock: ports.clock, variables: ports.machine.variables },
            interpreter: { python, path: folders },
          });
    await packages?.open();
    return new WorkflowProbe(options, { codeDir: code, packages });
  }

  /** WORKFLOW_INVALID with what Python says; REQUIREMENTS_FAILED; what a sandbox throws. */
  async ask(environment: Environment, signal: AbortSignal): Promise<Verdict> {
    const { sandboxPython, workflow, grader } = this.#options;
    await environment.uploadDir(runnerPackageDir, `${root}/runner`, signal);
    if (this.#codeDir !== null) await environment.uploadDir(this.#codeDir, `${root}/code`, signal);
    const packages = await this.#packagesFor(environment, signal);
    if (packages !== null) await environment.uploadDir(packages, `${root}/packages`, signal);
    const classes = {
      ...(workflow !== null && { workflow: partInput('workflow', workflow)['workflow'] }),
      ...(grader !== null && { grader: partInput('grader', grader)['grader'] }),
    };
    const input = JSON.stringify(classes);
    const { stdout, stderr } = await environment.exec(
      { command: inSandboxCommand(sandboxPython, 'imports', { root, input }), timeoutMs: importMs },
      signal,
    );
    const problems = readAnswer(stdout);
    if (problems === null)
      throw new RolloutError('WORKFLOW_INVALID', 'the classes cannot be looked at in the sandbox', {
        phase: 'config',
        field: 'backend.harbor.sandbox_python',
        remedy: `Install Python 3.9 or later in the image of the task, or name it in backend.harbor.sandbox_python.`,
        detail: stderr.slice(-2_000),
      });
    return verdictOf(problems, Object.keys(classes));
  }

  async #packagesFor(environment: Environment, signal: AbortSignal): Promise<string | null> {
    if (this.#packages === null) return null;
    const command = inSandboxCommand(this.#options.sandboxPython, 'python', { root });
    const { stdout } = await environment.exec({ command, timeoutMs: importMs }, signal);
    const python = sandboxPythonSchema.safeParse(parsed(stdout));
    // Without a Python the import says so.
    return python.success ? await this.#packages.install(python.data, signal) : null;
  }
}

function verdictOf(problems: readonly Problem[], parts: readonly string[]): Verdict {
  const wrong = problems.find(({ missing }) => missing === null);
  if (wrong !== undefined)
    throw new RolloutError(
      'WORKFLOW_INVALID',
      `the ${wrong.part} cannot be loaded: ${wrong.message}`,
      {
        phase: 'config',
        field: `backend.harbor.${wrong.part === 'grader' ? 'grader' : 'agent'}`,
        remedy:
          'Correct the code, or its name; code_dir is the folder that its modules are found from.',
      },
    );
  if (problems.length === 0) return passed(`${parts.join(' and ')} can be loaded in the sandbox`);
  const missing = [...new Set(problems.map((problem) => problem.missing))].join(', ');
  return warned(`not looked at: the sandbox does not have ${missing}`, {
    field: 'backend.harbor.requirements',
    remedy: `Name ${missing} in requirements, or install it in the image of the task: rollouts fail without it.`,
  });
}

function readAnswer(stdout: string): readonly Problem[] | null {
  const answer = answerSchema.safeParse(parsed(stdout));
  return answer.success ? answer.data.problems : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
