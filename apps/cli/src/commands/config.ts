import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { safeData } from '../text/bytes.ts'

/** `zabra config`: prints the dynamic configuration of the ensemble. */
export const config: CommandModule = (program, { io, options, session }) => {
  program
    .command('config')
    .description('print the membership of the ensemble; nothing for a standalone server')
    .action(async () => {
      const { data } = await session((zk) => zk.getConfig())
      const text = safeData(data).trimEnd()
      const lines = text === '' ? [] : text.split('\n')
      if (options().json)
        printJson(
          io,
          Object.fromEntries(lines.map((line) => [line.split('=', 1)[0], line.replace(/^[^=]*=/, '')])),
        )
      else print(io, ...lines)
    })
}
