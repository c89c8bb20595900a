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

/** `zabra import`: creates the nodes of an export, at the same path or another. */
export const importTree: CommandModule = (program, { io, options, session }) => {
  program
    .command('import')
    .description('create the nodes of an export; changes nothing on a conflict')
    .argument('[file]', 'the export, - for standard input', '-')
    .argument('[path]', 'target of its root (default: the exported path)')
    .option('-n, --dry-run', 'print the changes without making them')
    .addOption(new Option('--replace', 'overwrite data and access lists of existing nodes').conflicts('skip'))
    .option('--skip', 'leave existing nodes unchanged')
    .action(async (file: string, path: string | undefined, flags: Flags) => {
      const source = await ExportFile.open(io, file)
      try {
        report(io, flags, options().json, await importFrom(source, path, flags))
      } finally {
        await source.close()
      }
    })

  async function importFrom(source: ExportFile, path: string | undefined, flags: Flags): Promise<ImportPlan> {
    const nodes = await readNodes(io, source, path)
    const readData = (node: ExportedNodeLine): Promise<Uint8Array | null> => source.readData(node)
    const existing = flags.replace ? 'replace' : flags.skip ? 'skip' : 'refuse'
    return session(
      async (zk) => {
        const identities = await readIdentities(zk, options().auth)
        const plan = await planImport(zk, nodes, readData, existing, identities)
        if (flags.dryRun) return plan
        refuseConflicts(plan)
        const bar = progress(io, 'Importing', 'nodes', plan.create.length + plan.replace.length)
        const onRollback = (nodes: number): void => {
          bar.stop()
          note(io, `rolling back: deleting the ${nodes} nodes created so far`)
        }
        try {
          const { signal } = io
          await runImport(zk, plan, {
            identities,
            readData,
            signal,
            onProgress: (nodes) => bar.update(nodes),
            onLowSequence: (path, sequence) =>
              note(
                io,
                `${path}: new sequential children get numbers below ${sequence}: raising them takes too long, or this client may not`,
              ),
            onRollback,
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

/** Prints the changes made, or those of a dry run. Throws when a dry run has found conflicts. */
function report(io: Io, flags: Flags, json: boolean, plan: ImportPlan): void {
  if (plan.reserved.length > 0)
    note(io, `left out ${plan.reserved.length} nodes in /zookeeper, which belong to the server`)
  if (json) printJson(io, summary(plan))
  else if (flags.dryRun) print(io, ...describe(plan))
  else
    note(
      io,
      `created ${plan.create.length + plan.parents.length}, replaced ${plan.replace.length}, left ${plan.keep.length} unchanged${plan.restore.length === 0 ? '' : `, closed ${plan.restore.length} of an earlier import`}`,
    )
  if (flags.dryRun) refuseConflicts(plan)
}

async function readNodes(io: Io, source: ExportFile, path: string | undefined): Promise<ExportedNodeLine[]> {
  const nodes = await source.nodes(io.signal)
  if (nodes.length === 0)
    throw new UsageError(
      `${source.name}: Expected at least one node, got none. Give a file that zabra export wrote.`,
    )
  const root = path ?? source.root ?? '/'
  if (isReserved(root))
    throw new UsageError(
      `${root} belongs to the server and cannot be an import target. Name another subtree.`,
    )
  if (root === '/') return nodes
  return nodes.map((node) => ({ ...node, path: node.path === '/' ? root : `${root}${node.path}` }))
}

/** Adds to the error of a failed import what it has left behind and what to do. */
function explain(error: unknown, { create }: ImportPlan): unknown {
  if (error instanceof IncompleteRollbackError) {
    const { line, exitCode } = toExit(error.cause)
    const reason = line === '' ? 'The import was stopped.' : line
    return new Failure(
      `${reason} Up to ${error.nodes} created nodes remain. Run the same import again to complete it.`,
      exitCode,
      { cause: error },
    )
  }
  if (hasCode(error, ErrorCode.UNIMPLEMENTED) && create.some(({ kind }) => kind !== undefined))
    return new Failure(
      'The server does not support containers or nodes with a time to live; nothing was changed. Set extendedTypesEnabled=true there, or remove "container" and "ttl" from the export.',
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
  ...plan.restore.map(({ path }) => `close ${safeLine(path)} (access list of an import that was killed)`),
  ...plan.keep.map((path) => `keep ${safeLine(path)}`),
  ...plan.conflicts.map((path) => `conflict ${safeLine(path)}`),
]
