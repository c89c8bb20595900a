import { DiskError } from '@zabra/runtime'
import { z } from 'zod'
import { oneChunk, readSmall, type BackupStore } from './catalog.ts'

/** The file of a target that holds the result of the last verification by a server. */
const VERIFIED = 'verified'

const record = z.object({
  /** When it ended, in milliseconds since 1970. */
  time: z.int().min(0),
  /** The snapshot, by the name of its manifest. */
  snapshot: z.string().max(200),
  /** Why the backup cannot be used; null for one that can. */
  problem: z.string().max(2000).nullable(),
})

/** The result of a verification of a backup by replay. */
export type VerificationRecord = z.infer<typeof record>

/** Reads the result of the last verification; undefined where there is none, or none that can be read. Rejects when the target cannot be reached. */
export async function readVerification({ target }: BackupStore): Promise<VerificationRecord | undefined> {
  try {
    const text = new TextDecoder().decode(await readSmall(target, VERIFIED))
    return record.parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    throw error
  }
}

export async function writeVerification(
  { target }: BackupStore,
  { problem, ...rest }: VerificationRecord,
): Promise<void> {
  const text = JSON.stringify({ ...rest, problem: problem?.slice(0, 2000) ?? null })
  await target.write(VERIFIED, oneChunk(new TextEncoder().encode(`${text}\n`)))
}
