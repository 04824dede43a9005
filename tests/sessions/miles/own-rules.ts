/** Functions of somebody's own, as settings name them. */
import type { Message } from '../../../src/sessions/miles/message-matcher.ts';

export const sameRole = (stored: Message, given: Message): boolean =>
  stored['role'] === given['role'];
export const later = async (): Promise<boolean> => await Promise.resolve(true);
export const number = 1;
