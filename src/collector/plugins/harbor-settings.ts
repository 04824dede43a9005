/**
 * Where the agent server is and which trials are ours: the plugin's options before the variables. Texts are trimmed, line breaks of files and shells with them; one
 * of white space alone is none. What is left with white space or control characters inside is a mistake that is named, never sent.
 */
import { RolloutError } from '../../core/errors.ts';

export type Variables = Readonly<Record<string, string | undefined>>;
type Options = Readonly<Record<string, unknown>>;

/** null = none is named. PLUGIN_INVALID for one that is no address. Without slashes at its end. */
export function serverUrl(options: Options, variables: Variables): string | null {
  const given =
    trimmed(options['url']) ??
    trimmed(variables['AGENT_SERVER_URL']) ??
    trimmed(variables['SWE_AGENT_URL']);
  if (given === null) return null;
  const isAddress = /^https?:\/\/[^\s\p{Cc}/]+[^\s\p{Cc}]*$/iu.test(given) && URL.canParse(given);
  if (isAddress) return given.replace(/\/+$/, '');
  throw invalid('url', 'the address of the agent server is none', 'AGENT_SERVER_URL');
}

/** null = none is set. PLUGIN_INVALID for one that no header can carry. */
export function adminSecret(options: Options, variables: Variables): string | null {
  const given = trimmed(options['secret']) ?? trimmed(variables['HARBOR_ADMIN_SECRET']);
  if (given === null || /^[\u0021-\u007e\u0080-\u00ff]+$/u.test(given)) return given;
  throw invalid('secret', 'the admin secret has characters of no header', 'HARBOR_ADMIN_SECRET');
}

/** Of one session server or several: a text, a list of texts or of objects with `instance_id`, or a map of ports to ids. Each once. */
export function instanceIds(options: Options): readonly string[] {
  const many = idsOf(options['session_server_instance_ids']);
  const ids = many.length > 0 ? many : idsOf(options['session_server_instance_id']);
  return [...new Set(ids)];
}

export function modelName(options: Options, variables: Variables): string {
  return (
    trimmed(options['model_name']) ??
    trimmed(variables['AGENT_MODEL_NAME']) ??
    trimmed(variables['SWE_AGENT_MODEL_NAME']) ??
    'model'
  );
}

function idsOf(given: unknown): readonly string[] {
  if (Array.isArray(given)) return given.flatMap(idsOf);
  if (typeof given === 'object' && given !== null)
    return 'instance_id' in given ? idsOf(given.instance_id) : idsOf(Object.values(given));
  const id = trimmed(given);
  return id === null ? [] : [id];
}

function trimmed(given: unknown): string | null {
  if (typeof given !== 'string') return null;
  const text = given.trim();
  return text === '' ? null : text;
}

function invalid(option: string, message: string, variable: string): RolloutError {
  return new RolloutError('PLUGIN_INVALID', message, {
    ...{ phase: 'config', field: `agent_options.${option}` },
    remedy: `Set the option ${option}, or ${variable}, to one line without white space.`,
  });
}
