/** Many terminus-2 trials at once in a `slipway run` of their own, against a mock engine in a process of its own; see `process-probe.ts`. */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { command } from '../environments/commands.ts';
import { quantile } from '../samples.ts';
import type { ProbeReport } from './process-probe.ts';

export interface TrialsCost {
  readonly peakRssMiB: number;
  readonly cpuMsPerTrial: number;
  /** While every trial ran its agent and most waited. */
  readonly idleLagP50Ms: number;
  readonly idleLagP99Ms: number;
  readonly idleLagMaxMs: number;
  readonly idleSec: number;
  /** Share of one processor while idle. */
  readonly idleCpuShare: number;
  readonly wholeLagP99Ms: number;
  readonly wholeSec: number;
}

interface TrialsOptions {
  readonly slipway: string;
  readonly taskDir: string;
  readonly jobsDir: string;
  readonly stateDir: string;
  readonly count: number;
}

/** What starting and ending agents leave at the edges of the time in which all run. */
const edgeMs = 3_000;

export async function concurrentTrials(options: TrialsOptions): Promise<TrialsCost> {
  const { slipway, taskDir, jobsDir, stateDir, count } = options;
  await mkdir(jobsDir, { recursive: true });
  const probeFile = path.join(jobsDir, 'probe.json');
  const engine = await startEngine(slipway);
  try {
    await command(
      process.execPath,
      [
        ...['--import', path.join(import.meta.dirname, 'process-probe.ts'), slipway, 'run'],
        ...['--quiet', '--yes', '-p', taskDir, '-a', 'terminus-2', '-m', 'openai/mock'],
        ...['-e', 'local', '-k', String(count), '-n', String(count)],
        ...['-o', jobsDir, '--job-name', 'trials'],
      ],
      {
        SLIPWAY_STATE_DIR: stateDir,
        OPENAI_BASE_URL: `${engine.url}/v1`,
        OPENAI_API_KEY: 'bench-key',
        BENCH_PROBE: probeFile,
      },
    );
  } finally {
    engine.stop();
  }
  const report = JSON.parse(await readFile(probeFile, 'utf8')) as ProbeReport;
  return summary(report, await agentTimes(path.join(jobsDir, 'trials'), count));
}

async function startEngine(slipway: string): Promise<{ url: string; stop: () => void }> {
  const policy = path.join(import.meta.dirname, 'waiting-policy.ts');
  const child = spawn(process.execPath, [slipway, 'engine', '--json', '--policy', policy], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(line) as { readonly url: string };
    return {
      url,
      stop: () => {
        child.kill();
      },
    };
  }
  throw new Error('the mock engine did not start');
}

interface Span {
  readonly from: number;
  readonly to: number;
}

async function agentTimes(jobDir: string, count: number): Promise<readonly Span[]> {
  const spans: Span[] = [];
  for (const entry of await readdir(jobDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const file = path.join(jobDir, entry.name, 'result.json');
    const result = JSON.parse(await readFile(file, 'utf8')) as {
      readonly agent_execution: { readonly started_at: string; readonly finished_at: string };
      readonly verifier_result: { readonly rewards: { readonly reward: number } } | null;
    };
    if (result.verifier_result?.rewards.reward !== 1)
      throw new Error(`${entry.name} did not get its reward`);
    const { started_at, finished_at } = result.agent_execution;
    spans.push({ from: Date.parse(started_at), to: Date.parse(finished_at) });
  }
  if (spans.length !== count) throw new Error(`${spans.length} trials of ${count} have a result`);
  return spans;
}

function summary({ lags, moments }: ProbeReport, spans: readonly Span[]): TrialsCost {
  const from = Math.max(...spans.map((span) => span.from)) + edgeMs;
  const to = Math.min(...spans.map((span) => span.to)) - edgeMs;
  if (to <= from) throw new Error('there was no time in which all agents ran');
  const idle = lags.filter(({ at }) => at >= from && at <= to).map(({ lagMs }) => lagMs);
  const cpu = moments.filter(({ at }) => at >= from && at <= to);
  const cpuMs = (cpu.at(-1)?.cpuMs ?? Number.NaN) - (cpu[0]?.cpuMs ?? Number.NaN);
  const wallMs = (cpu.at(-1)?.at ?? Number.NaN) - (cpu[0]?.at ?? Number.NaN);
  return {
    peakRssMiB: Math.max(...moments.map(({ rssBytes }) => rssBytes)) / 2 ** 20,
    cpuMsPerTrial: (moments.at(-1)?.cpuMs ?? Number.NaN) / spans.length,
    idleLagP50Ms: quantile(idle, 0.5),
    idleLagP99Ms: quantile(idle, 0.99),
    idleLagMaxMs: Math.max(...idle),
    idleSec: (to - from) / 1000,
    idleCpuShare: cpuMs / wallMs,
    wholeLagP99Ms: quantile(
      lags.map(({ lagMs }) => lagMs),
      0.99,
    ),
    wholeSec: ((moments.at(-1)?.at ?? 0) - (moments[0]?.at ?? 0)) / 1000,
  };
}
