import { formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'

/** The epoch that a file such as `currentEpoch` holds, or undefined when there is none. Throws when it holds anything else. */
export async function readEpoch(disk: Disk, path: string): Promise<number | undefined> {
  return readNumber(disk, path)
}

export async function writeEpoch(disk: Disk, path: string, epoch: number): Promise<void> {
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new RangeError(`Expected an epoch from 0 up, got 0x${formatZxid(epoch)}`)
  await disk.replaceFile(path, new TextEncoder().encode(String(epoch)))
}

/** The server's number from `myid`, or undefined when there is no such file. */
export const readMyId = (disk: Disk, dataDir: string): Promise<number | undefined> =>
  readNumber(disk, `${dataDir}/myid`)

async function readNumber(disk: Disk, path: string): Promise<number | undefined> {
  if (!(await disk.exists(path))) return undefined
  const line = new TextDecoder().decode(await disk.readFile(path)).split(/\r?\n/, 1)[0]!
  const value = Number(line)
  if (!/^\d+$/.test(line) || !Number.isSafeInteger(value)) {
    throw new RangeError(
      `Expected a decimal number in the first line of ${path}, got ${JSON.stringify(line.slice(0, 40))}`,
    )
  }
  return value
}
