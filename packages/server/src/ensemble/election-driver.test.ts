import { describe, expect, it } from 'vitest'
import { Election, electionDefaults, encodeNotification } from '../core/election/index.ts'
import { parseConfiguration, type EnsembleConfiguration, type ServerId } from '../core/quorum/index.ts'
import { ElectionDriver } from './election-driver.ts'
import type { ElectionConnections } from './election-connections.ts'
import { addressOf, bytes, frame, helloOf, ElectionFixture } from './testing/election-fixture.ts'

const members = (ids: readonly ServerId[]): string =>
  ids.map((id) => `server.${id}=127.0.0.1:${23_200 + id}:${addressOf(id).port}`).join('\n')
const active = parseConfiguration(members([1, 2, 3]))

class Server {
  readonly links: ElectionConnections
  readonly driver: ElectionDriver
  readonly decisions: string[] = []
  readonly configured: EnsembleConfiguration[] = []
  /** What the server does when it has a role, and when it is told of a configuration. */
  decided = (): void => {}
  configure = (): void => {}

  constructor(rig: ElectionFixture, id: ServerId, adoptsConfigurations = false) {
    const election = new Election({ self: id, ...electionDefaults, adoptsConfigurations })
    this.links = rig.connections(id, { received: (from, payload) => this.driver.receive(from, payload) })
    this.driver = new ElectionDriver({
      election,
      clock: rig.clock,
      logger: rig.logger,
      connections: this.links,
      elected: ({ state, vote }) => {
        this.decisions.push(`${state} ${vote.leader} in round ${vote.round}`)
        this.decided()
      },
      configure: ({ configuration }) => {
        this.configured.push(configuration)
        this.configure()
      },
    })
  }

  look(zxid = 0, epoch = 0): void {
    this.driver.step({ type: 'look', state: { zxid, epoch, active } })
  }

  async stop(): Promise<void> {
    this.driver.close()
    await this.links.close()
  }
}

/** The message of a server in its first round, with a configuration. */
function voteOf(leader: ServerId, configuration: string): Uint8Array {
  const payload = encodeNotification('looking', { leader, zxid: 0, round: 1, epoch: 0 }, configuration)
  const length = bytes(payload.length.toString(16).padStart(8, '0'))
  return Uint8Array.of(...length, ...payload)
}

async function start(rig: ElectionFixture, id: ServerId, adoptsConfigurations = false): Promise<Server> {
  const server = new Server(rig, id, adoptsConfigurations)
  await server.links.start()
  return server
}

async function pass(rig: ElectionFixture, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) await rig.advance(10)
}

describe('three servers on a network', () => {
  it('elect the best of them within a second', async () => {
    const rig = new ElectionFixture()
    const servers = [await start(rig, 1), await start(rig, 2), await start(rig, 3)]
    for (const [index, server] of servers.entries()) server.look(index === 0 ? 5 : 0)
    await pass(rig, 1000)
    expect(servers.map(({ decisions }) => decisions)).toEqual([
      ['leading 1 in round 1'],
      ['following 1 in round 1'],
      ['following 1 in round 1'],
    ])
    expect(servers.map(({ links }) => links.connected)).toEqual([
      [2, 3],
      [1, 3],
      [1, 2],
    ])
    expect(rig.timers).toEqual([])
  })

  it('elect another one when the leader is gone, and the old one joins it', async () => {
    const rig = new ElectionFixture()
    const [one, two, three] = [await start(rig, 1), await start(rig, 2), await start(rig, 3)]
    for (const server of [one, two, three]) server.look()
    await pass(rig, 1000)
    await three.stop()
    for (const server of [one, two]) server.look(9, 1)
    await pass(rig, 1000)
    expect([one.decisions.at(-1), two.decisions.at(-1)]).toEqual([
      'following 2 in round 2',
      'leading 2 in round 2',
    ])
    for (const server of [one, two]) server.driver.step({ type: 'established', epoch: 2 })
    const again = await start(rig, 3)
    again.look(0, 1)
    await pass(rig, 1000)
    expect(again.decisions).toEqual(['following 2 in round 2'])
  })

  it('elect when the last of a quorum comes late', async () => {
    const rig = new ElectionFixture()
    const one = await start(rig, 1)
    one.look()
    await pass(rig, 30_000)
    expect(one.decisions).toEqual([])
    const two = await start(rig, 2)
    two.look()
    await pass(rig, 2000)
    expect([one.decisions, two.decisions]).toEqual([['following 2 in round 1'], ['leading 2 in round 1']])
  })
})

describe('a server', () => {
  it('drops what it cannot read and says so, and keeps the connection', async () => {
    const rig = new ElectionFixture()
    const one = await start(rig, 1)
    one.look()
    const three = await rig.dial(1, helloOf(3), frame('nonsense'))
    expect(three.closed).toBe(false)
    const line = rig.logged.find((logged) => logged.startsWith('warn'))
    expect(line).toContain('A message of another server cannot be read and was dropped {"peer":3,"bytes":8')
  })

  it('that loses its role at once looks again with all its timers', async () => {
    const rig = new ElectionFixture()
    const one = await start(rig, 1)
    one.look()
    await rig.dial(1, helloOf(2), voteOf(2, ''))
    const lookAgain = (): void => one.look(1, 1)
    one.decided = lookAgain
    await pass(rig, 300)
    expect(one.decisions).toEqual(['following 2 in round 1'])
    expect(rig.timers).toContain('election resend')
  })

  it('passes on a newer configuration', async () => {
    const rig = new ElectionFixture()
    const one = await start(rig, 1, true)
    one.look()
    one.configure = () => one.look()
    await rig.dial(1, helloOf(3), voteOf(3, `${members([1, 2, 3, 4])}\nversion=100000000`))
    expect(one.configured.map(({ version }) => version)).toEqual([0x100000000])
    expect(rig.timers).toContain('election resend')
  })
})
