import { digestId } from '@zabra/protocol'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { readPassword } from '../session/login.ts'

/** `zabra digest`: prints the id of a digest identity, for access lists. */
export const digest: CommandModule = (program, { io, options }) => {
  program
    .command('digest')
    .description('print the id of a user for access lists, such as ada:pgVEJwJf…, without a server')
    .argument('<user>', 'the user name')
    .option(
      '--password-file <file>',
      'the password, in the first line; - for standard input (else prompted for)',
    )
    .action(async (user: string, { passwordFile }: { passwordFile?: string }) => {
      if (user.includes(':'))
        throw new UsageError(
          'Expected a user name, got one with a colon. Give the password in --password-file or on standard input.',
        )
      const file = passwordFile ?? (io.stdin.isTTY === true ? undefined : '-')
      const id = digestId(`${user}:${await readPassword(user, file, io)}`)
      if (options().json) printJson(io, { scheme: 'digest', id })
      else print(io, id)
    })
}
