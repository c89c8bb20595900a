import { ownerKind, ttlOf } from '@zabra/protocol'
import { silentLogger } from '@zabra/runtime'
import { readDatabase, readSnapshot, type SnapshotNode } from '@zabra/server/files'
import { note, type Io } from '../io.ts'
import type { ExportedNode } from '../session/export-format.ts'
import { dataFolderOf, findFiles, requireDataFolder } from './find-files.ts'

/** Reads a data folder, with the log behind its newest snapshot; or a snapshot alone, where a file is named. */
export async function readFiles(io: Io, from: string, logs?: string): Promise<Generator<SnapshotNode>> {
  const { disk, compression } = io.platform
  const logger = { ...silentLogger, warn: (_: object, sentence: string) => note(io, sentence) }
  const dataDir = await dataFolderOf(disk, from)
  if (dataDir !== undefined) {
    const dataLogDir =
      logs === undefined ? dataDir : await requireDataFolder(disk, logs, 'Name dataLogDir with --logs.')
    const found = await readDatabase(disk, { dataDir, dataLogDir }, compression, logger)
    const zxid = found.lastZxid.toString(16)
    note(io, `reading ${found.snapshot} and ${found.replayed} transactions of the log, up to 0x${zxid}`)
    return found.nodes()
  }
  const file = (await findFiles(disk, from, 'snapshot')).at(-1)!
  const found = await readSnapshot(disk, file, compression)
  const zxid = (found.lastZxid ?? found.zxid).toString(16)
  note(io, `reading ${file}; transactions after 0x${zxid} are in the logs and not in it`)
  return found.nodes()
}

/** The type of a node in files: more than the protocol says of it. */
export interface FileKind extends Pick<ExportedNode, 'kind' | 'ttl'> {
  readonly isEphemeral: boolean
}

/** Returns the type of a node by the owner in its stat. */
export function kindOf(owner: bigint): FileKind {
  let kind
  try {
    kind = ownerKind(owner, { extendedTypes: true })
  } catch {
    // An unknown type mark: a session id, written by a server without extended types.
    kind = 'ephemeral'
  }
  if (kind === 'container') return { kind, isEphemeral: false }
  if (kind === 'ttl') return { kind, ttl: ttlOf(owner), isEphemeral: false }
  return { isEphemeral: kind === 'ephemeral' }
}
