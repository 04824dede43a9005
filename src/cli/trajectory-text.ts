import type { StepView } from '../app/trajectories.ts';
import { plainText } from './plain-text.ts';
import { counted } from './table.ts';

/** More of a text is cut: a trajectory is looked over, and the file has it all. */
const most = { messageLines: 20, resultLines: 8, lineLength: 160 };

/** Two of them in a row, or more. */
const emptyLines = /(?:\r?\n[ \t]*){2,}\r?\n/g;

/** Prints a trajectory as its parts come, and the totals behind them. */
export class TrajectoryText {
  readonly #print: (text: string) => void;
  readonly #fields = new Map<string, unknown>();
  #isHeadPrinted = false;
  #steps = 0;
  #untrainable = 0;
  readonly #sums = { prompt: 0, completion: 0, promptIds: 0, sampledIds: 0 };

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  field(name: string, value: unknown): void {
    this.#fields.set(name, value);
  }

  step(step: StepView, isShown: boolean): void {
    this.#printHead();
    this.#steps += 1;
    if (!step.isTrainable) this.#untrainable += 1;
    for (const key of ['prompt', 'completion', 'promptIds', 'sampledIds'] as const)
      this.#sums[key] += step.tokens[key] ?? 0;
    if (isShown) this.#print(stepText(step));
  }

  end(): void {
    this.#printHead();
    const { prompt, completion, promptIds, sampledIds } = this.#sums;
    const ids = promptIds + sampledIds > 0 ? `, ids: ${promptIds} in, ${sampledIds} out` : '';
    const lost = this.#untrainable > 0 ? `, ${this.#untrainable} not trainable` : '';
    this.#print(
      `\n${counted(this.#steps, 'step')}${lost}; tokens: ${prompt} in, ${completion} out${ids}`,
    );
    for (const name of ['final_metrics', 'continued_trajectory_ref', 'notes'])
      if (this.#fields.get(name) != null)
        this.#print(`${name}: ${cut(JSON.stringify(this.#fields.get(name)))}`);
    const embedded = this.#fields.get('subagent_trajectories');
    if (Array.isArray(embedded)) this.#print(`${embedded.length} embedded trajectories`);
  }

  #printHead(): void {
    if (this.#isHeadPrinted) return;
    this.#isHeadPrinted = true;
    const agent = Object(this.#fields.get('agent')) as Readonly<Record<string, unknown>>;
    const facts = [
      ['agent', [agent['name'], agent['version']].filter(isText).join(' ')],
      ['model', agent['model_name']],
      ['session', this.#fields.get('session_id')],
      ['trajectory', this.#fields.get('trajectory_id')],
      ['format', this.#fields.get('schema_version')],
    ].flatMap(([name, value]) => (isText(value) ? [`${String(name)} ${plainText(value)}`] : []));
    this.#print(facts.join('  '));
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function stepText(step: StepView): string {
  const title = [
    `#${step.id ?? '?'} ${plainText(step.source)}`,
    step.timestamp,
    step.modelName,
    tokensText(step),
    step.isCopied ? 'copied' : null,
    step.isTrainable ? null : 'not trainable',
  ];
  return [
    '',
    title.filter(isText).map(plainText).join('  '),
    ...block(step.reasoning ?? '', { mark: '  ~ ', lines: most.resultLines }),
    ...block(step.message, { mark: '    ', lines: most.messageLines }),
    ...step.calls.map((call) => `  > ${cut(`${call.name} ${call.arguments}`)}`),
    ...step.results.flatMap((text) => block(text, { mark: '  < ', lines: most.resultLines })),
  ].join('\n');
}

function tokensText({ tokens }: StepView): string {
  const { prompt, cached, completion, costUsd, promptIds, sampledIds } = tokens;
  const parts = [
    prompt === null ? null : `${prompt} in${cached === null ? '' : ` (${cached} cached)`}`,
    completion === null ? null : `${completion} out`,
    promptIds === null && sampledIds === null ? null : `ids ${promptIds ?? 0}+${sampledIds ?? 0}`,
    costUsd === null ? null : `$${costUsd}`,
  ];
  return parts.filter(isText).join(', ');
}

function block(
  text: string,
  { mark, lines }: { readonly mark: string; readonly lines: number },
): readonly string[] {
  if (text === '') return [];
  // Most rows of a terminal's screen are empty; they would take the place of what it says.
  const all = text.trimEnd().replace(emptyLines, '\n\n').split(/\r?\n/);
  const shown = all.slice(0, lines).map((line) => mark + cut(line));
  const rest = all.length - shown.length;
  return rest === 0 ? shown : [...shown, `${mark}… ${counted(rest, 'more line')}`];
}

function cut(line: string): string {
  const plain = plainText(line);
  if (plain.length <= most.lineLength) return plain;
  return `${plain.slice(0, most.lineLength).replace(/[\ud800-\udbff]$/, '')}…`;
}
