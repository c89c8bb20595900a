import { ErrorCode } from '@zabra/protocol'
import { Option } from 'commander'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, hasCode, toExit, UsageError } from '../exit-codes.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { ExportFile, type ExportedNodeLine } from '../session/export-file.ts'
import { readIdentities } from '../session/identities.ts'
import { planImport, type ImportPlan } from '../session/import-plan.ts'
import { runImport, IncompleteRollbackError } from '../session/import-run.ts'
import { isReserved } from '../session/paths.ts'
import { safeLine } from '../text/bytes.ts'

interface Flags {
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
    .action(async (file: string, path: string | undefined, asked: Flags) => {
      const source = await ExportFile.open(io, file)
      try {
        report(io, asked, options().json, await importFrom(source, path, asked))
      } finally {
        await source.close()
      }
    })

  async function importFrom(source: ExportFile, path: string | undefined, asked: Flags): Promise<ImportPlan> {
    const nodes = await readNodes(io, source, path)
    const dataOf = (node: ExportedNodeLine): Promise<Uint8Array | null> => source.readData(node)
    const existing = asked.replace ? 'replace' : asked.skip ? 'skip' : 'refuse'
    return session(
      async (zk) => {
        const us = await readIdentities(zk, options().auth)
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
          await runImport(zk, plan, {
            identities: us,
            dataOf,
            signal,
            onProgress: (nodes) => bar.update(nodes),
            onRollback: takingBack,
          })
        } catch (error) {
          throw explain(error, plan)
        } finally {
          bar.stop()
        }
        return plan
      },
      { handlesAbort: true },
    )
  }
}

/** Says what was done, or would be. Throws when nothing was since nodes are in the way. */
function report(io: Io, asked: Flags, json: boolean, plan: ImportPlan): void {
  if (plan.reserved.length > 0)
    note(io, `left out ${plan.reserved.length} nodes in /zookeeper, which are the server's own`)
  if (json) printJson(io, summary(plan))
  else if (asked.dryRun) print(io, ...describe(plan))
  else
    note(
      io,
      `created ${plan.create.length + plan.parents.length}, replaced ${plan.replace.length}, left ${plan.keep.length} as they were${plan.restore.length === 0 ? '' : `, closed ${plan.restore.length} of an earlier import`}`,
    )
  if (asked.dryRun) refuseConflicts(plan)
}

async function readNodes(io: Io, source: ExportFile, path: string | undefined): Promise<ExportedNodeLine[]> {
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
function explain(error: unknown, { create }: ImportPlan): unknown {
  if (error instanceof IncompleteRollbackError) {
    const { line, exitCode } = toExit(error.cause)
    const why = line === '' ? 'It was stopped.' : line
    return new Failure(
      `${why} Up to ${error.nodes} nodes that it has created stay. Run the same import again to complete it.`,
      exitCode,
      { cause: error },
    )
  }
  if (hasCode(error, ErrorCode.UNIMPLEMENTED) && create.some(({ kind }) => kind !== undefined))
    return new Failure(
      'The server does not know containers or nodes with a time to live; nothing was changed. Set extendedTypesEnabled=true there, or take "container" and "ttl" out of the export.',
      ExitCode.refused,
      { cause: error },
    )
  return error
}

function refuseConflicts({ conflicts }: ImportPlan): void {
  if (conflicts.length === 0) return
  const shown = conflicts.slice(0, 3).map(safeLine).join(', ')
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : ''
  throw new Failure(
    `${shown}${more} exist and differ from the export, or may not be read; nothing was changed. Give --replace to overwrite them or --skip to leave them.`,
    ExitCode.nodeExists,
  )
}

const summary = (plan: ImportPlan) => ({
  create: [...plan.parents, ...plan.create.map(({ path }) => path)],
  replace: plan.replace.map(({ path }) => path),
  close: plan.restore.map(({ path }) => path),
  keep: plan.keep,
  conflicts: plan.conflicts,
  reserved: plan.reserved,
})

const describe = (plan: ImportPlan): string[] => [
  ...plan.parents.map((path) => `create ${safeLine(path)} (empty parent)`),
  ...plan.create.map(({ path }) => `create ${safeLine(path)}`),
  ...plan.replace.map(({ path }) => `replace ${safeLine(path)}`),
  ...plan.restore.map(({ path }) => `close ${safeLine(path)} (left open by an import that was killed)`),
  ...plan.keep.map((path) => `keep ${safeLine(path)}`),
  ...plan.conflicts.map((path) => `conflict ${safeLine(path)}`),
]
