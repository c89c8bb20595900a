import { ErrorCode, MAX_TTL, parentOf, type ACL } from '@zabra/protocol'
import { givenData, integer, type CommandModule } from '../context.ts'
import { isCode, UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import type { CreateMode, ZooKeeper } from '../session/zookeeper.ts'
import { parseAcl } from '../text/acl.ts'

interface Asked {
  readonly file?: string
  readonly ephemeral?: boolean
  readonly sequential?: boolean
  readonly container?: boolean
  readonly ttl?: number
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
    .action(async (path: string, argument: string | undefined, asked: Asked) => {
      const data = (await givenData(io, argument, asked.file)) ?? null
      const mode = modeOf(asked)
      const acl = asked.acl === undefined ? undefined : parseAcl(asked.acl)
      const created = await session((zk) => {
        const details = {
          mode,
          ...(acl ? { acl } : {}),
          ...(asked.ttl === undefined ? {} : { ttl: asked.ttl }),
        }
        const make = () => zk.create(path, data, details)
        return asked.parents ? withParents(zk, path, acl, make) : make()
      })
      if (options().json) printJson(io, { path: created })
      else print(io, created)
    })
}

/** The mode of a combination of flags. Throws a `UsageError` for those that do not go together. */
export function modeOf({ ephemeral, sequential, container, ttl }: Asked): CreateMode {
  if (container && (ephemeral || sequential))
    throw new UsageError('A container is neither ephemeral nor sequential: leave out -c, or -e and -s.')
  if (ttl !== undefined && (ephemeral || container))
    throw new UsageError('Only a persistent node has a time to live: leave out --ttl, or -e and -c.')
  if (container) return 'container'
  if (ttl !== undefined) return sequential ? 'persistentSequentialWithTtl' : 'persistentWithTtl'
  if (ephemeral) return sequential ? 'ephemeralSequential' : 'ephemeral'
  return sequential ? 'persistentSequential' : 'persistent'
}

/** Runs `make`, and again after the parents of `path` have been made when one is missing. */
export async function withParents<T>(
  zk: ZooKeeper,
  path: string,
  acl: readonly ACL[] | undefined,
  make: () => Promise<T>,
): Promise<T> {
  try {
    return await make()
  } catch (error) {
    if (!isCode(error, ErrorCode.NONODE)) throw error
  }
  const parent = parentOf(path)
  await withParents(zk, parent, acl, async () => {
    try {
      await zk.create(parent, null, acl ? { acl } : {})
    } catch (error) {
      // Somebody else was faster, which is as good.
      if (!isCode(error, ErrorCode.NODEEXISTS)) throw error
    }
  })
  return make()
}
