import {
  Catalog,
  chunksOf,
  findPrunable,
  httpSource,
  logFilesOf,
  manifestName,
  openFile,
  parseRetention,
  prune,
  removeBackups,
  verifyChain,
  verifyDeep,
  verifyPieces,
  writeBackup,
  ZXID_FIELDS,
  type BackupDefect,
  type BackupStore,
  type Manifest,
  type SnapshotManifest,
} from '@zabra/server/backup'
import { VERSION_FOLDER } from '@zabra/server/files'
import type { DiskReader } from '@zabra/runtime'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Context, CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { makeFolder } from '../files/private-files.ts'
import { note, print, printJson } from '../io.ts'
import { counted, progress } from '../progress.ts'
import { NO_LIMIT } from '../session/admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import {
  findMoment,
  loadingPause,
  openStore,
  withMomentOptions,
  withStoreOptions,
  zxidArgument,
  type MomentFlags,
  type StoreFlags,
} from '../session/backup-store.ts'
import { printTable } from '../text/table.ts'
import { hex } from '../text/hex.ts'

/** `zabra backup`: makes, lists, checks, fetches and removes backups. */
export const backup: CommandModule = (program, context) => {
  const command = program.command('backup').description('back up a server, and check and remove backups')
  const add = (name: string, description: string) =>
    withStoreOptions(command.command(name).description(description))

  withAdminOption(add('now', 'write a snapshot of a server, and the log since the last backup'))
    .option('--log-only', 'write the log since the last backup only')
    .addHelpText('after', NOW_HELP)
    .action((flags: NowFlags) => now(context, flags))
  add('list', 'print the backups').action((flags: StoreFlags) => list(context, flags))
  add('show', 'print a snapshot with the log that belongs to it; the newest by default')
    .argument('[zxid]', 'its zxid, as zabra backup list prints it', zxidArgument)
    .action((zxid: number | undefined, flags: StoreFlags) => show(context, zxid, flags))
  add('verify', 'check the files of all backups: sizes, sums; name gaps in the log')
    .option('--latest', 'check the newest snapshot with its log only')
    .option('--deep', 'also load each snapshot, replay the log, and compare nodes and digests')
    .action((flags: VerifyFlags) => verify(context, flags))
  withMomentOptions(add('get', 'write a backup as the files of a data folder, decrypted'))
    .argument('<folder>', 'a new folder; zabra export --from and zabra log read it, and servers start on it')
    .action((folder: string, flags: StoreFlags & MomentFlags) => get(context, folder, flags))
  add('prune', 'remove the backups that no rule keeps')
    .requiredOption('--retain <rules>', 'what is kept, as AGE:EVERY, such as 24h:all,14d:1d,90d:7d')
    .option('-n, --dry-run', 'print what would be removed')
    .action((flags: PruneFlags) => pruneTarget(context, flags))
}

const NOW_HELP = `
Restores can go back to each moment from the first backup on, as long as the server still has the log
since the last one: run it, or it with --log-only, more often than the server purges its log. Servers
with backup.target in their settings do it themselves.`

interface NowFlags extends StoreFlags, AdminFlags {
  readonly logOnly?: boolean
}

async function now(context: Context, flags: NowFlags): Promise<void> {
  const { io, options } = context
  const store = await openStore(io, flags)
  const admin = openAdmin(context, flags)
  const { version, clusterId, finalizedLevel } = await admin.json<{
    version?: unknown
    clusterId?: unknown
    finalizedLevel?: unknown
  }>('GET', '/api/v1/self')
  const bar = progress(io, 'Backing up', 'bytes')
  const source = httpSource(
    `${String(version).slice(0, 100)} at ${admin.url.host}`,
    async (method, path, request) => {
      const response = await admin.request(method, path, { ...request, limit: NO_LIMIT })
      return { ...response, chunks: counted(response.chunks, bar, ({ length }) => length) }
    },
  )
  const cluster = typeof clusterId === 'string' ? clusterId : undefined
  const level = typeof finalizedLevel === 'number' ? finalizedLevel : undefined
  const written = await writeBackup(
    store,
    { ...source, cluster, level },
    {
      clock: { wall: () => Date.now() },
      compression: io.platform.compression,
      snapshot: flags.logOnly === true ? 'never' : 'always',
      merges: true,
    },
  ).finally(() => bar.stop())
  if (written.log?.merged === true) await removeReplaced(store)
  if (written.hasGap)
    note(
      io,
      'the server had no log since the last backup any more: restores cannot go to a moment between the two. Back up more often, or keep more log (autopurge.snapRetainCount)',
    )
  const { snapshot, log } = written
  if (options().json)
    return printJson(io, {
      snapshot: snapshot === undefined ? null : toJson(snapshot),
      log: log === undefined ? null : toJson(log),
      gap: written.hasGap,
    })
  if (snapshot !== undefined)
    print(io, `snapshot ${hex(snapshot.zxid)}: ${snapshot.nodes} nodes, ${snapshot.piece.bytes} bytes`)
  if (log === undefined) print(io, 'log: nothing new')
  else print(io, `log up to ${hex(log.upTo)}: ${log.transactions} transactions, ${log.piece.bytes} bytes`)
}

/** Removes the parts of the log that larger ones have replaced. */
async function removeReplaced(store: BackupStore): Promise<void> {
  const catalog = await Catalog.read(store)
  await removeBackups(store, catalog.replaced(Date.now()))
}

async function list({ io, options }: Context, flags: StoreFlags): Promise<void> {
  const store = await openStore(io, flags)
  const { url } = store.target
  const { snapshots, logs, bad } = await Catalog.read(store)
  if (options().json) for (const manifest of [...snapshots, ...logs]) printJson(io, toJson(manifest))
  else {
    const rows = [...snapshots, ...logs]
      .toSorted((a, b) => a.time - b.time)
      .map((one) => [
        new Date(one.time).toISOString(),
        one.kind,
        one.kind === 'snapshot' ? hex(one.zxid) : hex(one.first),
        hex(one.kind === 'snapshot' ? one.exactAt : one.upTo),
        String(one.piece.bytes),
        one.key ?? '-',
      ])
    if (rows.length === 0) note(io, `there are no backups in ${url}; zabra backup now makes one`)
    else printTable(io, ['made', 'kind', 'from', 'up to', 'bytes', 'key'], rows)
  }
  failFor(bad.map(({ name, error }) => ({ name, problem: error.message })))
}

async function show({ io, options }: Context, zxid: number | undefined, flags: StoreFlags): Promise<void> {
  const catalog = await readCatalog(io, flags)
  const snapshot = chosen(catalog, zxid)
  const { logs, upTo } = catalog.chainOf(snapshot)
  if (options().json) return printJson(io, { ...toJson(snapshot), upTo: hex(upTo), logs: logs.map(toJson) })
  print(
    io,
    `snapshot  ${hex(snapshot.zxid)}, exact at ${hex(snapshot.exactAt)}`,
    `made      ${new Date(snapshot.time).toISOString()}, by ${snapshot.server}`,
    `ensemble  ${snapshot.cluster ?? 'without an id'}`,
    `level     ${snapshot.level === undefined ? 'none finalized' : snapshot.level}`,
    `nodes     ${snapshot.nodes}`,
    `digest    ${snapshot.digest ?? 'none'}`,
    `file      ${snapshot.piece.name}, ${snapshot.piece.bytes} bytes`,
    `key       ${snapshot.key ?? 'not encrypted'}`,
    `restores  to ${hex(snapshot.exactAt)} and each later transaction up to ${hex(Math.max(upTo, snapshot.exactAt))}`,
  )
  for (const log of logs)
    print(
      io,
      `log       ${hex(log.first)} to ${hex(log.upTo)}, ${new Date(log.firstTime).toISOString()} to ${new Date(log.lastTime).toISOString()}`,
    )
}

interface VerifyFlags extends StoreFlags {
  readonly latest?: boolean
  readonly deep?: boolean
}

async function verify({ io, options }: Context, flags: VerifyFlags): Promise<void> {
  const store = await openStore(io, flags)
  const catalog = await Catalog.read(store)
  const { json } = options()
  const newest = catalog.newestChain()
  const chains = flags.latest ? [newest] : catalog.snapshots.map((snapshot) => catalog.chainOf(snapshot))
  const manifests = flags.latest ? [newest.snapshot, ...newest.logs] : [...catalog.snapshots, ...catalog.logs]
  const found: BackupDefect[] = [
    ...catalog.bad.map(({ name, error }) => ({ name, problem: error.message })),
    ...verifyChain(catalog),
  ]
  let checked = 0
  const bar = progress(io, 'Checking', 'files', manifests.length)
  try {
    for await (const { defect } of counted(verifyPieces(store, manifests), bar)) {
      io.signal.throwIfAborted()
      checked++
      if (defect !== undefined) found.push(defect)
    }
  } finally {
    bar.stop()
  }
  if (flags.deep)
    for (const chain of chains) {
      io.signal.throwIfAborted()
      const { compression } = io.platform
      const { upTo, defect } = await verifyDeep(store, chain, {
        compression,
        pause: loadingPause(io),
        toEnd: chain.snapshot === newest.snapshot,
      })
      if (defect !== undefined) found.push(defect)
      else if (!json) print(io, `snapshot ${hex(chain.snapshot.zxid)} restores up to ${hex(upTo)}`)
    }
  const defects = await present(store, found)
  // All that is there can be used nevertheless.
  const gaps = flags.latest ? [] : catalog.gaps
  for (const { after, before } of gaps)
    note(
      io,
      `moments after ${hex(after)}${before === undefined ? '' : ` and before ${hex(before)}`} cannot be restored: a part of the log is in no backup`,
    )
  if (json)
    printJson(io, {
      files: checked,
      snapshots: chains.length,
      deep: flags.deep === true,
      defects,
      gaps: gaps.map(({ after, before }) => ({
        after: hex(after),
        before: before === undefined ? null : hex(before),
      })),
    })
  else if (defects.length === 0) print(io, `${checked} files are sound`)
  failFor(defects)
}

/** Returns the defects of backups that are still there: servers remove old ones, and parts of the log that they have merged. */
async function present(store: BackupStore, found: readonly BackupDefect[]): Promise<readonly BackupDefect[]> {
  if (found.length === 0) return found
  const { snapshots, logs, bad } = await Catalog.read(store)
  const names = new Set([...[...snapshots, ...logs].map(manifestName), ...bad.map(({ name }) => name)])
  return found.filter(({ name }) => names.has(name))
}

function failFor(defects: readonly BackupDefect[]): void {
  if (defects.length === 0) return
  const shown = defects.map(({ name, problem }) => `${name}: ${problem}`).join(' ')
  throw new Failure(`${defects.length} of the backups cannot be used. ${shown}`, ExitCode.damagedFile)
}

async function get({ io, options }: Context, folder: string, flags: StoreFlags & MomentFlags): Promise<void> {
  const store = await openStore(io, flags)
  const { chain, upTo } = await findMoment(store, flags)
  const path = join(folder, VERSION_FOLDER)
  await rejectFiles(path)
  const files: BackupFile[] = [
    { name: chain.snapshot.file, manifest: chain.snapshot },
    ...(await logFilesOf(store, chain, upTo)),
  ]
  await rejectDefects(io, store, files)
  await makeFolder(folder, 0o700)
  // Under another name until all of it is there: a part of a backup would be taken for data.
  const partial = await mkdtemp(join(folder, 'partial-'))
  try {
    for (const file of files) await fetchPiece(io, await openFile(store, file), join(partial, file.name))
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    throw error
  }
  if (options().json) printJson(io, { folder, files: files.map(({ name }) => name), upTo: hex(upTo) })
  else print(io, ...files.map(({ name }) => join(path, name)))
}

/** A file of a data folder that a backup gives. */
type BackupFile = Awaited<ReturnType<typeof logFilesOf>>[number]

/** Rejects with a `Failure` where a piece of a backup is not as it was written: its copy would be taken for data. */
async function rejectDefects(
  io: Context['io'],
  store: BackupStore,
  files: readonly BackupFile[],
): Promise<void> {
  const bar = progress(io, 'Checking', 'files', files.length)
  try {
    const manifests = files.map(({ manifest }) => manifest)
    for await (const { defect } of counted(verifyPieces(store, manifests), bar)) {
      io.signal.throwIfAborted()
      if (defect !== undefined) failFor([defect])
    }
  } finally {
    bar.stop()
  }
}

/** Rejects with a `UsageError` where a folder has files. */
async function rejectFiles(path: string): Promise<void> {
  const [name] = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (name !== undefined) throw new UsageError(`${join(path, name)} exists already. Name a new folder.`)
}

async function fetchPiece({ signal }: Context['io'], reader: DiskReader, path: string): Promise<void> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true })
  try {
    await pipeline(copies(chunksOf(reader)), file, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    throw new Failure(
      `Cannot write to ${path} (${code}). Make room, or name another folder.`,
      ExitCode.unexpected,
    )
  }
}

/** Yields chunks that a stream may keep. */
async function* copies(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield chunk.slice()
}

interface PruneFlags extends StoreFlags {
  readonly retain: string
  readonly dryRun?: boolean
}

async function pruneTarget({ io, options }: Context, flags: PruneFlags): Promise<void> {
  const store = await openStore(io, flags)
  const found = await findPrunable(store, await Catalog.read(store), parseRetention(flags.retain), Date.now())
  if (!flags.dryRun) await prune(store, found)
  const names = [...found.manifests, ...found.pieces, ...found.unfinished]
  if (options().json) return printJson(io, { removed: flags.dryRun ? [] : names, expired: names })
  const verb = flags.dryRun ? 'would remove' : 'removed'
  print(io, ...names.map((name) => `${verb} ${name}`))
  if (names.length === 0) print(io, 'nothing to remove')
}

// Catalog

const readCatalog = async (io: Context['io'], flags: StoreFlags): Promise<Catalog> =>
  Catalog.read(await openStore(io, flags))

function chosen(catalog: Catalog, zxid: number | undefined): SnapshotManifest {
  if (zxid === undefined) return catalog.newestChain().snapshot
  const found = catalog.snapshots.find((one) => one.zxid === zxid)
  if (found !== undefined) return found
  throw new Failure(
    `There is no snapshot ${hex(zxid)}. zabra backup list shows those that there are.`,
    ExitCode.noNode,
  )
}

const toJson = (manifest: Manifest): Record<string, unknown> => ({
  manifest: manifestName(manifest),
  ...Object.fromEntries(
    Object.entries(manifest).map(([name, value]) => [
      name,
      ZXID_FIELDS.has(name)
        ? hex(value as number)
        : name.toLowerCase().endsWith('time')
          ? new Date(value as number).toISOString()
          : value,
    ]),
  ),
})
