import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { safeLine } from '../text/bytes.ts'

/** `zabra whoami`: prints the identities of this client, as the server knows them. */
export const whoami: CommandModule = (program, { io, options, session }) => {
  program
    .command('whoami')
    .description('print the identities that the server sees, as scheme: user')
    .action(async () => {
      const identities = await session((zk) => zk.whoAmI())
      if (options().json)
        printJson(
          io,
          identities.map(({ scheme, id }) => ({ scheme, user: id })),
        )
      else print(io, ...identities.map(({ scheme, id }) => safeLine(`${scheme}: ${id}`)))
    })
}
