export declare const baseImage: string;
export declare const archivePrefix: string;
export declare function imageArchivesDir(): string;
export declare function baseImageArchive(): string;
