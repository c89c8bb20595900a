import type { Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'

/** Sends what a writer has, which is empty then; its array is used again if nobody needs it. False as `write` says it. */
export function flushWriter(writer: Writer, wire: Connection): boolean {
  const isTaken = wire.write(writer.bytes())
  if (wire.canReuseBuffers === true) writer.release()
  else writer.take()
  return isTaken
}
