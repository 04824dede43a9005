import { messageOf, RolloutError } from '../../core/errors.ts';
import type { ChatCodec } from '../codec.ts';

/** CONFIG_INVALID for variables of a deployment that the family has fixed to another value, or does not know the value of: every request would be refused. */
export function checkLaunchVariables(
  codec: Pick<ChatCodec, 'family' | 'fixedVariables' | 'engineVariables'>,
  variables: Readonly<Record<string, unknown>>,
): void {
  const { family, fixedVariables } = codec;
  for (const [name, fixed] of Object.entries(fixedVariables))
    if (Object.hasOwn(variables, name) && JSON.stringify(variables[name]) !== JSON.stringify(fixed))
      throw invalid(`${name} is fixed to ${JSON.stringify(fixed)} by the family ${family}`);
  try {
    codec.engineVariables(variables);
  } catch (cause) {
    throw invalid(`the family ${family} refuses them: ${messageOf(cause)}`, cause);
  }
}

function invalid(message: string, cause?: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    ...{ phase: 'config', field: 'template_variables' },
    remedy: 'Leave the variable out, or name another family.',
    ...(cause !== undefined && { cause }),
  });
}
