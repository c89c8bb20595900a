import type { Disk, Hash } from '@zabra/runtime'
import { ChainReader, type ChainState } from '../../core/audit-chain.ts'

/** Bytes that are read at once. */
const CHUNK_BYTES = 64 * 1024

export interface AuditVerification {
  readonly disk: Disk
  readonly sha256: () => Hash
  /** The hash of a line that has to be there. */
  readonly wanted?: string | undefined
  /** Called with the bytes that have been read; returns false to stop. */
  readonly onProgress?: (bytes: number) => boolean
}

/**
 * Follows the hash chain of an audit log through its files, the oldest first, up to the first line that is not part of it. Reads the
 * files in pieces. Rejects with a `DiskError` when one cannot be read.
 */
export async function verifyAudit(
  files: readonly string[],
  { disk, sha256, wanted, onProgress = () => true }: AuditVerification,
): Promise<ChainState> {
  const chain = new ChainReader(sha256, wanted)
  const buffer = new Uint8Array(CHUNK_BYTES)
  let bytes = 0
  for (const file of files) {
    chain.beginFile(file)
    const reader = await disk.openRead(file)
    try {
      for (let at = 0, read = -1; read !== 0; at += read) {
        read = await reader.read(buffer, at)
        chain.push(buffer.subarray(0, read))
        bytes += read
        if (!onProgress(bytes)) return chain.end()
      }
    } finally {
      await reader.close()
    }
  }
  return chain.end()
}
