import { silentLogger, type Compression, type Disk } from '@zabra/runtime'
import {
  DamageError,
  readDatabase,
  readFeatureState,
  RecoveryError,
  VERSION_FOLDER,
} from '@zabra/server/files'
import { rows } from '@zabra/server/settings'
import { basename } from 'node:path'
import { kindOf } from '../files/read-nodes.ts'
import { valuesIn } from '../files/zoo-cfg.ts'
import { finding, type Finding } from './finding.ts'

/** What Apache ZooKeeper takes for the longest value in a file, in bytes: `jute.maxbuffer`, and as much again. */
const JUTE_MAX = 0xfffff
const DYNAMIC = /^zoo\.cfg\.dynamic\.([\da-f]{1,13})$/
/** Files with which a Zabra server holds a member back, and which Apache ZooKeeper does not look at. */
const HELD_BACK = ['distrusted', 'replacement']
export interface DowngradeTools {
  readonly disk: Disk
  readonly compression: Compression
  /** The `zoo.cfg` of the server; undefined where it is not given. */
  readonly config?: { readonly file: string; readonly text: string } | undefined
}

/** Finds what Apache ZooKeeper, or an earlier release, could not read in the folders of a server, or would do otherwise. */
export async function* checkDowngrade(
  dataDir: string,
  dataLogDir: string,
  { disk, compression, config }: DowngradeTools,
): AsyncGenerator<Finding> {
  const folder = `${dataDir}/${VERSION_FOLDER}`
  const names = await disk.list(folder).catch(() => undefined)
  if (names === undefined)
    return yield finding('no-data', folder, 'there is no such folder', 'Name the dataDir of the server.')
  const given = config && valuesIn(config.text)
  yield* checkLevel(disk, folder)
  for (const name of HELD_BACK)
    if (names.includes(name))
      yield finding(
        'downgrade-held',
        `${folder}/${name}`,
        'this member must not vote with its data yet, which Apache ZooKeeper does not know',
        'Start Zabra on the folder until /readyz answers 200, and stop it again.',
      )
  yield* checkMembers(dataDir, (await disk.list(dataDir)).toSorted(), given)
  if (config !== undefined) yield* checkKeys(config.file, given!)
  yield* checkNodes({ dataDir, dataLogDir }, { disk, compression }, given)
}

async function* checkLevel(disk: Disk, folder: string): AsyncGenerator<Finding> {
  try {
    const { finalized, proposed } = await readFeatureState(disk, folder)
    if (finalized + proposed === 0) return
    const level = Math.max(finalized, proposed)
    yield finding(
      'downgrade-level',
      folder,
      `feature level ${level} ${proposed > finalized ? 'was asked for' : 'is finalized'}: Apache ZooKeeper and releases below that level must not start on it`,
      'There is no way back but a backup of before: zabra restore --to a new folder of each member.',
    )
  } catch (error) {
    if (!(error instanceof RecoveryError)) throw error
    yield finding('level-file', folder, error.message, error.action)
  }
}

/** Apache ZooKeeper reads the members in the file that `dynamicConfigFile` names, or in `zoo.cfg`, and looks for no newer one. */
function* checkMembers(
  dataDir: string,
  names: readonly string[],
  given: ReadonlyMap<string, string> | undefined,
): Generator<Finding> {
  const versions = names.flatMap((name) => DYNAMIC.exec(name)?.[1] ?? [])
  if (versions.length === 0) return
  const newest = versions.reduce((a, b) => (Number.parseInt(b, 16) > Number.parseInt(a, 16) ? b : a))
  const path = `${dataDir}/zoo.cfg.dynamic.${newest}`
  const named = given?.get('dynamicConfigFile')
  if (named !== undefined && basename(named) === basename(path)) return
  yield finding(
    'downgrade-members',
    path,
    given === undefined
      ? 'the members were changed; Apache ZooKeeper reads this file only where zoo.cfg names it'
      : `the members were changed, and zoo.cfg names ${named ?? 'no dynamicConfigFile'}`,
    `Set dynamicConfigFile=${path} in zoo.cfg, and remove its server.N lines, unless they are the same.`,
  )
}

function* checkKeys(file: string, given: ReadonlyMap<string, string>): Generator<Finding> {
  if (given.has('quorumSecretFile') || given.has('quorumSecret'))
    yield finding(
      'downgrade-secret',
      file,
      'the members have a secret, which Apache ZooKeeper does not know: members with and without it refuse each other',
      'Stop all members, remove quorumSecretFile from each, and start them again; or use TLS between members.',
    )
  const own = new Set(Object.values(rows).flatMap((row) => (row.isOwn === true ? [row.key] : [])))
  const used = [...given.keys()].filter((key) => own.has(key)).toSorted()
  if (used.length > 0)
    yield finding(
      'downgrade-settings',
      file,
      `Apache ZooKeeper ignores ${used.join(', ')}`,
      'See what of that is to be done otherwise, such as backups and access to the HTTP port.',
    )
}

async function* checkNodes(
  location: { readonly dataDir: string; readonly dataLogDir: string },
  { disk, compression }: Pick<DowngradeTools, 'disk' | 'compression'>,
  given: ReadonlyMap<string, string> | undefined,
): AsyncGenerator<Finding> {
  const where = `${location.dataDir}/${VERSION_FOLDER}`
  let [ttl, largest, path] = [0, 0, '']
  try {
    const database = await readDatabase(disk, location, compression, silentLogger)
    for (const node of database.nodes()) {
      if (kindOf(node.stat.owner).kind === 'ttl') ttl++
      const { length } = node.data ?? new Uint8Array(0)
      if (length > largest) [largest, path] = [length, node.path]
    }
  } catch (error) {
    if (!(error instanceof DamageError) && !(error instanceof RecoveryError)) throw error
    return yield finding('log', where, error.message, 'zabra doctor --data shows more.')
  }
  if (ttl > 0 && given?.get('extendedTypesEnabled') !== 'true')
    yield finding(
      'downgrade-types',
      where,
      `${ttl} ${ttl === 1 ? 'node has a time' : 'nodes have times'} to live, which Apache ZooKeeper takes for ephemeral ones without extendedTypesEnabled=true`,
      'Set extendedTypesEnabled=true in zoo.cfg.',
    )
  const limit = 2 * Number(given?.get('jute.maxbuffer') ?? JUTE_MAX)
  if (largest > limit)
    yield finding(
      'downgrade-large',
      path,
      `it has ${largest} bytes: Apache ZooKeeper reads values of up to ${limit} from its files`,
      `Start it with -Djute.maxbuffer=${largest} or more.`,
    )
}
