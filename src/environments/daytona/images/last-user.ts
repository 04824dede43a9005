/** The user that an image of this Dockerfile runs as, as far as the file itself says so: the last `USER` of its last stage; null = it does not. */
export function lastUser(dockerfile: string): string | null {
  let user: string | null = null;
  for (const line of dockerfile.replaceAll(/\\\r?\n/g, ' ').split(/\r?\n/)) {
    const [keyword = '', word = ''] = line.trim().split(/\s+/);
    if (/^FROM$/i.test(keyword)) user = null;
    // A group is not for commands, and a variable is not known here.
    if (/^USER$/i.test(keyword) && !word.includes('$')) user = word.split(':', 1)[0] ?? null;
  }
  return user;
}
