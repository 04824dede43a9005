/** Random rollouts of a synthetic agent: each does what real agents do to their histories, in an order that its seed decides. */
import { seededRandom } from '../../src/core/seeded-random.ts';
import { SyntheticAgent, type Conversation, type KnownCall } from './synthetic-agent.ts';

export const actions = [
  'append',
  'retry',
  'edit',
  'compact',
  'shorten',
  'delegate',
  'aside',
  'intrude',
] as const;

export type Action = (typeof actions)[number];

export interface SyntheticRollout {
  readonly seed: number;
  readonly calls: readonly KnownCall[];
  readonly done: readonly Action[];
}

export function syntheticRollout(seed: number, steps: number): SyntheticRollout {
  const agent = new SyntheticAgent(seededRandom(seed));
  const main = agent.open(agent.say('system'), agent.say('user'));
  agent.turn(main, { label: 'opening' });
  const done: Action[] = [];
  for (let step = 0; step < steps; step += 1) {
    // Most of what agents do is to go on.
    const action = agent.below(2) === 0 ? 'append' : actions[agent.below(actions.length)]!;
    if (act(agent, main, action)) done.push(action);
  }
  return { seed, calls: agent.calls, done };
}

/** False = there is nothing yet that it could be done to. */
function act(agent: SyntheticAgent, main: Conversation, action: Action): boolean {
  switch (action) {
    case 'append':
      goOn(agent, main, 1);
      return true;
    case 'retry':
      return retry(agent, main);
    case 'edit':
      return edit(agent, main);
    case 'compact':
      compact(agent, main);
      return true;
    case 'shorten':
      return shorten(agent, main);
    case 'delegate':
      delegate(agent, main);
      return true;
    case 'aside':
      agent.turn(agent.open(agent.say('system'), agent.say('user')), {
        ...{ label: 'side-call', purpose: 'title' },
      });
      return true;
    case 'intrude': {
      const other = agent.open(agent.say('system'), agent.say('user'));
      agent.turn(other, { label: 'foreign', client: 'curl/8.5' });
      other.spoken.push(agent.say('user'));
      agent.turn(other, { label: 'foreign', client: 'curl/8.5' });
      return true;
    }
  }
}

export function goOn(agent: SyntheticAgent, conversation: Conversation, turns: number): void {
  for (let turn = 0; turn < turns; turn += 1) {
    conversation.spoken.push(agent.say('tool'));
    agent.turn(conversation, { label: 'append' });
  }
}

/** The last answer goes, and what was asked comes again or in other words. */
function retry(agent: SyntheticAgent, main: Conversation): boolean {
  goOn(agent, main, 1);
  const again = 1 + agent.below(2);
  for (let time = 0; time < again; time += 1) {
    const answer = main.spoken.pop()?.by;
    if (answer == null) return false;
    answer.isReplaced = true;
    if (agent.below(2) === 0) main.spoken = [...main.spoken.slice(0, -1), agent.say('tool')];
    agent.turn(main, { label: 'retry' });
  }
  return true;
}

/** Something in the middle of the history is said in another way; what comes behind it stays. */
function edit(agent: SyntheticAgent, main: Conversation): boolean {
  const sampled = main.spoken.flatMap(({ by }, at) => (by === null ? [] : [at]));
  if (sampled.length < 3) return false;
  // Not behind the last but one answer, which would be a retry.
  const answer = sampled[agent.below(sampled.length - 1)] ?? 0;
  const changed = main.spoken.findIndex(({ by }, at) => at > answer && by === null);
  if (changed === -1) return false;
  main.spoken = main.spoken.with(changed, agent.say('tool'));
  main.spoken.push(agent.say('tool'));
  agent.turn(main, { label: 'edit' });
  return true;
}

/** The agent has its history summed up, and begins again with the summary. */
function compact(agent: SyntheticAgent, main: Conversation): void {
  goOn(agent, main, 2);
  const asked = agent.open(...main.spoken, agent.say('user'));
  const summary = agent.turn(asked, { label: 'side-call', purpose: 'summary' });
  const begin = main.spoken.slice(0, 1 + agent.below(2));
  const told = agent.say('user', `Before this: ${summary.given.answer.text}`);
  main.spoken = [...begin, told];
  agent.turn(main, { label: 'compaction' });
}

/** The middle of the history goes. */
function shorten(agent: SyntheticAgent, main: Conversation): boolean {
  goOn(agent, main, 4);
  main.spoken = [...main.spoken.slice(0, 2), ...main.spoken.slice(-3), agent.say('tool')];
  agent.turn(main, { label: 'compaction' });
  return true;
}

/** Four at once, whose calls run beside each other. */
function delegate(agent: SyntheticAgent, main: Conversation): void {
  const instructions = Array.from({ length: 4 }, () => agent.words());
  main.spoken.push(agent.say('tool'));
  agent.turn(main, { label: 'append', instructions });
  const workers = instructions.map((text) =>
    agent.open(agent.say('system'), agent.say('user', text)),
  );
  for (let turn = 0; turn < 3; turn += 1) {
    const label = turn === 0 ? 'sub-agent' : 'append';
    const begun = workers.map((worker) => {
      if (turn > 0) worker.spoken.push(agent.say('tool'));
      return agent.begin(worker, { label });
    });
    // In any order.
    while (begun.length > 0) begun.splice(agent.below(begun.length), 1)[0]?.end();
  }
  for (const worker of workers)
    main.spoken.push(agent.say('tool', String(worker.spoken.at(-1)?.message['content'])));
  agent.turn(main, { label: 'append' });
}

/** A long history that is cut back to its first turn. */
export function rewoundRollout(turns: number): SyntheticRollout {
  const agent = new SyntheticAgent(seededRandom(turns));
  const main = agent.open(agent.say('system'), agent.say('user'));
  agent.turn(main, { label: 'opening' });
  goOn(agent, main, turns);
  const asked = agent.open(...main.spoken, agent.say('user'));
  const summary = agent.turn(asked, { label: 'side-call', purpose: 'summary' });
  main.spoken = [
    ...main.spoken.slice(0, 3),
    agent.say('user', `Before this: ${summary.given.answer.text}`),
  ];
  agent.turn(main, { label: 'compaction' });
  goOn(agent, main, 3);
  return { seed: turns, calls: agent.calls, done: ['compact'] };
}
