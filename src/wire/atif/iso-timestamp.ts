/** The timestamps that ATIF allows: what `datetime.fromisoformat` of Python 3.12 reads, after `Z` was replaced by `+00:00`. */

// A fraction may follow the hour and the minute too.
const clock = /^(\d\d)(?::(\d\d)(?::(\d\d))?)?(?:[.,]\d+)?$/;
const compactClock = /^(\d\d)(?:(\d\d)(?:(\d\d))?)?(?:[.,]\d+)?$/;

export function isIsoTimestamp(value: string): boolean {
  const text = value.replaceAll('Z', '+00:00');
  const dateLength = lengthOfDate(text);
  if (!isDate(text.slice(0, dateLength))) return false;
  const rest = text.slice(dateLength);
  // One character, any, stands between date and time.
  const time = /^.(.+)$/su.exec(rest)?.[1];
  return rest === '' || (time !== undefined && isTime(time));
}

/** Where the date ends; week dates have forms of several lengths that only what follows tells apart. */
function lengthOfDate(text: string): number {
  if (text[4] === '-') {
    if (text[5] !== 'W') return 10;
    if (text[8] !== '-') return 8;
    return /^\d$/.test(text[10] ?? '') ? 8 : 10;
  }
  if (text[4] !== 'W') return 8;
  const digits = /^\d*/.exec(text.slice(7))?.[0].length ?? 0;
  if (digits < 2) return 7 + digits;
  return digits % 2 === 1 ? 7 : 8;
}

function isDate(text: string): boolean {
  const day = /^(\d{4})(-?)(\d\d)\2(\d\d)$/.exec(text);
  if (day) {
    const [year, month, date] = [Number(day[1]), Number(day[3]), Number(day[4])];
    const parsed = new Date(0);
    parsed.setUTCFullYear(year, month - 1, date);
    return year > 0 && parsed.getUTCMonth() === month - 1 && parsed.getUTCDate() === date;
  }
  const week = /^(\d{4})(-?)W(\d\d)(?:\2(\d))?$/.exec(text);
  if (!week) return false;
  const [year, number, weekday] = [Number(week[1]), Number(week[3]), Number(week[4] ?? 1)];
  return year > 0 && number >= 1 && number <= weeksOf(year) && weekday >= 1 && weekday <= 7;
}

/** 53 when the year begins on a Thursday, or on a Wednesday and is a leap year. */
function weeksOf(year: number): number {
  const first = new Date(0);
  first.setUTCFullYear(year, 0, 1);
  const last = new Date(0);
  last.setUTCFullYear(year, 11, 31);
  return first.getUTCDay() === 4 || last.getUTCDay() === 4 ? 53 : 52;
}

function isTime(text: string): boolean {
  const sign = text.search(/[+-]/);
  if (sign < 0) return isClock(text);
  return isClock(text.slice(0, sign)) && isClock(text.slice(sign + 1));
}

function isClock(text: string): boolean {
  const parts = clock.exec(text) ?? compactClock.exec(text);
  if (!parts) return false;
  const [, hour, minute, second] = parts;
  return Number(hour) < 24 && Number(minute ?? 0) < 60 && Number(second ?? 0) < 60;
}
