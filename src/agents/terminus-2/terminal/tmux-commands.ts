/** One running tmux server as commands are given to it; `control-client.ts` and `exec-client.ts` are the two ways. */
export interface TmuxReply {
  /** tmux refused the command; `text` says why. */
  readonly isError: boolean;
  readonly text: string;
}

/** A command as a list of words: its name, then its arguments as they are. */
export type TmuxCommand = readonly string[];

export const sessionName = 'terminus-2';

/** Exactly this session: without `=` tmux also takes one whose name merely begins so. */
export const sessionTarget = `=${sessionName}`;

/** The session's current pane. */
export const paneTarget = `${sessionTarget}:`;

/** tmux shows and takes UTF-8 whatever the locale of the image says. */
export const tmuxProgram = 'tmux -u';

export const tmuxVariables = { TERM: 'xterm-256color' } as const;

/** Of a longer reply, which only a long history gives, the end is kept. */
export const maxReplyBytes = 2 * 1024 * 1024;
