import { Writer } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { nodeNetwork, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
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

/** Returns ports that no other program uses: each member listens on them at an address of its own. */
async function freePorts(count: number): Promise<number[]> {
  const listeners = []
  while (listeners.length < count) listeners.push(await nodeNetwork.listen({ port: 0 }, () => {}))
  const ports = listeners.map(({ address }) => address.port)
  for (const listener of listeners) await listener.close()
  return ports
}

/** Starts three voters and an observer, over TLS alone. The observer follows a follower. */
async function startMembers() {
  const [quorum, election, master] = (await freePorts(3)) as [number, number, number]
  const ensemble = parseConfiguration(
    [...VOTERS, OBSERVER]
      .map((id) => `server.${id}=${hostOf(id)}:${quorum}:${election}${id === OBSERVER ? ':observer' : ''}`)
      .join('\n'),
  )
  const logs = new Map<ServerId, TestLogger>()
  const start = async (id: ServerId): Promise<Server> => {
    const logger = new TestLogger()
    logs.set(id, logger)
    const settings = defaults({
      ...fixture.settings(id),
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
      nodePlatform({ logger, disk, networkFactories: { tls: tlsNetwork } }),
    )
    servers.push(server)
    return server
  }
  const voters = await Promise.all(VOTERS.map(start))
  await Promise.all(VOTERS.map((id) => logs.get(id)!.matching(/serves clients/)))
  const leader = VOTERS[voters.findIndex(({ role }) => role === 'leading')]!
  const followers = VOTERS.filter((id) => id !== leader)
  await Promise.all(followers.map((id) => logs.get(id)!.matching(/Observers are kept up to date here/)))
  await start(OBSERVER)
  await logs.get(OBSERVER)!.matching(/observes server \d and serves clients/)
  const at = (id: ServerId, port: number) => ({ host: hostOf(id), port, log: logs.get(id)! })
  return {
    logs,
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
