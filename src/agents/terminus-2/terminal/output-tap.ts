/**
 * What control mode streams of the pane, for the recording. A flood is neither worth recording nor worth the processor: after so many bytes since
 * the last look the stream is paused, and goes on with a drawing of the whole screen at the next one. tmux pauses it too when we are slow.
 */
import type { ControlClient, ControlHooks } from './control-client.ts';
import type { Recording } from './recording.ts';
import { paneTarget, type TmuxReply } from './tmux-commands.ts';

const floodBytes = 256 * 1024;
const pauseAfterSec = 1;

export class OutputTap {
  readonly #recording: Recording | null;
  #client: ControlClient | null = null;
  #pane: string | null = null;
  #size: string;
  #isPaused = false;
  #isOff = false;
  #sinceLook = 0;

  constructor(recording: Recording | null, size: string) {
    this.#recording = recording;
    this.#size = size;
  }

  readonly hooks: ControlHooks = {
    onOutput: (pane, bytes) => this.#output(pane, bytes),
    onNotice: (name, rest) => this.#notice(name, rest),
  };

  /** Before anything else is asked of a new client. */
  async begin(client: ControlClient, signal: AbortSignal): Promise<void> {
    this.#client = client;
    this.#pane = null;
    this.#isPaused = false;
    this.#isOff = this.#recording === null || this.#recording.isOver;
    this.#sinceLook = 0;
    const flags = this.#isOff ? 'no-output' : `pause-after=${pauseAfterSec}`;
    await client.run(['refresh-client', '-f', flags], signal);
    if (this.#isOff) return;
    const pane = await client.run(
      ['display-message', '-p', '-t', paneTarget, '#{pane_id}'],
      signal,
    );
    this.#pane = pane.text.trim();
    await this.#draw(client, signal);
  }

  /** When something is typed or looked at: what comes now is recorded again. */
  async look(client: ControlClient, signal: AbortSignal): Promise<void> {
    this.#sinceLook = 0;
    if (!this.#isPaused || this.#isOff || this.#pane === null) return;
    this.#isPaused = false;
    await client.run(['refresh-client', '-A', `${this.#pane}:continue`], signal);
    await this.#draw(client, signal);
  }

  async #draw(client: ControlClient, signal: AbortSignal): Promise<void> {
    const format = '#{cursor_x} #{cursor_y}';
    const { text } = await client.run(['display-message', '-p', '-t', paneTarget, format], signal);
    const [x = 0, y = 0] = text.trim().split(' ').map(Number);
    const draw = ({ isError, text: screen }: TmuxReply): void => {
      if (!isError) this.#recording?.frame(screen, { x, y });
    };
    await client.run(['capture-pane', '-p', '-e', '-t', paneTarget], signal, draw);
  }

  #output(pane: string, bytes: Buffer): void {
    if (this.#isOff || pane !== this.#pane || this.#recording === null) return;
    this.#recording.output(bytes);
    this.#sinceLook += bytes.length;
    if (this.#recording.isOver) {
      this.#isOff = true;
      this.#tell(['refresh-client', '-f', 'no-output']);
    } else if (this.#sinceLook > floodBytes && !this.#isPaused) {
      this.#isPaused = true;
      this.#tell(['refresh-client', '-A', `${pane}:pause`]);
    }
  }

  #notice(name: string, rest: string): void {
    if (name === 'pause' && rest === this.#pane) this.#isPaused = true;
    if (name !== 'layout-change') return;
    const [, size] = /^@\d+ [0-9a-f]+,(\d+x\d+),/.exec(rest) ?? [];
    if (size === undefined || size === this.#size) return;
    this.#size = size;
    const [width = 0, height = 0] = size.split('x').map(Number);
    this.#recording?.resize(width, height);
  }

  #tell(command: readonly string[]): void {
    const signal = new AbortController().signal;
    this.#client?.run(command, signal).catch(() => undefined); // a lost client sends nothing more anyway
  }
}
