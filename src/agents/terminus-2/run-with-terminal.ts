/** One run once its terminal is open: puts the parts of the loop together, and leaves a whole trajectory and result however it ends. */
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { Engine } from '../../engines/engine.ts';
import type { AtifAgent } from '../../wire/atif/atif.ts';
import type { AgentEnvironment, AgentRun } from '../agent.ts';
import { ContextOverflow } from './context-overflow.ts';
import { EpisodeLoop } from './episode-loop.ts';
import { ModelChat } from './model-chat.ts';
import { ModelQueries } from './model-queries.ts';
import type { Terminus2Options } from './options.ts';
import { jsonParser } from './parsers/json-parser.ts';
import { xmlParser } from './parsers/xml-parser.ts';
import { renderPrompt } from './prompts/render-prompt.ts';
import { RunLedger } from './run-ledger.ts';
import { Summariser } from './summariser.ts';
import type { Terminal } from './terminal/terminal.ts';
import { TrajectoryRecorder } from './trajectory-recorder.ts';
import { withinMs } from './within-ms.ts';

/** For what a run writes after it was told to stop; with the closing of its terminal less than the grace that a trial gives. */
const lastWordsMs = 3_500;

export interface TerminalRun extends Pick<AgentRun, 'deadline' | 'record'> {
  readonly options: Terminus2Options;
  /** As the model reads it. */
  readonly instruction: string;
  readonly sessionId: string;
  readonly agent: AtifAgent;
  readonly logsDir: string;
  readonly secrets: readonly string[];
  readonly engine: Engine;
  readonly terminal: Terminal;
  readonly environment: Pick<AgentEnvironment, 'exec'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export async function runWithTerminal(run: TerminalRun, signal: AbortSignal): Promise<void> {
  const { options, terminal, clock, record } = run;
  const { modelInfo, collectsRolloutDetails, sendsReasoning, storesMessages } = options;
  const ledger = new RunLedger({ modelInfo, collectsRolloutDetails, secrets: run.secrets });
  const recorder = await TrajectoryRecorder.open({
    ...run,
    isLinear: options.isLinear,
    source: { modelName: options.modelName, modelInfo, now: () => clock.now() },
  });
  const queries = new ModelQueries(run);
  const chat = new ModelChat({ queries, ledger, sendsReasoning });
  const summariser = new Summariser({ ...run, queries, ledger, recorder, sendsReasoning });
  const report = (): void => record(ledger.toResult(storesMessages ? chat.history.messages : null));
  const loop = new EpisodeLoop({
    ...run,
    parser: options.parser === 'json' ? jsonParser : xmlParser,
    overflow: new ContextOverflow({ ...run, chat, summariser, recorder, ledger }),
    recorder,
    ledger,
    report,
  });
  try {
    const firstPrompt = renderPrompt(options.parser, {
      instruction: run.instruction,
      terminalState: await terminal.readOutput(signal),
      deadline: run.deadline,
      now: clock.now(),
    });
    await loop.run(firstPrompt, signal);
  } finally {
    report();
    const closing = recorder.close(ledger.toFinalMetrics());
    await (signal.aborted ? withinMs(lastWordsMs, closing) : closing);
  }
}
