import type { CommandModule, Context } from '../context.ts'
import { print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import {
  checkDrainTimes,
  undrainServer,
  withDrainOptions,
  withPermit,
  type DrainTimes,
} from '../session/drain.ts'
import { safeLine } from '../text/bytes.ts'

interface Flags extends AdminFlags, DrainTimes {
  readonly end?: boolean
}

/** `zabra drain`: makes a server ready to be stopped, without taking the quorum away. */
export const drain: CommandModule = (program, context) => {
  withDrainOptions(withAdminOption(program.command('drain')))
    .description('wait until the leader lets a server stop, then move its clients to others')
    .option('--end', 'give the permit back, and accept sessions again')
    .action((flags: Flags) => (flags.end === true ? end(context, flags) : begin(context, flags)))
}

async function begin(context: Context, flags: Flags): Promise<void> {
  const { io, options } = context
  checkDrainTimes(flags)
  const { id } = await openAdmin(context, flags).json<{ readonly id: number }>('GET', '/api/v1/self')
  await withPermit(context, { ...flags, id }, flags, async () => {})
  const stopWithin = Math.ceil(flags.for / 1000)
  if (options().json) printJson(io, { id, seconds: stopWithin })
  else print(io, safeLine(`server ${id} may be stopped within ${stopWithin} s`))
}

async function end(context: Context, flags: Flags): Promise<void> {
  await undrainServer(openAdmin(context, flags))
  if (context.options().json) printJson(context.io, { draining: false })
  else print(context.io, 'the server accepts sessions again')
}
