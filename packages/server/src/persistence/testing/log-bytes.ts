import { Writer } from '@zabra/protocol'
import { diskWithFolder } from '@zabra/testkit'
import { writeLogHeader } from '../log-format.ts'
import { createTxn, FOLDER, writeEntry } from './log-fixture.ts'

/** The log of `logOf`. */
export const LOG = `${FOLDER}/log.1`

/**
 * Returns the bytes of a log with transactions that create nodes with `size` bytes of data, `room` zeros at its end, and the offset of
 * each transaction.
 */
export async function logOf(zxids: readonly number[], room = 100, size = 20) {
  const disk = await diskWithFolder(FOLDER)
  const writer = new Writer()
  writeLogHeader(writer)
  const offsets: number[] = []
  for (const zxid of zxids) {
    offsets.push(writer.length)
    writeEntry(writer, createTxn(zxid, size))
  }
  const end = writer.length
  const bytes = new Uint8Array(end + room)
  bytes.set(writer.bytes())
  return { disk, bytes, offsets, end, put: () => disk.putFile(LOG, bytes) }
}
