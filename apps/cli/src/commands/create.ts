import { MAX_TTL } from '@zabra/protocol'
import { readDataArg, integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { createModeOf, type CreateFlags } from '../session/create-mode.ts'
import { parseAcl } from '../text/acl.ts'

interface Flags extends CreateFlags {
  readonly file?: string
  readonly parents?: boolean
  readonly acl?: string
}

/** `zabra create`: a node of any kind. */
export const create: CommandModule = (program, { io, options, session }) => {
  program
    .command('create')
    .description('create a node and print its path')
    .argument('<path>', 'the node; with --sequential a number is put behind it')
    .argument('[data]', 'the data as text')
    .option('-f, --file <file>', 'take the data from a file, - for standard input')
    .option('-e, --ephemeral', 'lives as long as the session, which is that of this command')
    .option('-s, --sequential', 'with a number that is one higher each time')
    .option('-c, --container', 'goes away some time after its last child')
    .option(
      '-t, --ttl <ms>',
      'goes away when it has had no children and no change for so long',
      integer(1, MAX_TTL),
    )
    .option('-p, --parents', 'make the parents that are missing, with the same access list')
    .option('--acl <list>', 'who may do what, as scheme:id:perms,… (everybody may do everything)')
    .action(async (path: string, argument: string | undefined, asked: Flags) => {
      const data = (await readDataArg(io, argument, asked.file)) ?? null
      const mode = createModeOf(asked)
      const acl = asked.acl === undefined ? undefined : parseAcl(asked.acl)
      const created = await session((zk) =>
        zk.create(path, data, {
          mode,
          ...(acl ? { acl } : {}),
          ...(asked.ttl === undefined ? {} : { ttl: asked.ttl }),
          ...(asked.parents ? { parents: true } : {}),
        }),
      )
      if (options().json) printJson(io, { path: created })
      else print(io, created)
    })
}
