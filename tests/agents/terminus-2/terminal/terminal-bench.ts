/** A real sandbox for tests of the terminal: each terminal has a tmux server of its own in it. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../../../src/core/clock.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../../src/core/logger.ts';
import { Scope } from '../../../../src/core/scope.ts';
import type { AgentEnvironment } from '../../../../src/agents/agent.ts';
import {
  openTerminal,
  type TerminalOptions,
} from '../../../../src/agents/terminus-2/terminal/open-terminal.ts';
import type { Terminal } from '../../../../src/agents/terminus-2/terminal/terminal.ts';
import type { Environment } from '../../../../src/environments/environment.ts';
import { agentEnvironment } from '../../../../src/trial/agent-environment.ts';
import { environmentSpec } from '../../../fakes/environment/environment-spec.ts';
import type { RealProvider } from '../../../support/real-providers.ts';

const waitMs = 30_000;

export interface OpenedTerminal {
  readonly terminal: Terminal;
  /** The environment in which this terminal's server is the one that `tmux` means. */
  readonly environment: AgentEnvironment;
  readonly recordingFile: string;
  readonly type: (keys: string) => Promise<void>;
  /** Waits until the visible screen is as wanted; answers it. */
  readonly until: (wanted: RegExp) => Promise<string>;
  /** A plain prompt on an empty screen, whatever the image has. */
  readonly settle: () => Promise<void>;
}

export class TerminalBench {
  readonly #scope = new Scope();
  readonly folder: string;
  readonly environment: Environment;

  private constructor(folder: string, environment: Environment) {
    this.folder = folder;
    this.environment = environment;
  }

  static async open(real: RealProvider): Promise<TerminalBench> {
    const folder = await mkdtemp(path.join(tmpdir(), 'terminal-'));
    const { provider, close } = await real.open();
    await provider.preflight(never);
    const spec = environmentSpec(`term-${randomUUID().slice(0, 13)}`, {
      network: { mode: 'no-network' },
    });
    const environment = provider.environment(spec);
    const bench = new TerminalBench(folder, environment);
    bench.#scope.defer(() => rm(folder, { recursive: true, force: true }));
    bench.#scope.defer(close);
    bench.#scope.defer(async () => {
      await environment.destroy();
    });
    await environment.start({ signal: never });
    return bench;
  }

  async terminal(overrides: Partial<TerminalOptions> = {}): Promise<OpenedTerminal> {
    const name = randomUUID();
    const servers = `/tmp/tmux-${name}`;
    await this.environment.exec({ command: `mkdir -m 700 ${servers}` }, never);
    const environment = agentEnvironment(this.environment, {
      user: null,
      env: { TMUX_TMPDIR: servers },
    });
    const recordingFile = path.join(this.folder, `${name}.cast`);
    const terminal = await openTerminal(
      {
        ...{ environment, width: 100, height: 30, env: {}, recordingFile, secrets: [] },
        ...{ clock: systemClock, logger: silentLogger },
        ...overrides,
      },
      never,
    );
    this.#scope.defer(() => terminal.close());
    const type = (keys: string): Promise<void> => terminal.send(keys, { durationSec: 0 }, never);
    const until = async (wanted: RegExp): Promise<string> => {
      const endsAt = performance.now() + waitMs;
      for (;;) {
        const screen = await terminal.screen(never);
        if (wanted.test(screen)) return screen;
        if (performance.now() > endsAt) throw new Error(`no ${wanted.source} on:\n${screen}`);
        await pause(20);
      }
    };
    const settle = async (): Promise<void> => {
      await until(/[#$]\s*$/);
      await type("PS1='ready> '; PROMPT_COMMAND=; clear; tmux clear-history\n");
      await until(/^ready>\s*$/);
    };
    return { terminal, environment, recordingFile, type, until, settle };
  }

  /** The screen of a terminal of the same size after all output of a recording, without blanks at its end. */
  async replayed(events: readonly RecordedEvent[]): Promise<string> {
    const output = events.filter(([, kind]) => kind === 'o').map(([, , text]) => text);
    // The title comes behind all output, and changes nothing of the screen.
    const { stdout } = await this.environment.exec(
      {
        command: `TMUX_TMPDIR=$(mktemp -d); export TMUX_TMPDIR; cd $TMUX_TMPDIR; cat >output
          printf '%s\n' 'stty raw -echo' 'cat output' 'printf "\\033]2;played\\033\\\\"' 'sleep 1000' >play
          tmux -u new-session -d -s r -x 100 -y 30 'sh play'
          until [ "$(tmux display-message -p -t r '#{pane_title}')" = played ]; do sleep 0.05; done
          tmux -u capture-pane -p -t r; tmux kill-server`,
        env: { TERM: 'xterm-256color' },
        stdin: Buffer.from(output.join('')),
        timeoutMs: waitMs,
      },
      never,
    );
    return stdout.trimEnd();
  }

  async close(): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}

/** Time, kind, text. */
export type RecordedEvent = readonly [number, string, string];

export async function recorded(file: string): Promise<readonly RecordedEvent[]> {
  const [, ...lines] = (await readFile(file, 'utf8')).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as RecordedEvent);
}
