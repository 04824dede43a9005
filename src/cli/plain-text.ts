/** Text of tasks, agents and sandboxes as one line of a terminal: a control character in it must not move the cursor or colour what follows. */
export function plainText(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, ' ');
}
