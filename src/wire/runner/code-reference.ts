/** How users name their code: `path/to/module.ts:Class`, `path/to/file.py:Class`, or `package.module:Class` on Python's path. */

export interface FileReference {
  /** As it was written, or absolute. */
  readonly file: string;
  readonly module: null;
  readonly name: string;
}

export interface ModuleReference {
  readonly file: null;
  /** Dotted, on Python's path. */
  readonly module: string;
  readonly name: string;
}

export type CodeReference = FileReference | ModuleReference;

const attribute = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const dotted = /^[\p{ID_Start}_][\p{ID_Continue}]*(?:\.[\p{ID_Start}_][\p{ID_Continue}]*)*$/u;
const fileEnding = /\.(?:[cm]?[jt]s|py)$/;

/** Null when it names nothing. */
export function readCodeReference(text: string): CodeReference | null {
  const at = text.lastIndexOf(':');
  const [where, name] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || !attribute.test(name)) return null;
  const isModule = dotted.test(where) && !fileEnding.test(where);
  return isModule ? { file: null, module: where, name } : { file: where, module: null, name };
}

export function isPython({ file }: CodeReference): boolean {
  return file?.endsWith('.py') !== false;
}
