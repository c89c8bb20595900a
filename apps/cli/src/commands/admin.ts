import { Argument, Option, type Command } from 'commander'
import { duration } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'

interface Flags extends AdminFlags {
  readonly part?: string
  readonly for?: number
}

/** The levels of the log, as the server answers. */
interface Levels {
  readonly level: string | null
  readonly parts: Readonly<Record<string, string>>
}

const DAY_MS = 86_400_000

/** `zabra admin`: settings of a server that change while it runs. */
export const admin: CommandModule = (program, context) => {
  const command = program.command('admin').description('change how a server works while it runs')
  withAdminOption(command.command('log-level'))
    .description('print or set how much a server logs')
    .addArgument(
      new Argument('[level]', 'the new level (default: print the levels)').choices([
        'error',
        'warn',
        'info',
        'debug',
      ]),
    )
    .option('--part <part>', 'only this part of the server, such as election (default: all)')
    .addOption(
      new Option('--for <time>', 'how long, such as 10m (default: for good)').argParser(
        duration(1000, DAY_MS),
      ),
    )
    .action((level: string | undefined, flags: Flags) =>
      level === undefined ? show(context, flags) : set(context, level, flags),
    )
  addSettings(command, context)
}

async function show(context: Context, flags: Flags): Promise<void> {
  if (flags.part !== undefined || flags.for !== undefined)
    throw new UsageError('Expected a level for --part and --for, such as debug.')
  report(context, await openAdmin(context, flags).json<Levels>('GET', '/api/v1/log-level'))
}

async function set(context: Context, level: string, flags: Flags): Promise<void> {
  const { part, for: ms } = flags
  const body = {
    level,
    ...(part === undefined ? {} : { part }),
    ...(ms === undefined ? {} : { seconds: ms / 1000 }),
  }
  report(context, await openAdmin(context, flags).json<Levels>('PUT', '/api/v1/log-level', { body }))
}

function report({ io, options }: Context, { level, parts }: Levels): void {
  if (options().json) return printJson(io, { level, parts })
  print(io, safeLine(`all ${level ?? 'as the program of the server has it'}`))
  for (const [part, own] of Object.entries(parts)) print(io, safeLine(`${part} ${own}`))
}

// Settings

interface SettingsFlags extends AdminFlags {
  readonly changeable?: boolean
  readonly reset?: boolean
}

/** A setting, as the server answers. */
interface Setting {
  readonly key: string
  readonly value: string | null
  readonly unit: string
  readonly default: string | null
  readonly origin: string
  readonly atStart: string | null
  readonly changeable: boolean
  readonly withheld: boolean
}

interface Changed {
  readonly changed: readonly {
    readonly key: string
    readonly from: string | null
    readonly to: string | null
  }[]
  readonly lasts: string
}

/** Adds `zabra admin settings`: the settings of a running server. */
function addSettings(command: Command, context: Context): void {
  withAdminOption(command.command('settings'))
    .description('print the settings of a server, or change some until its next start')
    .argument('[settings...]', 'KEY to print, KEY=VALUE to change (default: print all that are set)')
    .option('--changeable', 'only those that may change while the server runs')
    .option('--reset', 'bring the values of the start back for the given keys')
    .action((given: readonly string[], flags: SettingsFlags) => {
      const isChange = given.some((text) => text.includes('=')) || flags.reset === true
      return isChange ? changeSettings(context, given, flags) : listSettings(context, given, flags)
    })
}

async function listSettings(context: Context, keys: readonly string[], flags: SettingsFlags): Promise<void> {
  const { io, options } = context
  const { settings } = await openAdmin(context, flags).json<{ settings: readonly Setting[] }>(
    'GET',
    '/api/v1/settings',
  )
  const unknown = keys.find((key) => !settings.some((setting) => setting.key === key))
  if (unknown !== undefined)
    throw new UsageError(
      `Expected keys of the configuration, such as slow.request.ms, got ${JSON.stringify(unknown)}. Without a key all are printed.`,
    )
  const chosen = settings.filter(
    ({ key, value, withheld, changeable }) =>
      (keys.length === 0 ? value !== null || withheld : keys.includes(key)) &&
      (flags.changeable !== true || changeable),
  )
  if (options().json) for (const setting of chosen) printJson(io, setting)
  else printTable(io, ['key', 'value', 'unit', 'origin', 'at the start', 'may change'], chosen.map(row))
}

const row = ({ key, value, unit, origin, atStart, changeable, withheld }: Setting): string[] => [
  key,
  withheld ? '(not shown)' : (value ?? '-'),
  unit,
  origin,
  atStart ?? '',
  changeable ? 'yes' : '',
]

async function changeSettings(
  context: Context,
  given: readonly string[],
  flags: SettingsFlags,
): Promise<void> {
  const { io, options } = context
  const body = Object.fromEntries(given.map((text) => wantedOf(text, flags.reset === true)))
  if (given.length === 0) throw new UsageError('Expected keys for --reset, such as slow.request.ms.')
  const answer = await openAdmin(context, flags).json<Changed>('PATCH', '/api/v1/settings', { body })
  if (options().json) return printJson(io, answer)
  for (const { key, from, to } of answer.changed)
    print(io, safeLine(`${key}: ${from ?? 'unset'} → ${to ?? 'unset'}`))
  note(io, safeLine(answer.changed.length === 0 ? 'all have these values already' : answer.lasts))
}

function wantedOf(text: string, isReset: boolean): [key: string, value: string | null] {
  const at = text.indexOf('=')
  if (isReset !== at < 0 || at === 0)
    throw new UsageError(
      isReset
        ? `Expected keys alone with --reset, such as slow.request.ms, got ${JSON.stringify(text)}.`
        : `Expected KEY=VALUE for each setting, such as slow.request.ms=50, got ${JSON.stringify(text)}.`,
    )
  return isReset ? [text, null] : [text.slice(0, at), text.slice(at + 1)]
}
