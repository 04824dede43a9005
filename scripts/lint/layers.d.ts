export const layers: Readonly<Record<string, readonly string[]>>;
export const adapterFolders: readonly string[];
export const sharedParts: Readonly<Record<string, readonly string[]>>;
