/** The table of settings as options of commander. */
import { Option, type Command } from 'commander';
import type { ServeFlags } from '../config/serve/read-serve-config.ts';
import { settingRows, type SettingRow } from '../config/serve/setting-table.ts';

const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  value,
];

export function addServeOptions(command: Command): Command {
  command.addOption(
    new Option(
      '--config <FILE>',
      'TOML, YAML or JSON file (default: slipway.toml, if it is there)',
    ),
  );
  for (const row of settingRows) command.addOption(optionOf(row));
  return command;
}

function optionOf({ flag, key, setting }: SettingRow): Option {
  const option = new Option(
    `${flag} <${setting.kind.placeholder}>`,
    `${setting.what}${defaultText(setting)}`,
  );
  const [section = ''] = key.includes('.') ? key.split('.') : ['files'];
  option.helpGroup(`${section}:`);
  return setting.kind.isList ? option.argParser(collect) : option;
}

function defaultText({ fallback, kind }: SettingRow['setting']): string {
  if (!('value' in fallback)) return ` (default: ${fallback.says})`;
  const shown = kind.show(fallback.value);
  const isEmpty =
    shown === null || JSON.stringify(shown) === '[]' || JSON.stringify(shown) === '{}';
  return isEmpty ? '' : ` (default: ${JSON.stringify(shown).replaceAll('"', '')})`;
}

const isOfConfig = (flag: string): boolean =>
  flag === '--config' || settingRows.some((row) => row.flag === flag);

/** Values by flag, only of flags that were given. */
export function serveFlags(command: Command): ServeFlags {
  return Object.fromEntries(
    command.options
      .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
      .filter((option) => isOfConfig(option.long ?? ''))
      .map((option) => [
        option.long ?? '',
        command.getOptionValue(option.attributeName()) as ServeFlags[string],
      ]),
  );
}
