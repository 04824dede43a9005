import { recordOf, textOf, type JsonRecord } from '../../../engines/shared/json.ts';
import { RequestProblem } from '../dialect.ts';

/** One block of a message's content, before its type is looked at. */
export interface Block {
  readonly type: string;
  readonly fields: JsonRecord;
  /** Path in the request. */
  readonly at: string;
}

/** A string is one block of text. */
export function blocksOf(content: unknown, at: string): readonly Block[] {
  const text = textOf(content);
  if (text !== null) return [{ type: 'text', fields: { text }, at }];
  if (!Array.isArray(content))
    throw new RequestProblem('must be a string or a list of blocks', { field: at });
  return content.map((each: unknown, index) => {
    const fields = recordOf(each);
    const type = textOf(fields?.['type']);
    if (fields === null || type === null)
      throw new RequestProblem('must be an object with a type', { field: `${at}.${index}` });
    return { type, fields, at: `${at}.${index}` };
  });
}
