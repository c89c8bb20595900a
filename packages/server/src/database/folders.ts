import type { Platform } from '@zabra/runtime'
import { Tree } from '../core/tree/index.ts'
import { lockFolder, type RecoveryOptions } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'

/** The folders of a server, taken for this process. */
interface LockedFolders {
  /** A secret of this run. */
  readonly token: string
  /** Gives them back. */
  readonly unlock: () => Promise<void>
}

/** Takes the folders of a server for this process. */
export async function lockFolders(
  settings: ServerSettings,
  { disk, random, system }: Platform,
): Promise<LockedFolders> {
  const folders = new Set([settings.dataDir, settings.dataLogDir])
  const token = [...random.bytes(8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const unlocks: (() => Promise<void>)[] = []
  const unlock = async (): Promise<void> => {
    for (const one of unlocks.reverse()) await one()
  }
  try {
    for (const folder of folders) {
      if (settings.autoCreateDataDir) await disk.makeFolder(folder)
      unlocks.push(await lockFolder(disk, folder, system, token))
    }
    return { token, unlock }
  } catch (error) {
    await unlock()
    throw error
  }
}

/** How the settings want files to be read, and how trees spread their paths. */
export function recoveryOptions(settings: ServerSettings, ports: Platform, hashKey: number): RecoveryOptions {
  return {
    disk: ports.disk,
    logger: ports.logger,
    compression: ports.compression,
    dataDir: settings.dataDir,
    dataLogDir: settings.dataLogDir,
    autoCreate: settings.autoCreateDataDir,
    trustEmptySnapshot: settings.snapshotTrustEmpty,
    createTree: () =>
      new Tree({ extendedTypes: settings.extendedTypesEnabled, digest: settings.digestEnabled, hashKey }),
  }
}
