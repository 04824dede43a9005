import type { Environment, InteractiveProcess } from '../../../src/environments/environment.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import type { RunRequest, SandboxBody } from './sandbox-body.ts';

export interface LightAnswer {
  readonly exitCode: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

/** What a program would have said; it is told its whole input. */
export type AnswerRun = (argv: readonly string[], stdin: Buffer) => LightAnswer;

const pidLine = 'slipway-pid 7\n';

/**
 * A sandbox that is nothing at all, for proofs with hundreds of them: a program ends at once, or behind the script that it reads, and what it said comes
 * from `answer`. A shell that is told scripts of ours stays, and echoes the word that ends each. Its files are taken and forgotten.
 */
export class LightSandbox implements SandboxBody {
  readonly isLight = true;
  readonly files: Pick<Environment, 'uploadFile' | 'uploadDir' | 'downloadFile' | 'downloadDir'> = {
    uploadFile: () => Promise.resolve(),
    uploadDir: () => Promise.resolve(),
    downloadFile: () => Promise.reject(noFiles()),
    downloadDir: () => Promise.reject(noFiles()),
  };
  readonly #answer: AnswerRun;
  #isAlive = false;

  constructor(answer: AnswerRun = succeed) {
    this.#answer = answer;
  }

  start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#isAlive = true;
    return Promise.resolve();
  }

  run(request: RunRequest): Promise<InteractiveProcess> {
    const input: Buffer[] = [];
    const ended = Promise.withResolvers<number | null>();
    const end = (): void => {
      const {
        exitCode,
        stdout = '',
        stderr = '',
      } = this.#answer(request.argv, Buffer.concat(input));
      if (stderr !== '') request.onOutput('stderr', Buffer.from(stderr));
      if (stdout !== '') request.onOutput('stdout', Buffer.from(stdout));
      ended.resolve(exitCode);
    };
    const readsScript = request.argv.some((word) => word.includes('read -r slipway_s '));
    if (!readsScript) setImmediate(end);
    let isShell = false;
    const take = (text: string): void => {
      if (isShell) {
        const [, word] = /echo (\w+)\n$/.exec(text) ?? [];
        if (word !== undefined) request.onOutput('stdout', Buffer.from(`${word}\n`));
        return;
      }
      isShell = text.endsWith('exec sh\n');
      if (isShell) request.onOutput('stderr', Buffer.from(pidLine));
      else if (readsScript && text.includes('\n')) setImmediate(end);
    };
    return Promise.resolve({
      write: (bytes) => {
        input.push(Buffer.from(bytes));
        take(Buffer.from(bytes).toString('utf8'));
        return Promise.resolve();
      },
      endInput: () => undefined,
      exited: ended.promise,
      kill: () => {
        ended.resolve(null);
        return Promise.resolve();
      },
    });
  }

  setEgress(): Promise<void> {
    return Promise.resolve();
  }

  isAlive(): Promise<boolean> {
    return Promise.resolve(this.#isAlive);
  }

  stop(): Promise<void> {
    this.#isAlive = false;
    return Promise.resolve();
  }

  destroy(): Promise<void> {
    return this.stop();
  }
}

/** Every program succeeds and says nothing, but for the process id that wrappers of commands ask for. */
export function succeed(argv: readonly string[], stdin: Buffer): LightAnswer {
  const asksForPid = [...argv, stdin.toString('utf8')].some((text) => text.includes('slipway-pid'));
  return { exitCode: 0, stderr: asksForPid ? pidLine : '' };
}

function noFiles(): RolloutError {
  return new RolloutError('TRANSFER_FAILED', 'a light sandbox has no files', {
    phase: 'environment',
  });
}
