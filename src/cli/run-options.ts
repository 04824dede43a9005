/** The table of `slipway run` flags as options of commander, and what it parsed as flag values. */
import { Command, Option } from 'commander';
import { refusedFlags } from '../config/refused-flags.ts';
import { runFlagAliases, runFlags, type FlagValues, type RunFlag } from '../config/run-flags.ts';

const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  value,
];

/** Adds every flag of the table, and hidden ones for those that are refused by name. */
export function addRunOptions(command: Command): Command {
  for (const flag of runFlags) for (const option of optionsOf(flag)) command.addOption(option);
  for (const [name, { takesValue }] of Object.entries(refusedFlags)) {
    const syntax = takesValue ? `${name} <value>` : name;
    const option = new Option(syntax).hideHelp();
    command.addOption(takesValue ? option.argParser(collect) : option);
  }
  return command;
}

function optionsOf(flag: RunFlag): Option[] {
  const names = flag.short === undefined ? flag.name : `${flag.short}, ${flag.name}`;
  if (flag.kind === 'on') return [grouped(new Option(names, flag.help), flag)];
  if (flag.kind === 'switch')
    return [
      grouped(new Option(names, flag.help), flag),
      grouped(new Option(`--no-${flag.name.slice(2)}`, 'the opposite'), flag),
    ];
  const option = grouped(new Option(`${names} <${flag.value ?? 'value'}>`, flag.help), flag);
  return [flag.kind === 'list' ? option.argParser(collect) : option];
}

function grouped(option: Option, flag: RunFlag): Option {
  return option.helpGroup(`${flag.group}:`);
}

/** Values by flag name, only of flags that were given. */
export function flagValues(command: Command): FlagValues {
  const values: Record<string, FlagValues[RunFlag['name']]> = {};
  for (const option of command.options) {
    const attribute = option.attributeName();
    if (command.getOptionValueSource(attribute) !== 'cli' || option.long === undefined) continue;
    if (option.negate) continue; // its positive twin carries the value
    values[option.long] = command.getOptionValue(attribute) as FlagValues[RunFlag['name']];
  }
  return values;
}

/** Other spellings replaced by the flag's own name, up to `--`. */
export function withoutAliases(argv: readonly string[]): string[] {
  const end = argv.indexOf('--');
  const own = (argument: string): string => {
    const at = argument.indexOf('=');
    const name = at < 0 ? argument : argument.slice(0, at);
    const known = runFlagAliases[name];
    return known === undefined ? argument : `${known}${at < 0 ? '' : argument.slice(at)}`;
  };
  return argv.map((argument, index) => (end >= 0 && index >= end ? argument : own(argument)));
}
