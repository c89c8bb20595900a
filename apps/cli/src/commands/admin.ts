import { Argument, Option } from 'commander'
import { duration } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'

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
  print(io, `all ${level ?? 'as the program of the server has it'}`)
  for (const [part, own] of Object.entries(parts)) print(io, `${part} ${own}`)
}
