import { Writer } from '@zabra/protocol'
import { MemoryDisk, type Clock } from '@zabra/runtime'
import { nodeClock, nodeNetwork, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { freePorts } from '@zabra/testkit'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseConfiguration, type ServerId } from '../core/quorum/index.ts'
import { encodeLearnerInfo, PacketType, writePacket } from '../core/zab/index.ts'
import { createServer } from '../server.ts'
import type { Server } from '../server-types.ts'
import { defaults } from '../settings/index.ts'
import { encodeHello } from './election-hello.ts'
import { hostOf, MemberSecurityFixture, TestLogger } from './testing/member-security-fixture.ts'

let fixture: MemberSecurityFixture
const servers: Server[] = []
beforeEach(() => void (fixture = new MemberSecurityFixture()))
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
  await fixture.close()
})

const VOTERS = [1, 2, 3] as const
const OBSERVER = 4

/** A clock on which time passes for the checks of certificate files when the test says so, and otherwise as in the platform. */
class TestClock implements Clock {
  #now = 0
  #checks: { readonly at: number; readonly action: () => void }[] = []

  monotonic = nodeClock.monotonic.bind(nodeClock)
  wall = nodeClock.wall.bind(nodeClock)
  immediate = nodeClock.immediate.bind(nodeClock)
  afterMicrotasks = nodeClock.afterMicrotasks.bind(nodeClock)

  after(delayMs: number, name: string, action: () => void): () => void {
    if (name !== 'change of certificates') return nodeClock.after(delayMs, name, action)
    const check = { at: this.#now + delayMs, action }
    this.#checks.push(check)
    return () => (this.#checks = this.#checks.filter((each) => each !== check))
  }

  /** Lets so many milliseconds pass. Returns the number of checks that were due. */
  advance(ms: number): number {
    this.#now += ms
    const due = this.#checks.filter(({ at }) => at <= this.#now)
    this.#checks = this.#checks.filter((check) => !due.includes(check))
    for (const { action } of due) action()
    return due.length
  }
}

/** Starts three voters and an observer, over TLS alone. The observer follows a follower. */
async function startMembers(clock: Clock = nodeClock) {
  const [quorum, election, master] = (await freePorts(3, '0.0.0.0')) as [number, number, number]
  const ensemble = parseConfiguration(
    [...VOTERS, OBSERVER]
      .map((id) => `server.${id}=${hostOf(id)}:${quorum}:${election}${id === OBSERVER ? ':observer' : ''}`)
      .join('\n'),
  )
  const logs = new Map<ServerId, TestLogger>()
  const start = async (id: ServerId, keyStore?: string): Promise<Server> => {
    const logger = new TestLogger()
    logs.set(id, logger)
    const settings = defaults({
      ...fixture.settings(id, keyStore === undefined ? {} : { quorumKeyStoreLocation: keyStore }),
      ensemble,
      clientPort: 0,
      clientPortAddress: hostOf(id),
      adminEnabled: false,
      observerMasterPort: master,
      tickTimeMs: 10_000,
    })
    const disk = new MemoryDisk()
    const server = await createServer(
      settings,
      nodePlatform({ clock, logger, disk, networkFactories: { tls: tlsNetwork } }),
    )
    servers.push(server)
    return server
  }
  const voters = await Promise.all(VOTERS.map((id) => start(id)))
  await Promise.all(VOTERS.map((id) => logs.get(id)!.matching(/serves clients/)))
  const leader = VOTERS[voters.findIndex(({ role }) => role === 'leading')]!
  const followers = VOTERS.filter((id) => id !== leader)
  await Promise.all(followers.map((id) => logs.get(id)!.matching(/Observers are kept up to date here/)))
  const observe = async (keyStore?: string): Promise<Server> => {
    const server = await start(OBSERVER, keyStore)
    await logs.get(OBSERVER)!.matching(/observes server \d and serves clients/)
    return server
  }
  const observer = await observe()
  const at = (id: ServerId, port: number) => ({ host: hostOf(id), port, log: logs.get(id)! })
  return {
    logs,
    observer,
    observe,
    ports: {
      'quorum port': at(leader, quorum),
      'election port': at(followers[0]!, election),
      'observer master port': at(followers[0]!, master),
    },
  }
}

/** The first bytes of server 4 on a port. */
function firstBytes(name: string): Uint8Array {
  if (name === 'election port') return encodeHello(OBSERVER, [{ host: hostOf(OBSERVER), port: 3888 }], false)
  const writer = new Writer()
  const info = encodeLearnerInfo({ serverId: OBSERVER, protocolVersion: 0x10000, configVersion: 0 })
  writePacket(writer, PacketType.observerInfo, 0, info)
  return writer.take()
}

it('members over TLS accept a member at none of their three ports without TLS, with a certificate of another authority, or with that of another member', async () => {
  const { ports, logs } = await startMembers()
  expect(logs.get(OBSERVER)!.lines.join('\n')).not.toContain('No follower accepts this observer')
  const other = fixture.networkWith(fixture.store('two', { hosts: [hostOf(2)] }))
  const foreign = fixture.networkWith(
    fixture.store('foreign', { authority: fixture.stranger, hosts: [hostOf(OBSERVER)] }),
  )
  for (const [name, { host, port, log }] of Object.entries(ports)) {
    const before = log.lines.length
    for (const network of [nodeNetwork, foreign, other]) {
      const stranger = await fixture.dial(network, { host, port }, firstBytes(name))
      await stranger.closed
      expect([name, stranger.received]).toEqual([name, ''])
    }
    const kind = name === 'election port' ? name : 'quorum port'
    const lines = log.lines.slice(before).filter((line) => line.includes(`A connection to the ${kind}`))
    expect(lines).toHaveLength(3)
    expect(lines[0]).toContain('plaintext')
    expect(lines[1]).toMatch(/SELF_SIGNED|UNABLE_TO/)
    expect(lines[2]).toContain(`expected the certificate of server ${OBSERVER} for ${hostOf(OBSERVER)}`)
  }
  expect(servers.map(({ serving }) => serving)).toEqual([true, true, true, true])
})

it('members whose certificates and authority are replaced while they run use them 10 s later at each of their three ports, in both directions', async () => {
  const clock = new TestClock()
  const { ports, logs, observer, observe } = await startMembers(clock)
  const { authority: old, stranger: next } = fixture
  const both = { path: fixture.file('both.pem', old.certificate + next.certificate) }
  const replaced = { path: fixture.file('next.pem', next.certificate) }
  const [ofOld, ofNext] = [old, next].map((authority, index) => ({
    path: fixture.store(`observer-${index}`, { authority, hosts: [hostOf(OBSERVER)] }),
  }))
  /** Which certificates of server 4, and which trusted authorities, have a handshake end well on each port. */
  const accepted = async (): Promise<string[]> => {
    const outcomes: string[] = []
    const tried = { 'of old': [ofOld, both], 'of next': [ofNext, both], 'next alone': [ofNext, replaced] }
    for (const [port, to] of Object.entries(ports))
      for (const [name, [keyStore, trustStore]] of Object.entries(tried)) {
        // With TLS 1.3 a client would have connected before its certificate is refused.
        const network = tlsNetwork({ keyStore, trustStore, versions: ['TLSv1.2'], verifyHostName: false })
        const connection = await network.connect(to).catch(() => undefined)
        if (connection !== undefined) outcomes.push(`${port}: ${name}`)
        connection?.destroy()
      }
    return outcomes
  }
  const onAll = (...names: string[]): string[] =>
    Object.keys(ports).flatMap((port) => names.map((name) => `${port}: ${name}`))
  expect(await accepted()).toEqual(onAll('of old'))
  fixture.file('authority.pem', next.certificate)
  for (const id of [...VOTERS, OBSERVER])
    fixture.store(`server-${id}`, { authority: next, hosts: [hostOf(id)] })
  expect(clock.advance(9_999)).toBe(0)
  expect(clock.advance(1)).toBe(4)
  for (const log of logs.values()) await log.matching(/The certificates for other members have changed/)
  expect(await accepted()).toEqual(onAll('of next', 'next alone'))
  expect(servers.map(({ serving }) => serving)).toEqual([true, true, true, true])
  await observer.close()
  servers.splice(servers.indexOf(observer), 1)
  expect((await observe(ofNext!.path)).serving).toBe(true)
})
