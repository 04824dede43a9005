/** The backend `harbor` with workflows and graders written for osmosis-ai, unchanged, in each environment of this machine. */
import { readdir, readFile } from 'node:fs/promises';
import { harborPeerDir, harborPython } from '../../../scripts/setup/harbor-peer.js';
import { osmosisPeerDir } from '../../../scripts/setup/osmosis-peer.js';
import { projectDir, templateTask } from '../../backends/harbor/harbor-bench.ts';
import { ChatUpstream, type Answer } from '../../fakes/chat-upstream.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { harborAgentsDir } from '../../integration/harbor-agents/harbor-bench.ts';
import { providePythonImage } from '../../support/python-image.ts';
import { realProviders } from '../../support/real-providers.ts';
import type { BackendSection, SectionReport } from './backend-section.ts';
import { projectFolder } from './project-folder.ts';
import { keptFile, runPlanned, serve, type PlannedRollout, type Served } from './served.ts';

const modelKey = 'key-of-the-model-only';
/** The one that has to fail. */
const endedId = 'ended';

interface UserProject {
  readonly works: string;
  readonly workflow: string;
  readonly grader: string;
  readonly folders: readonly string[];
  /** What the model says about a question. */
  readonly answer: (question: string) => string;
  /** File among the artifacts that holds what was answered in the end. */
  readonly artifact: string;
}

const sdkProject: UserProject = {
  works: 'AgentWorkflow and Grader of osmosis-ai',
  ...{ workflow: 'quiz.sdk:SdkWorkflow', grader: 'quiz.sdk:SdkGrader' },
  folders: [osmosisPeerDir(), projectDir],
  answer: (question) => `answer to ${question}`,
  artifact: 'answer.txt',
};

/** Harbor's class does the work of the workflow: its commands run where the workflow does. */
const agentProject: UserProject = {
  works: 'BaseAgent of harbor in an AgentWorkflow of osmosis-ai',
  ...{ workflow: 'agent_workflow:HarborAgentWorkflow', grader: 'agent_workflow:AnswerGrader' },
  folders: [osmosisPeerDir(), harborPeerDir(), harborAgentsDir],
  answer: (question) => `echo answer to ${question} > answer`,
  artifact: 'answer',
};

/** A model that answers by its question. What asks one of them is ended by it. */
function modelOf({ answer }: UserProject, end: Answer): Answer {
  return async (response, call) => {
    const { messages } = JSON.parse(call.body.toString()) as { messages: { content: string }[] };
    const question = messages[0]?.content ?? '';
    if (question === endedId) {
      await end(response, call);
      return;
    }
    response.setHeader('content-type', 'application/json');
    const message = { role: 'assistant', content: answer(question) };
    const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
    response.end(JSON.stringify({ choices: [{ message }], usage }));
  };
}

/** SIGKILL for the process of the workflow in its sandbox, seen from outside. */
const killInSandbox: Answer = async (response) => {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!words.includes('slipway_runner.in_sandbox\0workflow')) continue;
    const input = `/proc/${pid}/root/logs/agent/container_input.json`;
    const text = await readFile(input, 'utf8').catch(() => '{}');
    const { rollout_id: id } = JSON.parse(text) as { readonly rollout_id?: string };
    if (id === endedId) process.kill(Number(pid), 'SIGKILL');
  }
  response.end('{}');
};

function plannedQuestions(
  served: Pick<Served, 'server'>,
  options: {
    readonly count: number;
    readonly artifact: string;
    readonly ending: Pick<PlannedRollout, 'promised'>;
  },
): readonly PlannedRollout[] {
  const { count, artifact, ending } = options;
  const planned = Array.from({ length: count }, (_, index): PlannedRollout => {
    const [id, question] = [`question-${index}`, `question ${index}`];
    // Every third label is another: a grader that gives everybody the same is found out.
    const isRight = index % 3 !== 2;
    return {
      rollout_id: id,
      initial_messages: [{ role: 'user', content: question }],
      label: isRight ? `answer to ${question}` : 'something else',
      promised: isRight ? 1 : 0.25,
      judge: async () => {
        const kept = (await keptFile(served.server, id, artifact).catch(String)).trim();
        return kept === `answer to ${question}` ? [] : [`its artifact holds ${kept}`];
      },
    };
  });
  const ended: PlannedRollout = { ...ending, rollout_id: endedId, label: 'x' };
  return [{ ...ended, initial_messages: [{ role: 'user', content: endedId }] }, ...planned];
}

async function runProject(
  project: UserProject,
  { environment, count }: { readonly environment: string; readonly count: number },
): Promise<SectionReport> {
  await using upstream = await ChatUpstream.start(modelOf(project, killInSandbox));
  await using code = await projectFolder(project.folders);
  await using task = await taskFolder(templateTask(await providePythonImage()));
  const config = [
    ...['[backend]', 'kind = "harbor"', '[backend.harbor]', `environment = "${environment}"`],
    ...[`tasks_dir = "${task.dir}"`, `code_dir = "${code.dir}"`],
    ...[`agent = "${project.workflow}"`, `grader = "${project.grader}"`, ''],
  ].join('\n');
  await using served = await serve({
    config,
    request: { chat_completions_url: `${upstream.url}/v1`, llm_api_key: modelKey },
  });
  const ending = { promised: { cause: 'WORKFLOW_FAILED' } };
  const artifact = `artifacts/logs/artifacts/${project.artifact}`;
  const planned = plannedQuestions(served, { artifact, count, ending });
  const report = await runPlanned(served, planned);
  const strangers = upstream.received.filter(
    ({ headers }) => headers.authorization !== `Bearer ${modelKey}`,
  );
  const problems = strangers.map(({ url }) => `a call of ${url} had another key`);
  return { ...report, problems: [...report.problems, ...problems] };
}

/** The same agent in a workflow of the backend `local`, whose folder is its environment. */
export const agentInLocalSection: BackendSection = {
  ...{ backend: 'local', environment: 'processes beside the server', works: agentProject.works },
  async run(count) {
    const refuse: Answer = (response) => void response.writeHead(400).end('{}');
    await using upstream = await ChatUpstream.start(modelOf(agentProject, refuse));
    const path = agentProject.folders.map((folder) => JSON.stringify(folder)).join(', ');
    const config = [
      ...['[python]', `interpreter = "${harborPython()}"`, `path = [${path}]`],
      ...['[backend]', 'kind = "local"', '[backend.local]'],
      ...[`workflow = "${agentProject.workflow}"`, `grader = "${agentProject.grader}"`, ''],
    ].join('\n');
    await using served = await serve({
      config,
      request: { chat_completions_url: `${upstream.url}/v1`, llm_api_key: modelKey },
    });
    const ending = { promised: { cause: 'WORKFLOW_FAILED' } };
    const artifact = `artifacts/${agentProject.artifact}`;
    const planned = plannedQuestions(served, { artifact, count, ending });
    return await runPlanned(served, planned);
  },
};

export const harborSections: readonly BackendSection[] = realProviders().flatMap(({ kind, skip }) =>
  [sdkProject, agentProject].map((project): BackendSection => ({
    ...{ backend: 'harbor', environment: kind, works: project.works },
    run: (count) => {
      if (skip !== null) throw new Error(`cannot be shown here: ${skip}`);
      return runProject(project, { environment: kind, count });
    },
  })),
);
