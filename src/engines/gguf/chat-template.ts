import { messageOf, RolloutError } from '../../core/errors.ts';
import type { ChatMessage } from '../chat-message.ts';
import type { ChatRequest } from '../server/token-model.ts';
import { chatMarkers } from '../server/vocabulary/chat-markers.ts';
import { renderChat } from '../server/vocabulary/render-chat.ts';
import type { GgufVocabulary } from './gguf-vocabulary.ts';
import type { GgufMetadata, JinjaLibrary } from './llama-library.ts';

export type ChatRenderer = (request: ChatRequest) => number[];

/**
 * Renders chats with the template in the file, as engines do: the whole text is made first and encoded with its control tokens, so a text that
 * spells one has it. Without a template our own ChatML is used; CONFIG_INVALID when the vocabulary cannot say that.
 */
export function chatRenderer(
  metadata: GgufMetadata,
  vocabulary: GgufVocabulary,
  jinja: JinjaLibrary,
): ChatRenderer {
  const source = metadata.tokenizer?.chat_template;
  if (source === undefined) {
    chatMarkers(vocabulary);
    return (request) => renderChat(vocabulary, request);
  }
  const template = new jinja.Template(source);
  const { bos_token_id: beginId, eos_token_id: endId } = metadata.tokenizer?.ggml ?? {};
  const constants = {
    add_generation_prompt: true,
    bos_token: vocabulary.nameOf(beginId),
    eos_token: vocabulary.nameOf(endId),
  };
  return ({ messages, tools }) => {
    const values = { ...constants, messages: messages.map(asTemplatesExpect) };
    const withTools = tools.length === 0 ? values : { ...values, tools };
    return vocabulary.encode(rendered(template, withTools), { parsesSpecial: true });
  };
}

function rendered(
  template: InstanceType<JinjaLibrary['Template']>,
  values: Readonly<Record<string, unknown>>,
): string {
  try {
    return template.render(values);
  } catch (error) {
    throw new RolloutError(
      'ENGINE_REQUEST_INVALID',
      `the model's chat template refuses these messages: ${messageOf(error)}`,
      { phase: 'model-call', cause: error },
    );
  }
}

/** Templates add texts to texts: parts become one text, and a message that only calls has an empty one. */
function asTemplatesExpect(message: ChatMessage): Record<string, unknown> {
  const { content, ...others } = message;
  const text =
    typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');
  return { ...others, content: text };
}
