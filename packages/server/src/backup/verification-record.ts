import { DiskError } from '@zabra/runtime'
import * as z from 'zod/mini'
import { readSmall, type BackupStore } from './catalog.ts'
import { oneChunk } from './target.ts'

/** The file of a target that holds the result of the last verification by a server. */
const VERIFIED = 'verified'

const record = z.object({
  /** When it ended, in milliseconds since 1970. */
  time: z.int().check(z.gte(0)),
  /** The snapshot, by the name of its manifest. */
  snapshot: z.string().check(z.maxLength(200)),
  /** Why the backup cannot be used; null for one that can. */
  problem: z.nullable(z.string().check(z.maxLength(2000))),
})

/** The result of a verification of a backup by replay. */
export type VerificationRecord = z.infer<typeof record>

/** Reads the result of the last verification; undefined where there is none, or none that can be read. Rejects when the target cannot be reached. */
export async function readVerification({ target }: BackupStore): Promise<VerificationRecord | undefined> {
  try {
    const text = new TextDecoder().decode(await readSmall(target, VERIFIED))
    const { success, data } = record.safeParse(JSON.parse(text))
    return success ? data : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
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
