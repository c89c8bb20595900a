import { describe, expect } from 'vitest'
import { Election, electionDefaults, encodeNotification } from '../core/election/index.ts'
import {
  NO_CLUSTER,
  parseConfiguration,
  printConfiguration,
  type EnsembleConfiguration,
  type ServerId,
} from '../core/quorum/index.ts'
import { withExtension } from '../core/zab/index.ts'
import { ElectionDriver } from './election-driver.ts'
import type { ElectionConnections } from './election-connections.ts'
import { addressOf, bytes, frame, helloOf, ElectionFixture, it } from './testing/election-fixture.ts'

const members = (ids: readonly ServerId[]): string =>
  ids.map((id) => `server.${id}=127.0.0.1:${23_200 + id}:${addressOf(id).port}`).join('\n')
const active = parseConfiguration(members([1, 2, 3]))

class Server {
  readonly connections: ElectionConnections
  readonly driver: ElectionDriver
  readonly decisions: string[] = []
  readonly configured: EnsembleConfiguration[] = []
  /** Called when the election is decided, and with a newer configuration. */
  decided = (): void => {}
  configure = (): void => {}

  constructor(fixture: ElectionFixture, id: ServerId, adoptsConfigurations = false) {
    const election = new Election({ self: id, ...electionDefaults, adoptsConfigurations })
    this.connections = fixture.connections(id, {
      received: (from, payload, isAuthenticated) => this.driver.receive(from, payload, isAuthenticated),
    })
    this.driver = new ElectionDriver({
      election,
      clock: fixture.clock,
      logger: fixture.logger,
      connections: this.connections,
      elected: ({ state, vote }) => {
        this.decisions.push(`${state} ${vote.leader} in round ${vote.round}`)
        this.decided()
      },
      configure: ({ configuration }) => {
        this.configured.push(configuration)
        this.configure()
      },
      failed: (error) => {
        throw error
      },
    })
  }

  look(zxid = 0, epoch = 0): void {
    this.driver.step({ type: 'look', state: { zxid, epoch, active } })
  }

  async stop(): Promise<void> {
    this.driver.close()
    await this.connections.close()
  }
}

/** Returns the message of a server in its first round, with a configuration. */
function voteOf(leader: ServerId, configuration: string): Uint8Array {
  const payload = encodeNotification('looking', { leader, zxid: 0, round: 1, epoch: 0 }, configuration)
  const length = bytes(payload.length.toString(16).padStart(8, '0'))
  return Uint8Array.of(...length, ...payload)
}

async function start(fixture: ElectionFixture, id: ServerId, adoptsConfigurations = false): Promise<Server> {
  const server = new Server(fixture, id, adoptsConfigurations)
  await server.connections.start()
  return server
}

async function advance(fixture: ElectionFixture, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) await fixture.advance(10)
}

describe('three servers on a network', () => {
  it('elect the best of them within a second', async ({ fixture }) => {
    const servers = [await start(fixture, 1), await start(fixture, 2), await start(fixture, 3)]
    for (const [index, server] of servers.entries()) server.look(index === 0 ? 5 : 0)
    await advance(fixture, 1000)
    expect(servers.map(({ decisions }) => decisions)).toEqual([
      ['leading 1 in round 1'],
      ['following 1 in round 1'],
      ['following 1 in round 1'],
    ])
    expect(servers.map(({ connections }) => connections.connected)).toEqual([
      [2, 3],
      [1, 3],
      [1, 2],
    ])
    expect(fixture.timers).toEqual([])
  })

  it('elect another leader when the leader stops, which the old one then follows', async ({ fixture }) => {
    const [one, two, three] = [await start(fixture, 1), await start(fixture, 2), await start(fixture, 3)]
    for (const server of [one, two, three]) server.look()
    await advance(fixture, 1000)
    await three.stop()
    for (const server of [one, two]) server.look(9, 1)
    await advance(fixture, 1000)
    expect(one.decisions.at(-1)).toBe('following 2 in round 2')
    expect(two.decisions.at(-1)).toBe('leading 2 in round 2')
    for (const server of [one, two]) server.driver.step({ type: 'established', epoch: 2 })
    const again = await start(fixture, 3)
    again.look(0, 1)
    await advance(fixture, 1000)
    expect(again.decisions).toEqual(['following 2 in round 2'])
  })

  it('elect a leader when the second voter comes late', async ({ fixture }) => {
    const one = await start(fixture, 1)
    one.look()
    await advance(fixture, 30_000)
    expect(one.decisions).toEqual([])
    const two = await start(fixture, 2)
    two.look()
    await advance(fixture, 2000)
    expect([one.decisions, two.decisions]).toEqual([['following 2 in round 1'], ['leading 2 in round 1']])
  })
})

describe('a server', () => {
  it('logs and drops a malformed message, and keeps the connection', async ({ fixture }) => {
    const one = await start(fixture, 1)
    one.look()
    const three = await fixture.dial(1, helloOf(3), frame('nonsense'))
    expect(three.closed).toBe(false)
    const line = fixture.logged.find((logged) => logged.startsWith('warn'))
    expect(line).toContain('A message of another server cannot be read and was dropped {"peer":3,"bytes":8')
  })

  it('that loses its role while the election is decided starts another election with all timers', async () => {
    const fixture = new ElectionFixture()
    const one = await start(fixture, 1)
    one.look()
    await fixture.dial(1, helloOf(2), voteOf(2, ''))
    const lookAgain = (): void => one.look(1, 1)
    one.decided = lookAgain
    await advance(fixture, 300)
    expect(one.decisions).toEqual(['following 2 in round 1'])
    expect(fixture.timers).toContain('election resend')
  })

  it('passes on a newer configuration', async ({ fixture }) => {
    const one = await start(fixture, 1, true)
    one.look()
    one.configure = () => one.look()
    await fixture.dial(1, helloOf(3), voteOf(3, `${members([1, 2, 3, 4])}\nversion=100000000`))
    expect(one.configured.map(({ version }) => version)).toEqual([0x100000000])
    expect(fixture.timers).toContain('election resend')
  })
})

it('a voter joins a leader that needs it and another one that looks, unless that is of Apache ZooKeeper', async ({
  fixture,
}) => {
  const four = parseConfiguration(members([1, 2, 3, 4]))
  const said = { level: 1, sharesSecret: false, hasData: true, cluster: NO_CLUSTER }
  const { clock, logger } = fixture
  const decisions: string[] = []
  for (const isForeign of [false, true]) {
    const driver = new ElectionDriver({
      election: new Election({ self: 1, ...electionDefaults }),
      clock,
      logger,
      connections: { send() {}, connect() {} },
      elected: ({ state, vote }) => decisions.push(`${state} ${vote.leader}`),
      configure() {},
      failed: (error) => {
        throw error
      },
    })
    const receive = (from: ServerId, state: 'looking' | 'leading'): void => {
      const vote = { leader: from, zxid: 0, round: 1, epoch: 0 }
      const payload = encodeNotification(state, vote, printConfiguration(four))
      driver.receive(from, isForeign ? payload : withExtension(payload, said), false)
    }
    driver.step({ type: 'look', state: { zxid: 0, epoch: 0, active: four } })
    receive(2, 'looking')
    await advance(fixture, 2 * electionDefaults.minNotificationIntervalMs)
    receive(3, 'leading')
    driver.close()
  }
  expect(decisions).toEqual(['following 3'])
})
