/** The agent of a trial whose work a user's workflow does, as a process in the sandbox. What it leaves is known on this side when its run ends. */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  agentLogsDir,
  type Agent,
  type AgentCapabilities,
  type AgentEnvironment,
  type AgentRun,
} from '../../agents/agent.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { HostEndpoint } from '../../environments/environment.ts';
import { seenFromInside } from '../../environments/host-address.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import { maxDocumentBytes, readWorkflowEnd } from './container-sample.ts';
import { inSandboxCommand, pythonProbe } from './sandbox-layers.ts';
import type { Sample } from '../../wire/rollout/callback-payloads.ts';

const inputFile = `${agentLogsDir}/container_input.json`;
const resultFile = `${agentLogsDir}/container_result.json`;
const outputFile = `${agentLogsDir}/workflow.log`;
const oldestPython = [3, 9] as const;

export interface WorkflowAgentParts {
  /** As it was configured. */
  readonly name: string;
  readonly python: string;
  /** Of `container_input.json`, without the model. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Used in place of a prompt that says nothing. */
  readonly hasPrompt: boolean;
  readonly route: ModelRoute | null;
  readonly hostEndpoint: HostEndpoint | null;
  /** Private folder of the rollout. */
  readonly stagingDir: string;
  /** Called before a run ends without an error, of each step; null = there is no sample. */
  readonly leave: (sample: Sample | null) => void;
}

/** Of an agent that is code carried out in the sandbox. */
export const codeCapabilities: AgentCapabilities = {
  resume: false,
  loadTrajectory: false,
  ignoresTrajectory: true,
  windows: false,
};

export class WorkflowAgent implements Agent {
  readonly name: string;
  readonly version = null;
  readonly capabilities = codeCapabilities;
  readonly hostFiles = [];
  readonly hostOnlyVariables = [];
  readonly #parts: WorkflowAgentParts;

  constructor(parts: WorkflowAgentParts) {
    this.name = parts.name;
    this.#parts = parts;
  }

  async setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void> {
    const { python } = this.#parts;
    const { exitCode, stdout, stderr } = await environment.exec(
      { command: pythonProbe(python) },
      signal,
    );
    const version = /^(\d+)\.(\d+)\n?$/.exec(stdout);
    if (version === null)
      throw unusablePython(`the sandbox has no Python that runs as ${python}`, stderr);
    if (exitCode !== 0)
      throw unusablePython(`${python} of the sandbox lacks a part of its standard library`, stderr);
    const [major, minor] = [Number(version[1]), Number(version[2])];
    const [oldMajor, oldMinor] = oldestPython;
    if (major < oldMajor || (major === oldMajor && minor < oldMinor))
      throw unusablePython(`Python ${stdout.trim()} of the sandbox is too old`, '');
  }

  /** WORKFLOW_FAILED with the words of the workflow, or of how its process ended. */
  async run(run: AgentRun, signal: AbortSignal): Promise<void> {
    const { environment } = run;
    const { stagingDir, python, leave } = this.#parts;
    const input = path.join(stagingDir, 'container_input.json');
    await writeFile(input, JSON.stringify(this.#input(run)), { mode: 0o644 });
    await environment.uploadFile(input, inputFile, signal);
    // Of the step before: one that leaves no result has none.
    const result = path.join(stagingDir, 'container_result.json');
    await rm(result, { force: true });
    const { exitCode } = await environment.exec(
      {
        command: `rm -f ${resultFile}; ${inSandboxCommand(python, 'workflow')} >>${outputFile} 2>&1`,
      },
      signal,
    );
    await environment
      .downloadFile(resultFile, result, signal, { maxBytes: maxDocumentBytes })
      .catch((error: unknown) => {
        // What is not there, or cannot be taken, says nothing.
        if (!isRolloutError(error, 'TRANSFER_FAILED')) throw error;
      });
    const end = await readWorkflowEnd(result);
    if (end?.failure !== undefined) throw failed(end.failure.message, null);
    if (end === null || exitCode !== 0)
      throw failed(
        `the process of the workflow ended with ${exitCode}${end === null ? ' and left no result' : ''}`,
        await lastOutput(environment, signal),
      );
    leave(end.sample);
  }

  #input({ instruction, environment }: AgentRun): Readonly<Record<string, unknown>> {
    const { input, hasPrompt, route, hostEndpoint: endpoint } = this.#parts;
    const { hostEndpointUrl: insideUrl } = environment;
    const url = route?.baseUrl ?? '';
    return {
      ...input,
      ...(!hasPrompt && { prompt: [{ role: 'user', content: instruction }] }),
      chat_completions_url:
        endpoint === null || insideUrl === null
          ? url
          : seenFromInside(url, { endpoint, insideUrl }),
      api_key: route?.apiKey ?? null,
    };
  }
}

async function lastOutput(environment: AgentEnvironment, signal: AbortSignal): Promise<string> {
  const { stdout } = await environment.exec({ command: `tail -c 2000 ${outputFile}` }, signal);
  return stdout;
}

function failed(message: string, detail: string | null): RolloutError {
  return new RolloutError('WORKFLOW_FAILED', message, {
    phase: 'agent',
    ...(detail !== null && { detail }),
  });
}

function unusablePython(message: string, detail: string): RolloutError {
  return new RolloutError('AGENT_SETUP_FAILED', message, {
    phase: 'agent-setup',
    field: 'backend.harbor.sandbox_python',
    retryable: false,
    remedy: `Install the whole of Python ${oldestPython.join('.')} or later in the image of the task, or name it in backend.harbor.sandbox_python.`,
    detail,
  });
}
