import { Option } from 'commander'
import { DamageError, readSnapshot, type SnapshotContents, type SnapshotNode } from '@zabra/server/files'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { integer, nodePath } from '../arguments.ts'
import { compareSnapshots } from '../files/compare-snapshots.ts'
import { findFiles } from '../files/find-files.ts'
import { summarizeSubtrees } from '../files/summarize-snapshot.ts'
import { print, printJson, type Io } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { formatAcl, fromStoredAcl } from '../text/acl.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'
import { hex } from '../text/hex.ts'
import { changesJson } from '../text/stat.ts'

interface Flags {
  readonly check?: boolean
  readonly data?: boolean
  readonly path?: string
  readonly compare?: string
  readonly summary?: boolean
  readonly depth: number
}

/** `zabra snapshot`: prints or checks snapshots of Zabra and Apache ZooKeeper. */
export const snapshot: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program
    .command('snapshot')
    .description('print a snapshot, or the newest one in a folder; check, compare or summarize it')
    .argument('<file or folder>', 'snapshot.<zxid>, also .gz and .snappy, a data folder, or its version-2')
    .option('--data', 'print the beginning of the data too')
    .option('--path <path>', 'only this node and its descendants', nodePath)
    .addOption(
      new Option(
        '--check',
        'print whether the files are sound instead of nodes; all files of a folder',
      ).conflicts(['compare', 'summary']),
    )
    .addOption(
      new Option(
        '--compare <file or folder>',
        'print what differs in this later snapshot instead of nodes',
      ).conflicts('summary'),
    )
    .option('--summary', 'print the number of nodes and the bytes of data of subtrees instead of nodes')
    .option('--depth <n>', 'with --summary: levels below --path', integer(0), 1)
    .action(async (target: string, flags: Flags) => {
      const files = await findFiles(io.platform.disk, target, 'snapshot')
      const { json } = options()
      if (flags.check) return check(io, files, json)
      const found = await read(io, files.at(-1)!)
      if (flags.compare !== undefined) {
        const later = await findFiles(io.platform.disk, flags.compare, 'snapshot')
        return printDifferences(io, found, await read(io, later.at(-1)!), flags, json)
      }
      return flags.summary ? printSummary(io, found, flags, json) : printSnapshot(io, found, flags, json)
    })

  withAdminOption(command.command('take'))
    .description('take a snapshot on a running server, in its data folder')
    .action(async (flags: AdminFlags) => {
      const taken = await openAdmin(context, flags).json<TakenSnapshot>('POST', '/api/v1/snapshots')
      if (options().json) printJson(io, taken)
      else print(io, safeLine(`${taken.file}: ${taken.bytes} bytes`))
    })
}

interface TakenSnapshot {
  readonly file: string
  readonly zxid: string
  readonly bytes: number
}

const read = (io: Io, file: string): Promise<SnapshotContents> =>
  readSnapshot(io.platform.disk, file, io.platform.compression)

async function check(io: Io, files: readonly string[], json: boolean): Promise<void> {
  let damaged = 0
  for (const file of files) {
    io.signal.throwIfAborted()
    try {
      const snapshot = await read(io, file)
      const isMismatch = snapshot.digest?.matches === false
      if (isMismatch) damaged++
      if (json) printJson(io, { ...summaryJson(snapshot), state: isMismatch ? 'damaged' : 'sound' })
      else
        print(
          io,
          isMismatch
            ? `${file}: damaged: its digest does not match its nodes. Use another snapshot.`
            : `${file}: sound, ${summary(snapshot)}`,
        )
    } catch (error) {
      if (!(error instanceof DamageError)) throw error
      damaged++
      if (json) printJson(io, { file, state: 'damaged', offset: error.offset, problem: error.message })
      else print(io, `${file}: damaged, first bad byte ${error.offset}: ${error.message}`)
    }
  }
  if (damaged > 0)
    throw new Failure(
      `${damaged} of ${files.length} ${files.length === 1 ? 'snapshot is' : 'snapshots are'} damaged. A server needs a sound snapshot and all later logs.`,
      ExitCode.damagedFile,
    )
}

function printSnapshot(io: Io, snapshot: SnapshotContents, flags: Flags, json: boolean): void {
  if (json) printJson(io, summaryJson(snapshot))
  else {
    print(io, `${snapshot.file}: ${summary(snapshot)}`)
    for (const [id, timeout] of snapshot.sessions) print(io, `session ${hex(id)} timeout ${timeout} ms`)
  }
  let isEmpty = true
  for (const node of snapshot.nodes()) {
    io.signal.throwIfAborted()
    const { path } = node
    if (!isWithin(path, flags.path)) continue
    isEmpty = false
    if (json) printJson(io, nodeJson(node, flags.data === true))
    else print(io, nodeLine(node, flags.data === true))
  }
  if (isEmpty) throw notIn(snapshot, flags.path)
}

const notIn = ({ file }: SnapshotContents, path = '/'): Failure =>
  new Failure(`${path} is not in ${file}.`, ExitCode.noNode)

function printDifferences(
  io: Io,
  earlier: SnapshotContents,
  later: SnapshotContents,
  flags: Flags,
  json: boolean,
): void {
  const counts = { added: 0, changed: 0, removed: 0 }
  for (const difference of compareSnapshots(earlier, later)) {
    io.signal.throwIfAborted()
    if (!isWithin(difference.path, flags.path)) continue
    counts[difference.kind]++
    if (json) printJson(io, difference)
    else {
      const { kind, path, bytes } = difference
      const size =
        kind === 'changed'
          ? `${difference.what.join(', ')} (${bytes < 0 ? '' : '+'}${bytes} bytes)`
          : `${bytes} bytes`
      print(io, `${kind} ${safeLine(path)} ${size}`)
    }
  }
  if (!json) print(io, `${counts.added} added, ${counts.changed} changed, ${counts.removed} removed`)
}

function printSummary(io: Io, snapshot: SnapshotContents, { path = '/', depth }: Flags, json: boolean): void {
  const subtrees = summarizeSubtrees(snapshot, path, depth)
  if (subtrees.length === 0) throw notIn(snapshot, path)
  for (const subtree of subtrees) {
    if (json) printJson(io, subtree)
    else print(io, `${safeLine(subtree.path)} ${subtree.nodes} nodes ${subtree.bytes} bytes`)
  }
}

/** Whether a path is `root` or a descendant of it. */
const isWithin = (path: string, root = '/'): boolean =>
  root === '/' || path === root || path.startsWith(`${root}/`)

const summary = ({ zxid, lastZxid, nodeCount, sessions }: SnapshotContents): string =>
  `${nodeCount} nodes and ${sessions.size} sessions, as of transaction ${hex(zxid)}${lastZxid === undefined || lastZxid === zxid ? '' : `, with parts of those up to ${hex(lastZxid)}`}`

const summaryJson = ({ file, size, zxid, lastZxid, nodeCount, sessions, digest }: SnapshotContents) => ({
  file,
  size,
  zxid: hex(zxid),
  lastZxid: lastZxid === undefined ? null : hex(lastZxid),
  nodes: nodeCount,
  sessions: [...sessions].map(([id, timeout]) => ({ id: hex(id), timeout })),
  digest: digest === undefined ? null : { value: `0x${digest.value}`, matches: digest.matches ?? null },
})

function nodeLine({ path, data, acl, stat, children }: SnapshotNode, withData: boolean): string {
  const words = [
    safeLine(path),
    withData ? `data ${preview(data)}` : `${data?.length ?? 0} bytes`,
    `children ${children}`,
    `version ${stat.version}`,
    `czxid ${hex(stat.czxid)}`,
    `mzxid ${hex(stat.mzxid)}`,
    `changed ${new Date(stat.mtime).toISOString()}`,
    ...(stat.owner === 0n ? [] : [`owner ${hex(stat.owner)}`]),
    `acl ${safeLine(formatAcl(fromStoredAcl(acl)))}`,
  ]
  return words.join(' ')
}

const nodeJson = ({ path, data, acl, stat, children }: SnapshotNode, withData: boolean) => ({
  path,
  bytes: data?.length ?? 0,
  ...(withData ? dataFields(data) : {}),
  children,
  ...changesJson(stat),
  owner: hex(stat.owner),
  acl: formatAcl(fromStoredAcl(acl)),
})
