export declare function learnMerges(texts: readonly string[], limit: number): [string, string][];
