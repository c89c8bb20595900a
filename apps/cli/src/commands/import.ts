import { ErrorCode } from '@zabra/protocol'
import { Option } from 'commander'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, isCode, judge, UsageError } from '../exit-codes.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { ExportFile, type NodeLine } from '../session/export-file.ts'
import { identitiesOf } from '../session/identities.ts'
import { planImport, type Plan } from '../session/import-plan.ts'
import { carryOut, ImportLeftover } from '../session/import-run.ts'
import { isReserved } from '../session/paths.ts'
import { safeLine } from '../text/bytes.ts'

interface Asked {
  readonly dryRun?: boolean
  readonly replace?: boolean
  readonly skip?: boolean
}

/** `zabra import`: what `zabra export` wrote, at the same place or another. */
export const importTree: CommandModule = (program, { io, options, session }) => {
  program
    .command('import')
    .description('create the nodes of an export; nothing is changed unless all of them can be')
    .argument('[file]', 'the export, - for standard input', '-')
    .argument('[path]', 'where its root goes; where it came from unless given')
    .option('-n, --dry-run', 'say what would be done, and do nothing')
    .addOption(
      new Option('--replace', 'give nodes that exist the data and access list of the export').conflicts(
        'skip',
      ),
    )
    .option('--skip', 'leave nodes that exist as they are')
    .action(async (file: string, path: string | undefined, asked: Asked) => {
      const source = await ExportFile.open(io, file)
      try {
        tell(io, asked, options().json, await work(source, path, asked))
      } finally {
        await source.close()
      }
    })

  async function work(source: ExportFile, path: string | undefined, asked: Asked): Promise<Plan> {
    const nodes = await read(io, source, path)
    const dataOf = (node: NodeLine): Promise<Uint8Array | null> => source.dataOf(node)
    const existing = asked.replace ? 'replace' : asked.skip ? 'skip' : 'refuse'
    return session(
      async (zk) => {
        const us = await identitiesOf(zk, options().auth)
        const plan = await planImport(zk, nodes, dataOf, existing, us)
        if (asked.dryRun) return plan
        refuseConflicts(plan)
        const bar = progress(io, 'Importing', 'nodes', plan.create.length + plan.replace.length)
        const takingBack = (nodes: number): void => {
          bar.stop()
          note(io, `deleting the ${nodes} nodes again that were created so far`)
        }
        try {
          const { signal } = io
          await carryOut(zk, plan, { us, dataOf, signal, done: (nodes) => bar.at(nodes), takingBack })
        } catch (error) {
          throw explained(error, plan)
        } finally {
          bar.stop()
        }
        return plan
      },
      { cleansUp: true },
    )
  }
}

/** Says what was done, or would be. Throws when nothing was since nodes are in the way. */
function tell(io: Io, asked: Asked, json: boolean, plan: Plan): void {
  if (plan.reserved.length > 0)
    note(io, `left out ${plan.reserved.length} nodes in /zookeeper, which are the server's own`)
  if (json) printJson(io, summary(plan))
  else if (asked.dryRun) print(io, ...describe(plan))
  else
    note(
      io,
      `created ${plan.create.length + plan.parents.length}, replaced ${plan.replace.length}, left ${plan.keep.length} as they were${plan.close.length === 0 ? '' : `, closed ${plan.close.length} of an earlier import`}`,
    )
  if (asked.dryRun) refuseConflicts(plan)
}

async function read(io: Io, source: ExportFile, path: string | undefined): Promise<NodeLine[]> {
  const nodes = await source.nodes(io.signal)
  if (nodes.length === 0)
    throw new UsageError(
      `${source.name}: Expected at least one node, got none. Give a file that zabra export wrote.`,
    )
  const root = path ?? source.root ?? '/'
  if (isReserved(root))
    throw new UsageError(`${root} is the server's own and never imported to. Name a subtree of yours.`)
  if (root === '/') return nodes
  return nodes.map((node) => ({ ...node, path: node.path === '/' ? root : `${root}${node.path}` }))
}

/** What an import that did not come to its end has left, and what to do about it. */
function explained(error: unknown, { create }: Plan): unknown {
  if (error instanceof ImportLeftover) {
    const { line, exitCode } = judge(error.cause)
    const why = line === '' ? 'It was stopped.' : line
    return new Failure(
      `${why} Up to ${error.nodes} nodes that it has created stay. Run the same import again to complete it.`,
      exitCode,
      { cause: error },
    )
  }
  if (isCode(error, ErrorCode.UNIMPLEMENTED) && create.some(({ kind }) => kind !== undefined))
    return new Failure(
      'The server does not know containers or nodes with a time to live; nothing was changed. Set extendedTypesEnabled=true there, or take "container" and "ttl" out of the export.',
      ExitCode.refused,
      { cause: error },
    )
  return error
}

function refuseConflicts({ conflicts }: Plan): void {
  if (conflicts.length === 0) return
  const shown = conflicts.slice(0, 3).map(safeLine).join(', ')
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : ''
  throw new Failure(
    `${shown}${more} exist and differ from the export, or may not be read; nothing was changed. Give --replace to overwrite them or --skip to leave them.`,
    ExitCode.nodeExists,
  )
}

const summary = (plan: Plan) => ({
  create: [...plan.parents, ...plan.create.map(({ path }) => path)],
  replace: plan.replace.map(({ path }) => path),
  close: plan.close.map(({ path }) => path),
  keep: plan.keep,
  conflicts: plan.conflicts,
  reserved: plan.reserved,
})

const describe = (plan: Plan): string[] => [
  ...plan.parents.map((path) => `create ${safeLine(path)} (empty parent)`),
  ...plan.create.map(({ path }) => `create ${safeLine(path)}`),
  ...plan.replace.map(({ path }) => `replace ${safeLine(path)}`),
  ...plan.close.map(({ path }) => `close ${safeLine(path)} (left open by an import that was killed)`),
  ...plan.keep.map((path) => `keep ${safeLine(path)}`),
  ...plan.conflicts.map((path) => `conflict ${safeLine(path)}`),
]
