/** Blocks that are said to the model: text, images, and what has a form as text. */
import { recordOf, textOf } from '../../../engines/shared/json.ts';
import type { InputPart } from '../../items/conversation.ts';
import { RequestProblem } from '../dialect.ts';
import { blocksOf, type Block } from './blocks.ts';
import { blockSchemas, parsed } from './request-schema.ts';

export function readParts(
  block: Block,
  { inToolResult = false }: { readonly inToolResult?: boolean } = {},
): readonly InputPart[] {
  const { type, fields, at } = block;
  switch (type) {
    case 'text':
      return textParts(parsed(blockSchemas.text, fields, at).text);
    case 'image':
      return [imagePart(parsed(blockSchemas.image, fields, at).source, `${at}.source`)];
    case 'document':
      return documentParts(block, inToolResult);
    case 'search_result': {
      const { source, title, content } = parsed(blockSchemas.search_result, fields, at);
      const found = blocksOf(content, `${at}.content`).flatMap((each) => readParts(each));
      return [...textParts(`${title}\n${source}`), ...found];
    }
    case 'tool_reference': {
      const { tool_name: name } = parsed(blockSchemas.tool_reference, fields, at);
      return textParts(`Tool found: ${name}`);
    }
    default:
      if (inToolResult) return textParts(`[a block of the type ${type} cannot be shown]`);
      throw new RequestProblem(`blocks of the type ${JSON.stringify(type)} are not taken here`, {
        field: at,
      });
  }
}

function textParts(text: string): readonly InputPart[] {
  return text === '' ? [] : [{ type: 'text', text }];
}

function imagePart(source: Readonly<Record<string, unknown>>, at: string): InputPart {
  switch (source['type']) {
    case 'base64': {
      const { media_type: mediaType, data } = parsed(blockSchemas.base64_image, source, at);
      return { type: 'image', url: `data:${mediaType};base64,${data}` };
    }
    case 'url':
      return { type: 'image', url: parsed(blockSchemas.address, source, at).url };
    default:
      throw new RequestProblem('images are taken as base64 or by url; no files are kept here', {
        field: at,
      });
  }
}

function documentParts({ fields, at }: Block, inToolResult: boolean): readonly InputPart[] {
  const { source, title, context } = parsed(blockSchemas.document, fields, at);
  const heading = [title, context].filter((line) => typeof line === 'string' && line !== '');
  const headed = textParts(heading.join('\n'));
  if (source['type'] === 'text')
    return [...headed, ...textParts(parsed(blockSchemas.text_source, source, `${at}.source`).data)];
  if (source['type'] === 'content') {
    const inner = blocksOf(source['content'], `${at}.source.content`);
    return [...headed, ...inner.flatMap((each) => readParts(each, { inToolResult }))];
  }
  const kind = textOf(recordOf(source)?.['media_type']) ?? textOf(source['type']) ?? 'unknown';
  // A tool's result is no fault of the request: the model hears that there is something it cannot see.
  if (inToolResult) return [...headed, ...textParts(`[a document (${kind}) cannot be shown]`)];
  throw new RequestProblem(
    `documents are taken as text, not as ${kind}; send what it says as text`,
    {
      field: `${at}.source`,
    },
  );
}
