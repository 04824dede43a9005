import { chatTemplate, type ChatTemplate } from '../templates/chat-template.ts';
import { parseTemplate } from '../templates/jinja-parser.ts';
import { keepReasoning } from '../templates/keep-reasoning.ts';
import type { Statement } from '../templates/jinja-nodes.ts';
import {
  type Dict,
  isList,
  TemplateError,
  type Value,
  valueOf,
} from '../templates/python-values.ts';
import { type Checkpoint, checkpointError } from './checkpoint.ts';
import { conversationError } from './conversation-error.ts';
import type { TextRenderer } from './family.ts';
import { templateMessages, templateTools } from './template-messages.ts';

export interface JinjaRules {
  /** Whether turns stay as they were sampled, whatever the template itself would leave out of them. */
  readonly keepsReasoning: boolean;
}

/** Renders with the checkpoint's own template. */
export function jinjaRenderer(
  checkpoint: Checkpoint,
  now: () => Date,
  rules: JinjaRules,
): TextRenderer {
  const template = chatTemplate(statementsOf(checkpoint, rules), now);
  const fixed = valueOf(checkpoint.templateTokens) as Dict;
  return (conversation, { opensTurn }) => {
    const tools = templateTools(conversation.tools, conversation.toolsText ?? null);
    const variables: Dict = new Map([
      ...fixed,
      ...(valueOf(conversation.templateVariables) as Dict),
      ['messages', templateMessages(conversation.messages, 'dictionary')],
      ['tools', tools.length > 0 ? tools : null],
      ['documents', null],
      ['add_generation_prompt', opensTurn],
    ]);
    return rendered(template, variables);
  };
}

/** Engines that are refused try once more with the bare functions: some templates want those. */
function rendered(template: ChatTemplate, variables: Dict): string {
  try {
    return template.render(variables);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const tools = variables.get('tools') ?? null;
    if (!isList(tools)) throw refused(error);
    const bare: readonly Value[] = tools.map((tool) =>
      tool instanceof Map ? (tool.get('function') ?? null) : tool,
    );
    try {
      return template.render(new Map([...variables, ['tools', bare]]));
    } catch {
      throw refused(error);
    }
  }
}

const refused = (error: TemplateError): Error => conversationError(error.message, { cause: error });

function statementsOf(checkpoint: Checkpoint, rules: JinjaRules): readonly Statement[] {
  const { template, dir } = checkpoint;
  if (template === null) throw checkpointError(`${dir} has no chat template`);
  let statements: readonly Statement[];
  try {
    statements = parseTemplate(template);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw checkpointError(`the chat template of ${dir} cannot be used: ${error.message}`, error);
  }
  if (!rules.keepsReasoning) return statements;
  const kept = keepReasoning(statements);
  if (kept.changes > 0 || template.includes('clear_thinking')) return kept.statements;
  throw checkpointError(
    `the chat template of ${dir} does not say in a known way which turns keep their reasoning`,
  );
}
