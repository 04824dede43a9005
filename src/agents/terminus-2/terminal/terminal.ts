/** One tmux session in the sandbox as the agent loop uses it; driven through control mode, else by exec. */
export interface Terminal {
  /** How the session is driven. */
  readonly transport: 'control-mode' | 'exec';
  /** Whether the session still exists. Never throws for a dead sandbox. */
  isAlive(signal: AbortSignal): Promise<boolean>;
  /** Types `keys` (a tmux key name such as `C-c` is that key) and resolves when `durationSec` have passed since typing began. */
  send(keys: string, options: { readonly durationSec: number }, signal: AbortSignal): Promise<void>;
  /** What came since the last read, or the screen: the text for the model, with its heading, at most 10,000 bytes. */
  readOutput(signal: AbortSignal): Promise<string>;
  /** The visible screen. */
  screen(signal: AbortSignal): Promise<string>;
  /** Lets go of the session, ends the recording file. The session itself is killed with the agent's processes. Idempotent. */
  close(): Promise<void>;
}
