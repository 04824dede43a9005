/** The reference of settings as `docs/serving.md` has it, made from the table. */
import {
  settingRows,
  tenantRows,
  type SettingRow,
} from '../../../src/config/serve/setting-table.ts';

export function settingsReference(): string {
  const lines = ['| setting | flag | default | what |', '| --- | --- | --- | --- |'];
  for (const row of settingRows)
    lines.push(`| \`${row.key}\` | \`${row.flag}\` | ${defaultOf(row)} | ${whatOf(row)} |`);
  for (const row of tenantRows)
    lines.push(`| \`tenants.NAME.${row.key}\` | | ${defaultOf(row)} | ${whatOf(row)} |`);
  return lines.join('\n');
}

function defaultOf({ setting: { fallback, kind } }: SettingRow): string {
  if (!('value' in fallback)) return fallback.says.replace(/\b[a-z]+\.[a-z_]+\b/g, '`$&`');
  const shown = kind.show(fallback.value);
  if (shown === null || JSON.stringify(shown) === '[]' || JSON.stringify(shown) === '{}')
    return '–';
  return `\`${JSON.stringify(shown).replaceAll('"', '')}\``;
}

function whatOf({ setting: { what, kind, otherVariable } }: SettingRow): string {
  const notes = [
    ...(kind.expects === 'a text' ? [] : [kind.expects]),
    ...(otherVariable === undefined ? [] : [`also \`${otherVariable}\``]),
  ];
  return notes.length === 0 ? what : `${what} (${notes.join('; ')})`;
}
