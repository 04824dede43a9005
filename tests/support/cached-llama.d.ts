export declare const isLlamaCached: boolean;
