import { DiskError } from '@zabra/runtime'
import { VERSION_FOLDER } from '@zabra/server/files'
import { loadSettings, rowOf, type Environment, type LoadedSettings } from '@zabra/server/settings'
import { lookup } from 'node:dns/promises'
import { stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import { readTextArg } from '../arguments.ts'
import type { Io } from '../io.ts'
import { checkAgreement, commonSettings, type MemberSettings } from './check-agreement.ts'
import { checkConfiguration } from './check-configuration.ts'
import { checkData, lockOwner } from './check-data.ts'
import { checkNetwork, type NetworkTools } from './check-network.ts'
import { finding, type Finding } from './finding.ts'
import { interfaceTo } from './interface-to.ts'
import { readIfExists } from './machine-facts.ts'
import { checkSyncs, measureSyncs } from './sync-benchmark.ts'

const CONNECT_TIMEOUT_MS = 3000
/** How long the speed of a disk is measured, in seconds. */
const SYNC_SECONDS = 5

/** Examines configurations: the first one is that of this machine, the others are those of other members. */
export async function* examineConfigurations(
  { disk }: Pick<Io['platform'], 'disk'>,
  [own = '', ...others]: readonly string[],
): AsyncGenerator<Finding> {
  const loaded = loadConfiguration(own)
  yield* checkConfiguration(own, loaded)
  const { settings } = loaded
  if (settings !== undefined) {
    // Loaded with the first configuration: the code of the server takes its time.
    const [{ checkTls }, { checkFiles, openSecretFiles }] = await Promise.all([
      import('./check-tls.ts'),
      import('@zabra/server/core'),
    ])
    yield* checkTls(settings, Date.now())
    // Without networks: files of tokens and secrets; those for TLS are looked at above.
    for (const { name, text } of await checkFiles(settings, { disk }))
      yield finding('configuration', own, `${rowOf(name).key}: ${text}`, 'Mend what the message names.')
    for (const { key, path, evidence, command } of await openSecretFiles(settings, disk))
      yield finding('secret-file', path, `${key}: ${evidence}`, `Run ${command} as its owner.`)
    if (settings.ensemble !== undefined)
      yield* checkNetwork(own, settings.ensemble, settings.serverId, network)
  }
  const members: MemberSettings[] =
    settings === undefined ? [] : [{ where: own, settings: commonSettings(settings) }]
  for (const file of others) {
    const other = loadConfiguration(file, {}, { isElsewhere: true })
    yield* checkConfiguration(file, other)
    if (other.settings !== undefined) members.push({ where: file, settings: commonSettings(other.settings) })
  }
  yield* checkAgreement(members)
}

/** Examines a data folder, and measures its disk for `syncSeconds` where no server uses it. */
export async function* examineData(
  io: Io,
  data: string,
  logs: string,
  syncSeconds: number | undefined,
): AsyncGenerator<Finding> {
  const { disk, compression, system } = io.platform
  const [dataDir, dataLogDir] = [resolve(data), resolve(logs)]
  const processIdentity = (pid: number): string | undefined => system.processIdentity(pid)
  let isThere = true
  for await (const found of checkData(dataDir, dataLogDir, {
    disk,
    compression,
    mounts: readIfExists('/proc/mounts'),
    deviceOf: async (folder) => (await stat(folder).catch(() => undefined))?.dev,
    memoryLimit: system.memoryLimits?.().process,
    now: Date.now(),
    processIdentity,
  })) {
    isThere &&= found.id !== 'no-data'
    yield found
  }
  if (!isThere || syncSeconds === 0) return
  const owner = await lockOwner(disk, dataLogDir, processIdentity)
  if (owner !== undefined && syncSeconds === undefined)
    return yield notMeasured(
      dataLogDir,
      `process ${owner} runs a server on it, which the measurement would slow`,
    )
  try {
    const now = (): number => performance.now()
    const seconds = syncSeconds ?? SYNC_SECONDS
    yield* checkSyncs(
      dataLogDir,
      await measureSyncs({
        disk,
        folder: `${dataLogDir}/${VERSION_FOLDER}`,
        seconds,
        now,
        signal: io.signal,
      }),
    )
  } catch (cause) {
    if (!(cause instanceof DiskError)) throw cause
    yield notMeasured(dataLogDir, cause.message)
  }
}

const notMeasured = (folder: string, reason: string): Finding =>
  finding(
    'sync-not-measured',
    folder,
    `how fast its disk syncs was not measured: ${reason}`,
    'zabra_fsync_seconds of a running server tells it. To measure all the same: --sync-seconds 5, as a user who may write there.',
  )

const network: NetworkTools = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  connect: (host, port) =>
    new Promise((opened, failed) => {
      const begun = performance.now()
      const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
      socket.once('connect', () => (socket.destroy(), opened(performance.now() - begun)))
      socket.once('timeout', () => socket.destroy(new Error(`no answer within ${CONNECT_TIMEOUT_MS} ms`)))
      socket.once('error', failed)
    }),
  interfaceTo,
}

/**
 * Loads a configuration as a server would. Of a member that is elsewhere, the id is that of any member: `myid` is on its machine. Throws
 * a `UsageError` when the file cannot be read.
 */
export function loadConfiguration(
  name: string,
  environment: Environment = {},
  { isElsewhere = false } = {},
): LoadedSettings {
  const text = readTextArg(name)
  const anyId = /^\s*server\.(\d+)\s*=/m.exec(text)?.[1]
  const read = (path: string): string | undefined =>
    isElsewhere && path.endsWith('/myid') ? anyId : readIfExists(path)
  return loadSettings({
    file: { name, text },
    environment,
    files: { read, resolve: (path) => resolve(path) },
  })
}
