/**
 * A policy for the mock engine: starts programs that do not want to die, each with a marker of the instruction on its command line, then works for some
 * more turns and says twice that it is done.
 */
interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  /** Assistant messages so far. */
  readonly turn: number;
}

const busyTurns = 3;

/** So many rollouts for one that also takes all the processor time that it can get: more would be a test of the machine. */
const quietOnes = 8;

/** Deaf to signals; double-forked in a session of its own without environment; holding the terminal; a server; making children all the time; busy. */
function hostile(marker: string): readonly string[] {
  return [
    `bash -c 'trap "" TERM INT HUP; while :; do sleep 1${marker}; done' &`,
    `(setsid bash -c 'trap "" TERM INT HUP; exec -c sleep 2${marker}' </dev/null >/dev/null 2>&1 &)`,
    `sleep 3${marker} &`,
    `perl -e 'use Socket; socket(S,PF_INET,SOCK_STREAM,0); bind(S,sockaddr_in(0,INADDR_ANY)); listen(S,9); $SIG{TERM}="IGNORE"; accept(C,S) while 1; sleep 4${marker}' &`,
    `(setsid bash -c 'while :; do (sleep 0.5; : 5${marker}) & sleep 0.2; done' >/dev/null 2>&1 &)`,
    ...(Number(marker) % quietOnes === 0
      ? [`(setsid bash -c 'trap "" TERM; while :; do : 7${marker}; done' >/dev/null 2>&1 &)`]
      : []),
  ];
}

export default function hostilePolicy({ messages, turn }: Request): { readonly content: string } {
  const [, marker = '0'] = /marker (\d+)/.exec(JSON.stringify(messages)) ?? [];
  const lines = turn === 0 ? hostile(marker) : turn < busyTurns ? [`echo ${turn}`] : [];
  const content = JSON.stringify({
    analysis: `turn ${turn}`,
    plan: 'to stay',
    commands: lines.map((line) => ({ keystrokes: `${line}\n`, duration: 0.1 })),
    ...(lines.length === 0 && { task_complete: true }),
  });
  return { content };
}
