import { formatZxid } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import {
  ConfigurationError,
  parseConfiguration,
  printDynamicFile,
  sameMembership,
  type EnsembleConfiguration,
} from '../core/quorum/index.ts'

/** The configurations that a member starts with. */
export interface StoredConfigurations {
  readonly active: EnsembleConfiguration
  /** One that was proposed, and that nobody here knows to be committed. */
  readonly proposed?: EnsembleConfiguration
}

/** ZooKeeper's name for these files, so that a `dynamicConfigFile` of its own can point to them. */
const NAME = 'zoo.cfg.dynamic'
const pattern = /^zoo\.cfg\.dynamic\.([\da-f]{1,13})$/

/**
 * Who belongs to the ensemble: what the operator has written, until a reconfiguration was committed. Files of those lie
 * in `folder`, beside `myid`; what the operator has written is never touched. Throws a `ConfigurationError` when a file
 * cannot be read as one.
 */
export async function loadConfigurations(
  disk: Disk,
  folder: string,
  written: EnsembleConfiguration,
  logger: Logger,
): Promise<StoredConfigurations> {
  const names = (await disk.exists(folder)) ? await disk.list(folder) : []
  const versions = names.map((name) => pattern.exec(name)?.[1]).filter((version) => version !== undefined)
  const newest = Math.max(-1, ...versions.map((version) => Number.parseInt(version, 16)))
  const stored = newest > written.version ? await read(disk, nameOf(folder, newest), newest) : undefined
  if (stored !== undefined && !sameMembership(stored, written))
    logger.warn(
      { file: nameOf(folder, newest), version: formatZxid(newest) },
      'The members in the configuration file are older than those that a reconfiguration has made; the newer ones count',
    )
  const active = stored ?? written
  if (!names.includes(`${NAME}.next`)) return { active }
  const proposed = await read(disk, `${folder}/${NAME}.next`)
  return proposed.version > active.version ? { active, proposed } : { active }
}

/** Keeps a configuration that was proposed. It is durable when this resolves. */
export async function writeProposed(
  disk: Disk,
  folder: string,
  configuration: EnsembleConfiguration,
): Promise<void> {
  await write(disk, `${folder}/${NAME}.next`, printDynamicFile(configuration, { proposed: true }))
}

/** Keeps a configuration that is in force, and drops a proposal that it has overtaken. It is durable when this resolves. */
export async function writeActive(
  disk: Disk,
  folder: string,
  configuration: EnsembleConfiguration,
): Promise<void> {
  // A version of 0 is what the operator has written; a file of it would hide later changes of theirs.
  if (configuration.version > 0)
    await write(disk, nameOf(folder, configuration.version), printDynamicFile(configuration))
  const next = `${folder}/${NAME}.next`
  if (!(await disk.exists(next))) return
  if ((await read(disk, next)).version > configuration.version) return
  await disk.remove(next)
  await disk.syncFolder(folder)
}

const nameOf = (folder: string, version: number): string => `${folder}/${NAME}.${formatZxid(version)}`

async function read(disk: Disk, path: string, version?: number): Promise<EnsembleConfiguration> {
  const text = new TextDecoder().decode(await disk.readFile(path))
  try {
    return parseConfiguration(text, version)
  } catch (cause) {
    if (!(cause instanceof ConfigurationError)) throw cause
    throw new ConfigurationError(0, `${path}: ${cause.message} Correct the file, or remove it`, { cause })
  }
}

function write(disk: Disk, path: string, text: string): Promise<void> {
  return disk.replaceFile(path, new TextEncoder().encode(text))
}
