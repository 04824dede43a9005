export declare const pieces: RegExp;
export declare const byteCharacters: readonly string[];
export declare function tokenizerDocument(merges: readonly (readonly [string, string])[]): {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
};
