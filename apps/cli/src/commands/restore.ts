import { ownerKind, ttlOf } from '@zabra/protocol'
import {
  loadBackup,
  nodesOf,
  restoreFolder,
  writeSnapshotFile,
  type LoadedBackup,
} from '@zabra/server/backup'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { nodePath } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { UnreadableNodes } from '../context.ts'
import { ExitCode, Failure, hasCode, UsageError } from '../exit-codes.ts'
import { ErrorCode } from '@zabra/protocol'
import { note, print, printJson } from '../io.ts'
import { counted, progress } from '../progress.ts'
import type { AdminClient } from '../session/admin-client.ts'
import { openAdmins, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import {
  findMoment,
  loadingPause,
  openStore,
  withMomentOptions,
  withStoreOptions,
  type Moment,
  type MomentFlags,
  type StoreFlags,
} from '../session/backup-store.ts'
import type { Client } from '@zabra/client'
import type { ExportedNodeLine } from '../session/export-file.ts'
import { readIdentities } from '../session/identities.ts'
import { planImport, type ImportPlan } from '../session/import-plan.ts'
import { runImport } from '../session/import-run.ts'
import { isReserved } from '../session/paths.ts'
import { readSubtree } from '../session/subtree.ts'
import { fromStoredAcl } from '../text/acl.ts'
import { safeLine } from '../text/bytes.ts'
import { hex } from '../text/hex.ts'

/** The time between two questions whether data are replaced, in milliseconds. */
const POLL_MS = 250
/** How long several servers are asked which of them leads, in milliseconds. */
const LEADER_WITHIN_MS = 60_000
/** How often a replacement is tried at the next leader, where the one before lost an election. */
const ATTEMPTS = 3

interface Flags extends StoreFlags, MomentFlags, AdminFlags {
  readonly to?: string
  readonly replace?: boolean
  readonly yes?: boolean
  readonly logs?: string
  readonly keepSessions?: boolean
  readonly path?: string
  readonly delete?: boolean
  readonly dryRun?: boolean
}

/** `zabra restore`: makes a data folder of a backup, replaces the data of running servers, or brings a subtree back on them. */
export const restore: CommandModule = (program, context) => {
  const command = program.command('restore')
  command.description(
    'make a data folder of a backup, replace all data of running servers, or bring a subtree back on them',
  )
  withAdminOption(withMomentOptions(withStoreOptions(command)))
    .option('--to <folder>', 'write a data folder (dataDir), which must hold no data')
    .option('--logs <folder>', 'with --to: the folder of the logs (dataLogDir), where that is another one')
    .option('--keep-sessions', 'with --to: keep sessions and ephemeral nodes, which are dropped otherwise')
    .option(
      '--replace',
      'replace all data of the ensemble that the server of --admin leads, or of a standalone server; ends all sessions',
    )
    .option('--yes', 'with --replace: do it; it is explained only otherwise')
    .option(
      '--path <path>',
      'bring back this subtree, by ordinary requests to the server of --server',
      nodePath,
    )
    .option('--delete', 'with --path: also delete nodes that the backup lacks, but for ephemeral ones')
    .option('-n, --dry-run', 'print what would be done')
    .addHelpText('after', HELP)
    .action(async (flags: Flags) => {
      const modes = (['to', 'replace', 'path'] as const).filter((name) => flags[name] !== undefined)
      if (modes.length !== 1)
        throw new UsageError(
          `Expected --to with a data folder, --replace, or --path with a subtree, got ${modes.length === 0 ? 'none of them' : modes.map((name) => `--${name}`).join(' and ')}. Give one of them.`,
        )
      if (flags.path !== undefined && isReserved(flags.path))
        throw new UsageError(
          `${flags.path} belongs to the server and cannot be restored. Name another subtree.`,
        )
      for (const [name, option, mode] of OPTIONS_OF_MODES)
        if (flags[name] !== undefined && flags[mode] === undefined)
          throw new UsageError(`${option} belongs to --${mode}: give it too, or leave ${option} out.`)
      const { io } = context
      const store = await openStore(io, flags)
      const moment = await findMoment(store, flags)
      const { compression } = io.platform
      const logger = { error() {}, info() {}, debug() {}, warn: (_: object, text: string) => note(io, text) }
      note(io, `reading the backup up to ${hex(moment.upTo)}`)
      const pause = loadingPause(io)
      const loaded = await loadBackup(store, moment.chain, moment.upTo, { compression, logger, pause })
      if (flags.to !== undefined) await restoreTo(context, flags.to, flags, moment, loaded)
      else if (flags.replace === true) await replaceData(context, flags, moment, loaded)
      else await restoreSubtree(context, flags.path!, flags, loaded)
    })
}

/** Options that mean something with one of `--to` and `--path` alone. */
const OPTIONS_OF_MODES = [
  ['keepSessions', '--keep-sessions', 'to'],
  ['logs', '--logs', 'to'],
  ['delete', '--delete', 'path'],
] as const

const HELP = `
Without --at, --zxid or --before it takes the end of the last backup. A folder of --to is that of a new
server: its zxids go on in an epoch above all that the backups have seen. For an ensemble that does not
run, restore to every member before the first one starts; --replace restores to one that runs, through
its leader. Where --admin names several servers, separated by commas, it finds the leader, and tries
again at the next one if that loses the election before the data are replaced.`

// A data folder

async function restoreTo(
  { io, options }: Context,
  dataDir: string,
  { logs: dataLogDir = dataDir, keepSessions = false, dryRun }: Flags,
  { catalog, upTo }: Moment,
  loaded: LoadedBackup,
): Promise<void> {
  const { disk, compression } = io.platform
  const summary = {
    upTo: hex(upTo),
    nodes: loaded.tree.nodeCount,
    sessions: loaded.sessions.size,
  }
  if (dryRun) {
    if (options().json) return printJson(io, summary)
    return print(
      io,
      `would write ${summary.nodes} nodes as of ${summary.upTo} to ${dataDir}${keepSessions ? '' : `, and end ${summary.sessions} sessions`}`,
    )
  }
  const result = await restoreFolder(loaded, {
    disk,
    compression,
    dataDir,
    dataLogDir,
    keepSessions,
    lastSeen: Math.max(upTo, catalog.end?.upTo ?? 0),
    now: Date.now(),
  })
  const zxid = hex(result.zxid)
  if (options().json) return printJson(io, { ...summary, ...result, zxid })
  print(
    io,
    `${dataDir}: ${result.nodes} nodes as of ${summary.upTo}; the last transaction is ${zxid} now`,
    ...(result.closedSessions === 0
      ? []
      : [`ended ${result.closedSessions} sessions, with their ephemeral nodes`]),
  )
}

// All data of running servers

async function replaceData(
  context: Context,
  flags: Flags,
  { upTo }: Moment,
  loaded: LoadedBackup,
): Promise<void> {
  const { io, options } = context
  const admins = openAdmins(context, flags)
  const summary = { upTo: hex(upTo), nodes: loaded.tree.nodeCount }
  if (flags.yes !== true || flags.dryRun === true) {
    if (options().json) return printJson(io, summary)
    return print(
      io,
      `would replace all data of ${admins.map(({ url }) => url.host).join(', ')} and its ensemble by ${summary.nodes} nodes as of ${summary.upTo}: what was written since is lost, and every session ends. --yes does it.`,
    )
  }
  const folder = await mkdtemp(join(tmpdir(), 'zabra-restore-'))
  try {
    const file = await writeSnapshotFile(loaded, folder, io.platform)
    const zxid = await replaceBy(context, admins, { ...file, level: loaded.level })
    if (options().json) return printJson(io, { ...summary, zxid })
    print(
      io,
      `${summary.nodes} nodes as of ${summary.upTo} are the data now; the last transaction is ${zxid}`,
    )
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A snapshot that replaces the data, and the feature level that a server needs for it. */
interface SnapshotToSend {
  readonly path: string
  readonly bytes: number
  readonly level: number
}

/** Replaces the data by a file, at the leader; at the next one where that loses an election. Resolves to the last transaction. */
async function replaceBy(
  context: Context,
  admins: readonly AdminClient[],
  { path, bytes, level }: SnapshotToSend,
): Promise<string> {
  const { io } = context
  // Servers from before feature levels refuse no query.
  const route = `/api/v1/restore${level === 0 ? '' : `?level=${level}`}`
  for (let attempt = 1; ; attempt++) {
    const admin = await leaderOf(context, admins)
    const bar = progress(io, 'Sending', 'bytes', bytes)
    const chunks = counted(createReadStream(path) as AsyncIterable<Uint8Array>, bar, ({ length }) => length)
    await admin.json('POST', route, { content: { bytes, chunks } }).finally(() => bar.stop())
    const outcome = await untilRestored(context, admin)
    if (outcome.state === 'done') return outcome.zxid!
    const text = `The data are not replaced. ${outcome.problem}`
    if (outcome.again !== true || admins.length === 1 || attempt === ATTEMPTS)
      throw new Failure(text, ExitCode.refused)
    note(io, `${text} Trying again`)
  }
}

/** Resolves to the server that leads, or that stands alone; to the only one without a question. */
async function leaderOf({ io }: Context, admins: readonly AdminClient[]): Promise<AdminClient> {
  if (admins.length === 1) return admins[0]!
  const until = performance.now() + LEADER_WITHIN_MS
  for (;;) {
    const answers = await Promise.all(
      admins.map((admin) =>
        admin.json<{ role: string }>('GET', '/api/v1/self').catch((error: unknown) => error as Error),
      ),
    )
    const at = answers.findIndex((answer) => 'role' in answer && /^(?:leading|standalone)$/.test(answer.role))
    if (at !== -1) return admins[at]!
    const problem = answers.find(
      (answer) => answer instanceof Failure && answer.exitCode === ExitCode.noPermission,
    )
    if (problem !== undefined) throw problem as Failure
    if (performance.now() > until)
      throw new Failure(
        `None of ${admins.map(({ url }) => url.host).join(', ')} leads: ${answers.map((answer) => ('role' in answer ? answer.role : answer.message)).join('; ')}`,
        ExitCode.refused,
      )
    await setTimeout(POLL_MS, undefined, { signal: io.signal })
  }
}

interface Outcome {
  readonly state: string
  readonly zxid?: string
  readonly problem?: string
  readonly again?: boolean
}

/** Waits until a server has replaced the data, or has not. Rejects with a `Failure` where that is not known. */
async function untilRestored({ io }: Context, admin: AdminClient): Promise<Outcome> {
  const advice = 'Look at the data and at zabra cluster status, and run the command again if needed.'
  for (;;) {
    const outcome = await admin.json<Outcome>('GET', '/api/v1/restore').catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Failure(`${reason} The outcome is unknown. ${advice}`, ExitCode.connection, { cause })
    })
    const { state, problem } = outcome
    if (state === 'done' || state === 'failed') return outcome
    if (state === 'unknown')
      throw new Failure(`The outcome is unknown. ${problem} ${advice}`, ExitCode.connection)
    if (state !== 'running')
      throw new Failure(
        `${admin.url.host} was restarted, and the outcome is unknown. ${advice}`,
        ExitCode.connection,
      )
    await setTimeout(POLL_MS, undefined, { signal: io.signal })
  }
}

// A subtree

async function restoreSubtree(
  context: Context,
  path: string,
  flags: Flags,
  { tree }: LoadedBackup,
): Promise<void> {
  const { io, options, session } = context
  const nodes = [...subtreeOf(tree, path)]
  if (nodes.length === 0) throw new Failure(`${path} is not in the backup at that moment.`, ExitCode.noNode)
  const readData = async ({ path: at }: ExportedNodeLine): Promise<Uint8Array | null> =>
    tree.dataOf(tree.find(at))
  const unreadable = new UnreadableNodes(io)
  const known = new Set(nodes.map((node) => node.path))
  await session(
    async (zk) => {
      const identities = await readIdentities(zk, options().auth)
      const plan = await planImport(zk, nodes, readData, 'replace', identities)
      const extra = flags.delete ? await extraNodes(zk, path, known, io.signal, unreadable) : []
      unreadable.failIfAny()
      report(context, plan, extra, flags.dryRun === true)
      if (flags.dryRun) return
      const bar = progress(io, 'Restoring', 'nodes', plan.create.length + plan.replace.length)
      try {
        await runImport(zk, plan, {
          identities,
          readData,
          signal: io.signal,
          onProgress: (done) => bar.update(done),
          onLowSequence: (at, sequence) =>
            note(
              io,
              `${at}: new sequential children get numbers below ${sequence}: raising them takes too long, or this client may not`,
            ),
          onRollback: (count) => note(io, `rolling back: deleting the ${count} nodes created so far`),
        })
        for (const at of extra.toReversed()) await zk.delete(at).catch(ignoreInUse(at))
      } finally {
        bar.stop()
      }
    },
    { handlesAbort: true },
  )

  function ignoreInUse(at: string): (error: unknown) => void {
    return (error) => {
      if (hasCode(error, ErrorCode.NONODE)) return
      if (!hasCode(error, ErrorCode.NOTEMPTY)) throw error
      note(io, `${at} stays: it has children, ephemeral ones or new ones`)
    }
  }
}

/** Yields the nodes of a subtree but for ephemeral ones, which belong to sessions. */
function* subtreeOf(tree: LoadedBackup['tree'], root: string): Generator<ExportedNodeLine> {
  for (const { path, acl, stat, children } of nodesOf(tree)) {
    if (!(root === '/' || path === root || path.startsWith(`${root}/`)) || isReserved(path)) continue
    const kind = ownerKind(stat.owner, { extendedTypes: true })
    if (kind === 'ephemeral') continue
    yield {
      path,
      acl: fromStoredAcl(acl),
      ...(kind === 'container' ? { kind } : {}),
      ...(kind === 'ttl' ? { kind, ttl: ttlOf(stat.owner) } : {}),
      ...(stat.cversion > children ? { sequence: stat.cversion } : {}),
      at: 0,
      length: 0,
    }
  }
}

/** Returns nodes of the server that the backup lacks, parents first. */
async function extraNodes(
  zk: Client,
  root: string,
  known: ReadonlySet<string>,
  signal: AbortSignal,
  unreadable: UnreadableNodes,
): Promise<string[]> {
  if ((await zk.exists(root)) === undefined) return []
  const extra: string[] = []
  for await (const { path } of readSubtree(zk, root, signal, unreadable.add)) {
    const at = root === '/' ? path : path === '/' ? root : root + path
    if (!known.has(at) && at !== '/') extra.push(at)
  }
  return extra
}

function report(
  { io, options }: Context,
  plan: ImportPlan,
  extra: readonly string[],
  isDryRun: boolean,
): void {
  const { create, replace, restore: close, keep, parents } = plan
  if (options().json)
    return printJson(io, {
      create: [...parents, ...create.map(({ path }) => path)],
      set: [...replace, ...close].map(({ path }) => path),
      delete: extra,
      unchanged: keep.length,
    })
  if (!isDryRun)
    return print(
      io,
      `creating ${create.length + parents.length}, setting ${replace.length + close.length}, deleting ${extra.length}, leaving ${keep.length} unchanged`,
    )
  print(
    io,
    ...parents.map((path) => `+ ${safeLine(path)} (empty parent)`),
    ...create.map(({ path }) => `+ ${safeLine(path)}`),
    ...[...replace, ...close].map(({ path }) => `~ ${safeLine(path)}`),
    ...extra.toReversed().map((path) => `- ${safeLine(path)}`),
  )
}
