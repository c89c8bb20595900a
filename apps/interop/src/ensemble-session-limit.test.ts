import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { Client, connectRequest, fourLetterWord, RawConnection, type Session } from './harness/client.ts'
import { frame } from './harness/bytes.ts'
import { freePort } from './harness/ports.ts'
import { describeWith, isLong, missingRequirements } from './harness/requirements.ts'
import { reference, scratch, Server, type Kind } from './harness/servers.ts'

/** The most sessions of servers that no configuration names. */
const MOST = 10_000
/** Fewer than the connections that Apache ZooKeeper lets wait until it accepts them. */
const IN_FLIGHT = 40
const TIMEOUT_MS = 600_000

const OBSERVER = 9

const kinds: readonly Kind[] =
  missingRequirements('newestApache') === undefined ? [reference, 'apache-3.9'] : [reference]
/** The kind of the observer, what it follows, whether that is a follower, and the kind of the leader. */
const CASES = kinds.flatMap((kind): [Kind, string, boolean, Kind][] => [
  [kind, 'the leader', false, 'zabra'],
  [kind, 'a follower that keeps observers', true, 'zabra'],
  [kind, 'a follower whose leader runs Apache ZooKeeper', true, reference],
])

/**
 * Starts voters 1 to 3 that servers may join, of which 1 runs Zabra, and keeps observers if there is a port for them, and the others are of
 * the kind `others`; and an observer that they do not name.
 */
async function start(kind: Kind, masterPort: number, others: Kind = 'zabra') {
  const maxSessionTimeout = TIMEOUT_MS
  const ensemble = await Ensemble.plan({
    kinds: ['zabra', others, others],
    hostOf: (id) => `127.0.0.${id}`,
    config: { reconfigEnabled: 'true', maxSessionTimeout },
    configOf: (id) => (id === 1 && masterPort > 0 ? { observerMasterPort: masterPort } : {}),
  })
  // In this order, so that 3 leads.
  await ensemble.start(2, 3)
  await ensemble.start(1)
  const dataDir = join(scratch('observer'), 'data')
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(join(dataDir, 'myid'), String(OBSERVER))
  const voters = [1, 2, 3].map((id) => [`server.${id}`, `127.0.0.${id}:${ensemble.portsOf(id).join(':')}`])
  const observer = await Server.plan({
    kind,
    dataDir,
    config: {
      tickTime: 400,
      initLimit: 25,
      syncLimit: 10,
      peerType: 'observer',
      // Where it took the configuration of the voters, it would be no observer: reconfiguration is off there, and none is newer.
      version: '100000000',
      maxSessionTimeout,
      ...(masterPort > 0 ? { observerMasterPort: masterPort } : {}),
      ...Object.fromEntries(voters),
      [`server.${OBSERVER}`]: `127.0.0.${OBSERVER}:${await freePort()}:${await freePort()}:observer`,
    },
  })
  onTestFinished(() => observer.kill())
  await observer.start()
  await until('the server that the observer follows', async () => {
    const text = await fourLetterWord(observer.port, 'mntr').catch(() => '')
    return text.includes(`zk_observer_master_id\t${masterPort > 0 ? 1 : await ensemble.leader()}`)
  })
  return { ensemble, observer }
}

/** The length of a reply without a body; a connect response is longer. */
const REPLY_BYTES = 16

/**
 * Sends a connect request. Resolves to whether it is answered, by a response or something else, or the connection closed; 'open' if neither
 * is until `meanwhile` is done.
 */
async function handshake(
  port: number,
  resume?: Session,
  meanwhile: () => Promise<void> = () => new Promise(() => {}),
): Promise<'answered' | 'unreadable' | 'closed' | 'open'> {
  const connection = await RawConnection.open(port)
  const options = resume === undefined ? {} : { resume }
  connection.write(frame(connectRequest({ timeoutMs: TIMEOUT_MS, ...options })))
  const answer = connection.next(60_000).then((response) => {
    if (response === undefined) return 'closed'
    return response.length > REPLY_BYTES ? 'answered' : 'unreadable'
  })
  const outcome = await Promise.race([answer, meanwhile().then(() => 'open' as const)])
  connection.destroy()
  await answer
  return outcome
}

/** Creates sessions that have no connection, some at a time. */
async function createSessions(port: number, count: number): Promise<void> {
  for (let left = count; left > 0; left -= IN_FLIGHT) {
    const clients = Array.from({ length: Math.min(left, IN_FLIGHT) }, () =>
      Client.connect(port, { timeoutMs: TIMEOUT_MS }),
    )
    for (const client of await Promise.all(clients)) client.drop()
  }
}

describeWith(['apache'], 'an observer of Apache ZooKeeper that no configuration names', () => {
  it.each(isLong ? CASES : CASES.slice(0, 1))(
    '(%s) that follows %s loses the client alone whose session is one too many',
    async (kind, _, isBehindFollower, leader) => {
      const { ensemble, observer } = await start(kind, isBehindFollower ? await freePort() : 0, leader)
      // A leader of Apache ZooKeeper gives another error, and the server sends a reply that is no connect response.
      const refusal = leader === 'zabra' ? 'closed' : 'unreadable'
      const { port } = observer
      const stays = await Client.connect(port, { timeoutMs: TIMEOUT_MS })
      const closes = await Client.connect(port, { timeoutMs: TIMEOUT_MS })
      const moves = await ensemble.connect(2, TIMEOUT_MS)
      await createSessions(port, MOST - 2)
      await stays.create('/full')
      for (let i = 0; i < 20; i++) expect(await handshake(port)).toBe(refusal)
      await stays.create('/after')
      // One that lives elsewhere gets no answer, and lives on.
      const write = async (): Promise<void> => {
        for (let i = 0; i < 20; i++) await stays.set('/after', String(i))
      }
      expect(await handshake(port, moves.session, write)).toBe('open')
      await moves.create('/elsewhere')
      const moved = await Client.connect(ensemble.member(3).port, { resume: moves.session })
      await moved.create('/moved')
      // A session closes, and leaves room.
      await closes.close()
      const next = await Client.connect(port, { timeoutMs: TIMEOUT_MS })
      await next.create('/next')
      expect(await handshake(port)).toBe(refusal)
      await next.close()
      const back = await Client.connect(port, { resume: moves.session })
      await back.create('/back')
      await stays.create('/end')
      expect([stays.connection.isClosed, back.connection.isClosed]).toEqual([false, false])
    },
    300_000,
  )
  it('has clients that write, where it follows a follower of Zabra and the leader runs Apache ZooKeeper', async () => {
    const { ensemble, observer } = await start(reference, await freePort(), reference)
    expect(await ensemble.leader()).toBe(3)
    const client = await Client.connect(observer.port, { timeoutMs: TIMEOUT_MS })
    await client.create('/a')
    await client.set('/a', 'b')
  })
})
