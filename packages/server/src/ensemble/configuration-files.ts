import { formatZxid } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import {
  ConfigurationError,
  parseConfiguration,
  printDynamicFile,
  sameMembership,
  type EnsembleConfiguration,
} from '../core/quorum/index.ts'

/** The configurations with which a member starts. */
export interface StoredConfigurations {
  readonly active: EnsembleConfiguration
  /** A newer configuration that was proposed and is not known to be committed. */
  readonly proposed?: EnsembleConfiguration
}

/** The name that Apache ZooKeeper uses, so that its `dynamicConfigFile` can point to these files. */
const NAME = 'zoo.cfg.dynamic'
const pattern = /^zoo\.cfg\.dynamic\.([\da-f]{1,13})$/

/**
 * Loads the configurations of a member: the operator's one, unless a newer one is stored. The files of reconfigurations lie
 * in `folder`, beside `myid`; the operator's file is never written. Rejects with a `ConfigurationError` when a file cannot be read as a
 * configuration.
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
      'The members in the configuration file are older than those of a reconfiguration; the newer ones are used',
    )
  const active = stored ?? written
  if (!names.includes(`${NAME}.next`)) return { active }
  const proposed = await read(disk, `${folder}/${NAME}.next`)
  return proposed.version > active.version ? { active, proposed } : { active }
}

/** Writes a proposed configuration. Resolves when it is durable. */
export async function writeProposed(
  disk: Disk,
  folder: string,
  configuration: EnsembleConfiguration,
): Promise<void> {
  await write(disk, `${folder}/${NAME}.next`, printDynamicFile(configuration, { proposed: true }))
}

/** Writes the active configuration, and removes a proposed one that is not newer. Resolves when this is durable. */
export async function writeActive(
  disk: Disk,
  folder: string,
  configuration: EnsembleConfiguration,
): Promise<void> {
  // Version 0 is the operator's configuration; a file with it would hide later edits of the operator's file.
  if (configuration.version > 0)
    await write(disk, nameOf(folder, configuration.version), printDynamicFile(configuration))
  const next = `${folder}/${NAME}.next`
  if ((await disk.exists(next)) && (await read(disk, next)).version <= configuration.version)
    await removeProposed(disk, folder)
}

/** Removes the proposed configuration, if there is one. Resolves when this is durable. */
export async function removeProposed(disk: Disk, folder: string): Promise<void> {
  const next = `${folder}/${NAME}.next`
  if (!(await disk.exists(next))) return
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
