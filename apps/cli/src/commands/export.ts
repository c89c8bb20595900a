import type { SnapshotNode } from '@zabra/server/files'
import { createWriteStream } from 'node:fs'
import { once } from 'node:events'
import { unlink } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { kindOf, readFiles } from '../files/read-nodes.ts'
import { note, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { EXPORT_HEAD, exportEnd, formatNode, notKeptBy, type ExportedNode } from '../session/export-format.ts'
import { readNodes, sequenceField } from '../session/export-source.ts'
import { isReserved } from '../session/paths.ts'
import { fromStoredAcl } from '../text/acl.ts'

interface Flags {
  readonly output?: string
  readonly ephemeral?: boolean
  readonly from?: string
  readonly logs?: string
}

/** A node with its absolute path, and whether it is ephemeral. */
export interface SourceNode extends ExportedNode {
  readonly isEphemeral: boolean
}

/** `zabra export`: writes a subtree as lines of JSON for `zabra import`. */
export const exportTree: CommandModule = (program, { io, options, session }) => {
  program
    .command('export')
    .description('write a subtree as lines of JSON: paths, data, access lists')
    .argument('[path]', 'the subtree; /zookeeper belongs to the server and is left out', '/')
    .option('-o, --output <file>', 'write to a new file instead of standard output')
    .option('-e, --ephemeral', 'include ephemeral nodes, which an import creates as persistent')
    .option(
      '--from <file or folder>',
      'read a data folder as a server would at its start, or one snapshot, instead of a server; only files have container and TTL nodes marked',
    )
    .option('--logs <folder>', 'with --from: the folder of the logs (dataLogDir), if it is another one')
    .action(async (path: string, flags: Flags) => {
      if (isReserved(path))
        throw new UsageError(`${path} belongs to the server and cannot be exported. Name another subtree.`)
      if (flags.logs !== undefined && flags.from === undefined)
        throw new UsageError('--logs belongs to --from: give it too, or leave --logs out.')
      const unreadable = new UnreadableNodes(io)
      const target = await openTarget(io, flags.output)
      const isShown = flags.output === undefined && io.stdout.isTTY === true
      const write = async (nodes: AsyncIterable<SourceNode>, total?: number): Promise<Counts> => {
        const bar = progress(io, 'Exporting', 'nodes', isShown ? 0 : total)
        try {
          return await writeExport(target, path, nodes, flags, (done) => bar.update(done))
        } finally {
          bar.stop()
        }
      }
      let counts: Counts
      try {
        if (flags.from !== undefined) {
          const nodes = await readFiles(io, flags.from, flags.logs)
          counts = await write(selectNodes(io, nodes, flags.from, path))
        } else
          counts = await session(async (zk) =>
            write(readNodes(zk, path, io.signal, unreadable.add), (await zk.getAllChildrenNumber(path)) + 1),
          )
        await target.end()
      } catch (error) {
        await target.discard()
        throw error
      }
      const notKept = notKeptBy({
        isFromServer: flags.from === undefined,
        hasEphemeral: flags.ephemeral === true,
      })
      note(io, `an import does not restore: ${notKept.join('; ')}`)
      if (flags.output !== undefined && options().json) printJson(io, { file: flags.output, ...counts })
      else if (flags.output !== undefined) note(io, `exported ${counts.exported} nodes to ${flags.output}`)
      if (counts.ephemeral > 0)
        note(
          io,
          `left out ${counts.ephemeral} ephemeral ${counts.ephemeral === 1 ? 'node' : 'nodes'}, which belong to sessions (--ephemeral includes them)`,
        )
      unreadable.failIfAny()
    })
}

interface Counts {
  exported: number
  ephemeral: number
}

async function writeExport(
  target: ExportTarget,
  root: string,
  nodes: AsyncIterable<SourceNode>,
  { ephemeral, from }: Flags,
  done: (nodes: number) => void,
): Promise<Counts> {
  const counts = { exported: 0, ephemeral: 0 }
  const notKept = notKeptBy({ isFromServer: from === undefined, hasEphemeral: ephemeral === true })
  await target.write(`${JSON.stringify({ ...EXPORT_HEAD, root, notKept })}\n`)
  for await (const node of nodes) {
    if (node.isEphemeral && !ephemeral) {
      counts.ephemeral++
      continue
    }
    const below = root === '/' ? node.path : node.path.slice(root.length) || '/'
    await target.write(`${formatNode({ ...node, path: below })}\n`)
    done(++counts.exported)
  }
  await target.write(`${JSON.stringify(exportEnd(counts.exported))}\n`)
  return counts
}

/** Yields the nodes of a subtree among those of files, with their types. */
async function* selectNodes(
  io: Io,
  nodes: Iterable<SnapshotNode>,
  from: string,
  root: string,
): AsyncGenerator<SourceNode> {
  let count = 0
  for (const { path, data, acl, stat } of nodes) {
    io.signal.throwIfAborted()
    if (isReserved(path) || !(root === '/' || path === root || path.startsWith(`${root}/`))) continue
    count++
    // In files, a cversion is the number of children created so far.
    yield { path, data, acl: fromStoredAcl(acl), ...kindOf(stat.owner), ...sequenceField(stat.cversion) }
  }
  if (count === 0) throw new Failure(`${root} is not in ${from}.`, ExitCode.noNode)
}

interface ExportTarget {
  write(line: string): Promise<void>
  /** Waits until everything is written. */
  end(): Promise<void>
  /** Deletes an incomplete file, so that it is not taken for a complete export. */
  discard(): Promise<void>
}

/** Opens standard output, or a file that must not exist yet. Writes apply backpressure. */
async function openTarget(io: Io, file: string | undefined): Promise<ExportTarget> {
  if (file !== undefined) return openFile(io, file)
  const { stdout } = io
  return {
    async write(line) {
      if (!stdout.write(line)) await once(stdout, 'drain', { signal: io.signal })
    },
    end: () => Promise.resolve(),
    discard: () => Promise.resolve(),
  }
}

async function openFile(io: Io, file: string): Promise<ExportTarget> {
  const stream = createWriteStream(file, { flags: 'wx', mode: 0o600 })
  try {
    await once(stream, 'open')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      `Cannot create ${file} (${code}). Name a file that does not exist yet, in a writable folder.`,
    )
  }
  // A write fails later than the call, also between two of them.
  let failure: Error | undefined
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    failure = new Failure(
      `Cannot write to ${file} (${code}). Make room, or name another file.`,
      ExitCode.unexpected,
    )
  })
  const explained = (error: unknown): never => {
    throw failure ?? error
  }
  return {
    async write(line) {
      if (failure !== undefined) throw failure
      if (!stream.write(line)) await once(stream, 'drain', { signal: io.signal }).catch(explained)
    },
    async end() {
      stream.end()
      await finished(stream).catch(explained)
    },
    async discard() {
      stream.destroy()
      await unlink(file)
    },
  }
}
