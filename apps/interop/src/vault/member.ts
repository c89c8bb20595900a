// The server's own sources: what opens the folders here is a piece of it that the built program does not offer by itself.
import { defaults } from '../../../../packages/server/src/settings/index.ts'
import { LeaderHistory } from '../../../../packages/server/src/database/testing/database-fixture.ts'
import { openDatabase, type Database } from '../../../../packages/server/src/database/index.ts'
import { SnapshotStream } from '../../../../packages/server/src/database/snapshot-stream.ts'
import { MemoryNetwork, silentLogger } from '../../../../packages/runtime/src/index.ts'
import {
  nodeClock,
  nodeCompression,
  NodeDisk,
  nodeRandom,
  nodeSystem,
} from '../../../../packages/runtime/src/node/index.ts'

export { LeaderHistory, SnapshotStream, type Database }
export const clock = nodeClock

/** Opens the folder of a member that has stopped. */
export function open(dataDir: string): Promise<Database> {
  const ports = {
    clock: nodeClock,
    random: nodeRandom,
    network: new MemoryNetwork(nodeClock),
    disk: new NodeDisk(),
    compression: nodeCompression,
    logger: silentLogger,
    system: nodeSystem,
  }
  return openDatabase(defaults({ dataDir }), ports, { isMember: true })
}

/** The part of a leader that writes: its tree is a copy of a member's. */
export async function authorAfter(vault: Database): Promise<LeaderHistory> {
  const { chunks } = vault.streamSnapshot()
  const sink = vault.receiveSnapshot(vault.tree.lastZxid)
  for await (const chunk of chunks) await sink.write(chunk)
  const author = new LeaderHistory(vault.tree)
  await vault.endRole()
  return author
}

/** Logs and applies what a leader proposes. */
export async function follow(vault: Database, txns: LeaderHistory['txns']): Promise<void> {
  const writer = vault.openWriter({
    durable() {},
    snapshotDue() {},
    diskFull() {},
    spaceAvailable() {},
    fatal() {},
  })
  for (const { zxid, payload } of txns) {
    writer.appendPayload(zxid, payload)
    vault.apply(payload)
  }
  await writer.flush()
  await vault.endRole()
}
