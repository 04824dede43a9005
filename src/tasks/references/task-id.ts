/** Identities of tasks as text, bytewise what Harbor names the folders of its cache by. */

/** The rendering of Harbor's git id: `git_url='…' git_commit_id='…' path=PosixPath('…')`. */
export function gitTaskId(id: {
  readonly url: string;
  readonly commit: string | null;
  readonly path: string;
}): string {
  const commit = id.commit === null ? 'None' : pythonString(id.commit);
  return `git_url=${pythonString(id.url)} git_commit_id=${commit} path=PosixPath(${pythonString(id.path)})`;
}

/** A string as Python's repr writes it. */
function pythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll(/[\\'"\0-\x1f\x7f]/g, (character) => {
    if (character === '\\' || character === quote) return `\\${character}`;
    if (character === "'" || character === '"') return character;
    const named = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character];
    return named ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `${quote}${escaped}${quote}`;
}
