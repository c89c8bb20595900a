import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startEnsemble } from './client/ensemble.ts'
import { sync } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { Client, createBody, multiBody, fourLetterWord } from './harness/client.ts'
import { dumpTree } from './harness/dump.ts'
import { op } from './harness/opcodes.ts'
import { reference, scratch, type Server } from './harness/servers.ts'
import { part } from './differential/requests.ts'
import { receiveSnapshot } from './database/learner.ts'
import {
  leaderHistoryAfter,
  clock,
  follow,
  openMember,
  SnapshotStream,
  type Database,
} from './database/member.ts'

const EPOCH = 2 ** 32

async function write(server: Server, label: string): Promise<void> {
  const client = await Client.connect(server.port, { timeoutMs: 30_000 })
  for (let i = 0; i < 30; i++) await client.create(`/${label}${i}`, Buffer.alloc(i * 40, i))
  for (let i = 0; i < 5; i++) await client.set(`/${label}${i}`, 'changed')
  await client.delete(`/${label}7`)
  await client.create(`/${label}-mine`, '', 1)
  await client.ok(op.createContainer, createBody(`/${label}-container`, 'c', 4), 'container')
  await client.ok(op.multi, multiBody([part.create(`/${label}-m`), part.set(`/${label}-m`, 0)]), 'multi')
  client.drop()
}

/** Separates the leader from the followers. */
async function byRole(servers: readonly Server[]): Promise<{ leader: Server; followers: Server[] }> {
  const modes = await Promise.all(servers.map(({ port }) => fourLetterWord(port, 'srvr')))
  const leader = servers.find((_, i) => modes[i]!.includes('Mode: leader'))!
  return { leader, followers: servers.filter((server) => server !== leader) }
}

const forAll = (servers: readonly Server[], what: 'start' | 'stop'): Promise<unknown> =>
  Promise.all(servers.map((server) => server[what]()))

async function dumps(servers: readonly Server[]): Promise<Record<string, string>[]> {
  return Promise.all(
    servers.map(async ({ port }) => {
      const client = await Client.connect(port)
      await client.ok(op.sync, Buffer.from([0, 0, 0, 1, 0x2f]), 'sync')
      const { '/zookeeper/config': _, ...dump } = await dumpTree(client)
      await client.close()
      // Each server writes the configuration node on its own, with its own stat.
      return dump
    }),
  )
}

/** Waits until each server has applied everything committed before. */
async function caughtUp(servers: readonly Server[]): Promise<void> {
  for (const { port } of servers) {
    const client = await Client.connect(port)
    await sync(client)
    await client.close()
  }
}

describeWith(['apache'], 'the data directories of Apache ZooKeeper members', () => {
  it('serve Apache ZooKeeper after Zabra appended, truncated and replaced their logs and snapshots', async () => {
    const servers = await startEnsemble(reference, 3)
    await write((await byRole(servers)).followers[0]!, 'a')
    await forAll(servers, 'stop')
    await forAll(servers, 'start')
    await write((await byRole(servers)).leader, 'b')
    const [before] = await dumps(servers)
    await forAll(servers, 'stop')

    const databases = await Promise.all(servers.map(({ dataDir }) => openMember(dataDir)))
    for (const { epochs, lastZxid, tree } of databases) {
      expect([epochs.accepted, epochs.current, Math.floor(lastZxid / EPOCH)]).toEqual([2, 2, 2])
      expect([tree.has('/a29'), tree.has('/b29'), tree.has('/b7'), tree.has('/b-container')]).toEqual([
        true,
        true,
        false,
        true,
      ])
    }
    const longest = databases.reduce((a, b) => (b.lastZxid > a.lastZxid ? b : a))
    const author = await leaderHistoryAfter(longest)
    const from = longest.lastZxid
    author.createRange(3, 1, 9)
    for (const database of databases) await database.acceptEpoch(3)
    const [one, two, three] = databases as [Database, Database, Database]
    // One is synchronized by DIFF, one by SNAP; one logs transactions that are truncated later.
    for await (const txn of longest.readHistory(one.lastZxid, from)) await follow(one, [txn])
    await follow(one, author.txns)
    const sink = two.receiveSnapshot(author.tree.lastZxid)
    for await (const chunk of new SnapshotStream(author.tree, longest.sessions, clock))
      await sink.write(chunk)
    await two.installSnapshot()
    await bringUp(three, longest, from)
    await follow(three, author.txns)
    const uncommitted = await leaderHistoryAfter(three)
    await follow(three, uncommitted.createRange(3, 10, 14).txns)
    await three.takeSnapshot(three.sessions)
    expect(await three.truncateTo(author.tree.lastZxid)).toEqual({ isExact: true })
    for (const database of databases) {
      await database.setCurrentEpoch(3)
      expect(database.tree.digest).toEqual(author.tree.digest)
      await database.close()
    }

    await forAll(servers, 'start')
    const after = await dumps(servers)
    expect(after[1]).toEqual(after[0])
    expect(after[2]).toEqual(after[0])
    const names = Object.keys(after[0]!)
    expect(names).toContain('/n300000009')
    expect(names).not.toContain('/n30000000a')
    // Sessions expire meanwhile, and their ephemeral nodes are deleted.
    const kept = Object.keys(before!).filter((path) => /^\/[ab]\d/.test(path))
    expect(kept.length).toBeGreaterThan(50)
    for (const path of kept) expect(after[0]![path]).toBe(before![path])
    for (const { port } of servers) {
      const mntr = await fourLetterWord(port, 'mntr')
      expect(mntr).not.toMatch(/zk_digest_mismatches_count\t[1-9]/)
    }
    await write(servers[1]!, 'c')
    // A quorum has the writes; one member may lag.
    await caughtUp(servers)
    await forAll(servers, 'stop')
    for (const { dataDir } of servers) {
      const database = await openMember(dataDir)
      expect([
        database.epochs.current,
        Math.floor(database.lastZxid / EPOCH),
        database.tree.has('/c29'),
      ]).toEqual([4, 4, true])
      expect(readFileSync(join(dataDir, 'version-2/acceptedEpoch'), 'utf8')).toBe('4')
      await database.close()
    }
  })

  it('receive a snapshot from an Apache leader, and Zabra streams the same bytes from it', async () => {
    const servers = await startEnsemble(reference, 3)
    const { leader } = await byRole(servers)
    // Through the leader itself: a follower may reply before the leader has applied the last write to the tree that it streams.
    await write(leader, 'a')
    const config = await fourLetterWord(leader.port, 'conf')
    const id = Number(/serverId=(\d+)/.exec(config)![1])
    const quorumPort = Number(
      new RegExp(`server\\.${id}=[^:]*:(\\d+):`).exec(config)?.[1] ?? /quorumPort=(\d+)/.exec(config)?.[1],
    )
    const { zxid, stream } = await receiveSnapshot(quorumPort, 9)
    await forAll(servers, 'stop')

    const database = await openMember(scratch('filled'))
    await database.acceptEpoch(1)
    const sink = database.receiveSnapshot(Number(zxid))
    let taken = 0
    while (taken < stream.length) taken += await sink.write(stream.subarray(taken, taken + 777))
    expect(sink.isComplete).toBe(true)
    await database.installSnapshot()
    const members = await Promise.all(servers.map(({ dataDir }) => openMember(dataDir)))
    expect(members.map(({ tree }) => tree.digest)).toContainEqual(database.tree.digest)
    for (const member of members) await member.close()

    const chunks: Uint8Array[] = []
    for await (const chunk of database.streamSnapshot().chunks) chunks.push(chunk)
    const mine = Buffer.concat(chunks)
    // Sessions, ACL lists and children are in no defined order; everything else is equal, byte for byte.
    expect(mine.length).toBe(stream.length)
    expect(records(mine)).toEqual(records(stream))
    await database.close()
  })
})

async function bringUp(database: Database, from: Database, upTo: number): Promise<void> {
  if (database === from) return
  const missing = []
  for await (const txn of from.readHistory(database.lastZxid, upTo)) missing.push(txn)
  await follow(database, missing)
}

/** Splits a snapshot stream into its records and sorts those without a defined order. */
function records(stream: Buffer): string[] {
  const found: string[] = []
  let at = 0
  const cut = (from: number): void => void found.push(stream.subarray(from, at).toString('hex'))
  const int = (): number => stream.readInt32BE((at += 4) - 4)
  const string = (): void => {
    const length = int()
    at += Math.max(0, length)
  }
  const sessions = int()
  for (let i = 0; i < sessions; i++) {
    at += 12
    cut(at - 12)
  }
  const lists = int()
  for (let i = 0; i < lists; i++) {
    const from = at
    at += 8
    for (let entries = int(); entries > 0; entries--) {
      at += 4
      string()
      string()
    }
    cut(from)
  }
  for (;;) {
    const from = at
    const length = stream.readInt32BE(at)
    string()
    const path = stream.subarray(at - length, at).toString()
    if (path === '/') break
    string()
    at += 68
    cut(from)
  }
  cut(at)
  return [...found.toSorted(), `lists ${lists}, sessions ${sessions}`, stream.subarray(at).toString('latin1')]
}
