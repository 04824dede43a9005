/** A file or folder on this host that the archive keeps, by its name there. Links in it are refused. */
export interface KeptFile {
  readonly name: string;
  readonly path: string;
  /** Nobody writes it any more, and whoever made it removes it once it is kept: the archive may take the file itself in place of a copy. */
  readonly mayBeTaken?: boolean;
}
