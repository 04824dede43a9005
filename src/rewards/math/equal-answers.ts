/** Whether an answer to an exercise is the one that the label names. */
import { equalExpressions } from './equal-expressions.ts';
import { mathdForm } from './mathd-form.ts';
import { isInteger, plainForm, withoutThousands } from './plain-form.ts';

/** What is longer is compared as text only: it is no answer, and reading it as a formula could take long. */
const maxLength = 2_000;

export function equalAnswers(given: string, label: string): boolean {
  if (mathdForm(given) === mathdForm(label)) return true;
  if (given.length > maxLength || label.length > maxLength) return false;
  return equalPlainForms(plainForm(given), plainForm(label));
}

function equalPlainForms(given: string, label: string): boolean {
  if (given === label) return true;
  if (given === '') return false;
  const wanted = elements(label);
  const had = elements(given);
  const hasOwnBrackets = wanted.length < 2 || brackets(label) === brackets(given);
  return (
    hasOwnBrackets &&
    wanted.length === had.length &&
    wanted.every((element, place) => equalElements(had[place] ?? '', element))
  );
}

function equalElements(given: string, label: string): boolean {
  // A fraction that can be reduced is not the answer.
  if (isFraction(given) && isFraction(label)) return given === label;
  if (isInteger(given) !== isInteger(label)) return false;
  return equalExpressions(given, label);
}

/** Of a tuple, a list or an interval; else the text itself. */
function elements(form: string): readonly string[] {
  const text = withoutThousands(form);
  if (text === '') return [];
  if (!/^[([][^()[\]]+[)\]]$/.test(text)) return [text];
  return text
    .slice(1, -1)
    .split(',')
    .map((element) => element.trim());
}

const brackets = (form: string): string => form.charAt(0) + form.charAt(form.length - 1);

function isFraction(text: string): boolean {
  return /^-?[0-9]+.?\/0*[1-9][0-9]*.?$/.test(text);
}
