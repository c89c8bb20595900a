import { formatZxid } from '@zabra/protocol'
import { DamageError, readSnapshot, type SnapshotContents, type SnapshotNode } from '@zabra/server/files'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { findFiles } from '../files/find-files.ts'
import { print, printJson, type Io } from '../io.ts'
import { formatAcl } from '../text/acl.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'

interface Flags {
  readonly check?: boolean
  readonly data?: boolean
  readonly path?: string
}

const hex = (value: bigint | number): string => `0x${formatZxid(value)}`

/** `zabra snapshot`: snapshots of Zabra and of Apache ZooKeeper, printed or checked. */
export const snapshot: CommandModule = (program, { io, options }) => {
  program
    .command('snapshot')
    .description('print what a snapshot holds, of a folder the newest one; or check them')
    .argument('<file or folder>', 'snapshot.<zxid>, also .gz and .snappy, a data folder, or its version-2')
    .option('--data', 'print the beginning of the data too')
    .option('--path <path>', 'only this node and what is below it')
    .option('--check', 'print no node, say whether the files are sound; of a folder all of them')
    .action(async (target: string, asked: Flags) => {
      const files = await findFiles(io.platform.disk, target, 'snapshot')
      const { json } = options()
      if (asked.check) return check(io, files, json)
      return printSnapshot(io, await read(io, files.at(-1)!), asked, json)
    })
}

const read = (io: Io, file: string): Promise<SnapshotContents> =>
  readSnapshot(io.platform.disk, file, io.platform.compression)

async function check(io: Io, files: readonly string[], json: boolean): Promise<void> {
  let damaged = 0
  for (const file of files) {
    io.signal.throwIfAborted()
    try {
      const found = await read(io, file)
      const isOther = found.digest?.matches === false
      if (isOther) damaged++
      if (json) printJson(io, { ...summaryJson(found), state: isOther ? 'damaged' : 'sound' })
      else
        print(
          io,
          isOther
            ? `${file}: damaged: its nodes do not have the digest that it names. Use another snapshot.`
            : `${file}: sound, ${summary(found)}`,
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
      `${damaged} of ${files.length} ${files.length === 1 ? 'snapshot is' : 'snapshots are'} damaged. A server needs one that is sound, and the logs from it on.`,
      ExitCode.damagedFile,
    )
}

function printSnapshot(io: Io, found: SnapshotContents, asked: Flags, json: boolean): void {
  if (json) printJson(io, summaryJson(found))
  else {
    print(io, `${found.file}: ${summary(found)}`)
    for (const [id, timeout] of found.sessions) print(io, `session ${hex(id)} timeout ${timeout} ms`)
  }
  for (const node of found.nodes()) {
    io.signal.throwIfAborted()
    const { path } = node
    if (
      asked.path !== undefined &&
      asked.path !== '/' &&
      path !== asked.path &&
      !path.startsWith(`${asked.path}/`)
    )
      continue
    if (json) printJson(io, nodeJson(node, asked.data === true))
    else print(io, nodeLine(node, asked.data === true))
  }
}

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
    `acl ${safeLine(formatAcl(acl))}`,
  ]
  return words.join(' ')
}

const nodeJson = ({ path, data, acl, stat, children }: SnapshotNode, withData: boolean) => ({
  path,
  bytes: data?.length ?? 0,
  ...(withData ? dataFields(data) : {}),
  children,
  czxid: hex(stat.czxid),
  mzxid: hex(stat.mzxid),
  pzxid: hex(stat.pzxid),
  ctime: new Date(stat.ctime).toISOString(),
  mtime: new Date(stat.mtime).toISOString(),
  version: stat.version,
  cversion: stat.cversion,
  aversion: stat.aversion,
  owner: hex(stat.owner),
  acl: formatAcl(acl),
})
