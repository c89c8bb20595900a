import { resolve } from 'node:path'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, printJson } from '../io.ts'
import { parseServers } from '../session/address.ts'
import {
  contextFilePath,
  contextNamed,
  readContexts,
  writeContexts,
  type KeptFlags,
  type NamedContext,
} from '../session/named-contexts.ts'
import { printTable } from '../text/table.ts'

interface ProgramFlags extends KeptFlags {
  readonly server?: string
  readonly auth?: readonly string[]
  readonly json?: boolean
}

interface AddFlags {
  readonly authFile?: string
  readonly authCommand?: string
  readonly saslPasswordCommand?: string
  readonly force?: boolean
}

/** `zabra context`: names sets of connection options. */
export const contexts: CommandModule = (program, { io }) => {
  const { environment } = io
  const command = program
    .command('context')
    .description('name servers with their identities and certificates')
  command
    .command('add')
    .description(
      'add a context from --server, --tls, --ca, --cert, --key and --sasl-user; the first one is used at once',
    )
    .argument('<name>', 'its name')
    .option('--auth-file <file>', 'identities: one scheme:credential a line')
    .option(
      '--auth-command <line>',
      'a line of the system shell that prints the identities, such as pass zookeeper',
    )
    .option(
      '--sasl-password-command <line>',
      'a line of the system shell that prints the password of --sasl-user',
    )
    .option('--force', 'replace a context of this name')
    .action(async (name: string, flags: AddFlags) => {
      const file = readContexts(environment)
      if (Object.hasOwn(file.contexts, name) && !flags.force)
        throw new Failure(`There is a context ${name} already. Replace it with --force.`, ExitCode.usage)
      const added = contextOf(program.opts<ProgramFlags>(), flags)
      await writeContexts(environment, {
        current: file.current ?? name,
        contexts: { ...file.contexts, [name]: added },
      })
    })
  command
    .command('use')
    .description('use a context when no server is named')
    .argument('<name>', 'its name')
    .action(async (name: string) => {
      const file = readContexts(environment)
      contextNamed(file, name)
      await writeContexts(environment, { ...file, current: name })
    })
  command
    .command('list')
    .description('list the contexts; * marks the one in use')
    .action(() => {
      const file = readContexts(environment)
      const entries = Object.entries(file.contexts)
      if (program.opts<ProgramFlags>().json) {
        for (const [name, context] of entries)
          printJson(io, { name, current: name === file.current, ...context })
      } else if (entries.length === 0) {
        note(io, `no contexts in ${contextFilePath(environment)}`)
      } else {
        const mark = (name: string): string => (name === file.current ? '*' : '')
        const rows = entries.map(([name, { server }]) => [mark(name), name, server])
        printTable(io, ['', 'name', 'server'], rows)
      }
    })
  command
    .command('remove')
    .description('remove a context')
    .argument('<name>', 'its name')
    .action(async (name: string) => {
      const { current, contexts } = readContexts(environment)
      contextNamed({ contexts }, name)
      const { [name]: _, ...rest } = contexts
      await writeContexts(environment, {
        ...(current === undefined || current === name ? {} : { current }),
        contexts: rest,
      })
    })
}

function contextOf(options: ProgramFlags, flags: AddFlags): NamedContext {
  const { server, auth, tls, ca, cert, key, saslUser, saslPasswordFile } = options
  if (auth !== undefined)
    throw new UsageError(
      'Expected --auth-file or --auth-command, got --auth: a context keeps no secret. Put the identity into a file that you alone can read.',
    )
  if (server === undefined)
    throw new UsageError('Expected the servers of the context with --server, got none.')
  parseServers(server)
  const { authFile, authCommand, saslPasswordCommand } = flags
  if (authFile !== undefined && authCommand !== undefined)
    throw new UsageError('Expected --auth-file or --auth-command, got both. Give one of them.')
  if (saslPasswordFile !== undefined && saslPasswordCommand !== undefined)
    throw new UsageError(
      'Expected --sasl-password-file or --sasl-password-command, got both. Give one of them.',
    )
  // The context is used in other folders too.
  const files = { ca, cert, key, saslPasswordFile, authFile }
  const paths = Object.entries(files).flatMap(([name, file]) =>
    file === undefined ? [] : [[name, resolve(file)]],
  )
  return {
    server,
    ...(tls === undefined ? {} : { tls }),
    ...(saslUser === undefined ? {} : { saslUser }),
    ...(authCommand === undefined ? {} : { authCommand }),
    ...(saslPasswordCommand === undefined ? {} : { saslPasswordCommand }),
    ...(Object.fromEntries(paths) as Partial<NamedContext>),
  }
}
