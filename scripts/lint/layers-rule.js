import path from 'node:path';
import { adapterFolders, layers, sharedParts } from './layers.js';

/** `src/environments/docker/x.ts` → { folder: 'environments', part: 'docker', file: 'x.ts' }; null outside `src/<folder>/`. */
function locate(file, root) {
  const relative = path.relative(path.join(root, 'src'), file).split(path.sep);
  if (relative[0] === '..' || relative.length < 2) return null;
  const [folder, ...rest] = relative;
  return { folder, part: rest.length > 1 ? rest[0] : null, file: rest.at(-1) };
}

function complaint(from, to) {
  if (!(from.folder in layers))
    return `Folder src/${from.folder} is not in the import table (scripts/lint/layers.js).`;
  if (from.folder !== to.folder) {
    const allowed = layers[from.folder];
    if (!allowed.includes('*') && !allowed.includes(to.folder))
      return `src/${from.folder} may not import src/${to.folder} (scripts/lint/layers.js).`;
    const isRegistry = to.file === 'registry.ts';
    if (adapterFolders.includes(to.folder) && isRegistry && from.folder !== 'app')
      return `Only src/app uses a registry; take the resolver by constructor instead.`;
    return null;
  }
  if (!adapterFolders.includes(from.folder) || to.part === null || to.part === from.part)
    return null;
  if (sharedParts[from.folder].includes(to.part)) return null;
  if (from.part === null && from.file === 'registry.ts') return null;
  return `Only ${from.folder}/registry.ts names the adapter ${to.part}; adapters of one port never import each other.`;
}

/** ESLint rule: relative imports obey the import table and the adapter rules. */
export const layersRule = {
  meta: { type: 'problem', schema: [] },
  create(context) {
    const from = locate(context.filename, context.cwd);
    if (from === null) return {};
    const check = (node, source) => {
      if (typeof source?.value !== 'string' || !source.value.startsWith('.')) return;
      const target = locate(
        path.resolve(path.dirname(context.filename), source.value),
        context.cwd,
      );
      const message =
        target === null ? 'src/ imports only from folders under src/.' : complaint(from, target);
      if (message !== null) context.report({ node, message });
    };
    return {
      ImportDeclaration: (node) => check(node, node.source),
      ExportNamedDeclaration: (node) => check(node, node.source),
      ExportAllDeclaration: (node) => check(node, node.source),
      ImportExpression: (node) => check(node, node.source),
    };
  },
};
