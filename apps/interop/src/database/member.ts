// Imports sources of the server: the built program does not export its database.
import type { Clock } from '@zabra/runtime'
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
export const clock: Clock = nodeClock

/** Opens the data directory of a stopped member. */
export function openMember(dataDir: string): Promise<Database> {
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

/** Returns a history whose transactions continue those of a member's database. */
export async function leaderHistoryAfter(database: Database): Promise<LeaderHistory> {
  const { chunks } = database.streamSnapshot()
  const sink = database.receiveSnapshot(database.tree.lastZxid)
  for await (const chunk of chunks) await sink.write(chunk)
  const author = new LeaderHistory(database.tree)
  await database.endRole()
  return author
}

/** Logs and applies transactions as a follower does. */
export async function follow(database: Database, txns: LeaderHistory['txns']): Promise<void> {
  const writer = database.openWriter({
    durable() {},
    snapshotDue() {},
    diskFull() {},
    spaceAvailable() {},
    fatal() {},
  })
  for (const { zxid, payload } of txns) {
    writer.appendPayload(zxid, payload)
    database.apply(payload)
  }
  await writer.flush()
  await database.endRole()
}
