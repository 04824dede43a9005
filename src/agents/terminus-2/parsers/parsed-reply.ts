/** What a reply of the model asks for, once parsed; both formats (`json`, `xml`) end here. */
export interface KeystrokeCommand {
  /** Verbatim, a trailing newline included where the model wrote one. */
  readonly keystrokes: string;
  /** Seconds to wait afterwards, as the model wrote it (1 when absent); the caller caps it. */
  readonly durationSec: number;
}

export interface ParsedReply {
  readonly commands: readonly KeystrokeCommand[];
  readonly isTaskComplete: boolean;
  /** Empty = none. With an error nothing is executed. */
  readonly error: string;
  /** One per line, each with the prefix `- `; empty = none. */
  readonly warnings: string;
  readonly analysis: string;
  readonly plan: string;
}

export interface ReplyParser {
  readonly name: 'json' | 'xml';
  parse(reply: string): ParsedReply;
  /** The complete part of a reply that was cut off by the output limit; null when nothing of it can be executed safely. */
  salvage(truncated: string): string | null;
}
