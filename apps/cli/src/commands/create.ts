import { MAX_TTL } from '@zabra/protocol'
import { duration, readDataArg } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { createModeOf, type CreateFlags } from '../session/create-mode.ts'
import { parseAcl } from '../text/acl.ts'
import { safeLine } from '../text/bytes.ts'

interface Flags extends CreateFlags {
  readonly file?: string
  readonly parents?: boolean
  readonly acl?: string
}

/** `zabra create`: creates a node. */
export const create: CommandModule = (program, { io, options, session }) => {
  program
    .command('create')
    .description('create a node and print its path')
    .argument('<path>', 'the node; --sequential appends a number to it')
    .argument('[data]', 'the data as text')
    .option('-f, --file <file>', 'read the data from a file, - for standard input')
    .option('-e, --ephemeral', 'delete it with the session, that is when this command ends')
    .option('-s, --sequential', 'append a number that increases with each node')
    .option('-c, --container', 'let the server delete it some time after its last child')
    .option(
      '-t, --ttl <time>',
      'let the server delete it after this time without children and changes, such as 90s or 1h',
      duration(1, MAX_TTL),
    )
    .option('-p, --parents', 'create missing parents, with the same access list')
    .option('--acl <list>', 'access list as scheme:id:perms,… (default: world:anyone:cdrwa)')
    .action(async (path: string, argument: string | undefined, flags: Flags) => {
      if (path === '/') throw new UsageError('/ exists on every server. Name a node below it, such as /app.')
      const data = (await readDataArg(io, argument, flags.file)) ?? null
      const mode = createModeOf(flags)
      const acl = flags.acl === undefined ? undefined : parseAcl(flags.acl)
      const parents = flags.parents === true && 'persistent'
      // A protected create would add a prefix to the name that the user typed.
      const created = await session((zk) =>
        zk.create(path, { ...mode, data, acl, parents, protected: false }),
      )
      if (options().json) printJson(io, { path: created.path })
      else print(io, safeLine(created.path))
    })
}
