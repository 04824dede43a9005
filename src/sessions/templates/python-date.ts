import { TemplateError } from './python-values.ts';

const monthNames =
  'January February March April May June July August September October November December'.split(
    ' ',
  );
const dayNames = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** `strftime` in the C locale and local time, as far as templates use it; another directive is refused by name. */
export function formatDate(date: Date, format: string): string {
  return format.replace(/%([^])/g, (whole, directive: string) => {
    const text = directiveText(date, directive);
    if (text !== null) return text;
    throw new TemplateError(`the date format ${whole} is not supported in a chat template`);
  });
}

function directiveText(date: Date, directive: string): string | null {
  const two = (value: number): string => value.toString().padStart(2, '0');
  const month = monthNames[date.getMonth()] ?? '';
  const day = dayNames[date.getDay()] ?? '';
  switch (directive) {
    case 'Y':
      return date.getFullYear().toString();
    case 'y':
      return two(date.getFullYear() % 100);
    case 'm':
      return two(date.getMonth() + 1);
    case 'd':
      return two(date.getDate());
    case 'e':
      return date.getDate().toString().padStart(2, ' ');
    case 'B':
      return month;
    case 'b':
      return month.slice(0, 3);
    case 'A':
      return day;
    case 'a':
      return day.slice(0, 3);
    case 'H':
      return two(date.getHours());
    case 'M':
      return two(date.getMinutes());
    case 'S':
      return two(date.getSeconds());
    case 'F':
      return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    case '%':
      return '%';
    default:
      return null;
  }
}
