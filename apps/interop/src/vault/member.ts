// The server's own sources: what opens the folders here is a piece of it that the built program does not offer by itself.
import { defaults } from '../../../../packages/server/src/settings/index.ts'
import { Author } from '../../../../packages/server/src/host/vault/testdata/rig.ts'
import { openVault, type Vault } from '../../../../packages/server/src/host/vault/index.ts'
import { TreeStream } from '../../../../packages/server/src/host/vault/streams.ts'
import { MemoryNetwork, silent } from '../../../../packages/runtime/src/index.ts'
import {
  nodeClock,
  nodeCompression,
  NodeDisk,
  nodeRandom,
  nodeSystem,
} from '../../../../packages/runtime/src/node/index.ts'

export { Author, TreeStream, type Vault }
export const clock = nodeClock

/** Opens the folder of a member that has stopped. */
export function open(dataDir: string): Promise<Vault> {
  const ports = {
    clock: nodeClock,
    random: nodeRandom,
    network: new MemoryNetwork(nodeClock),
    disk: new NodeDisk(),
    compression: nodeCompression,
    logger: silent,
    system: nodeSystem,
  }
  return openVault(defaults({ dataDir }), ports, { member: true })
}

/** The part of a leader that writes: its tree is a copy of a member's. */
export async function authorAfter(vault: Vault): Promise<Author> {
  const { chunks } = vault.streamSnapshot()
  const sink = vault.receiveSnapshot(vault.tree.lastZxid)
  for await (const chunk of chunks) await sink.write(chunk)
  const author = new Author(vault.tree)
  await vault.settle()
  return author
}

/** Logs and applies what a leader proposes. */
export async function follow(vault: Vault, txns: Author['txns']): Promise<void> {
  const writer = vault.openWriter({ durable() {}, snapshotDue() {}, full() {}, space() {}, fatal() {} })
  for (const { zxid, payload } of txns) {
    writer.appendPayload(zxid, payload)
    vault.apply(payload)
  }
  await writer.flush()
  await vault.settle()
}
