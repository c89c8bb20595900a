import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { SessionRoutes } from './session-routes.ts'
import { EnsembleFixture, type EnsembleFixtureOptions } from './testing/ensemble-fixture.ts'

const ID = 0x7700_0000_0000_0001n
/** The routes of two observers that are connected to the first learner. */
const [ONE, TWO] = [11, 12]

function bytes(type: number): Uint8Array {
  const writer = new Writer()
  if (type === OpCode.createSession) writer.int(10_000)
  else if (type !== OpCode.closeSession) writer.string('/')
  if (type === OpCode.setData) {
    writer.buffer(new Uint8Array(1))
    writer.int(-1)
  }
  return writer.take()
}

/** A learner with two observers, another learner, and the outcome of their requests. */
class RoutesFixture {
  readonly ensemble: EnsembleFixture
  readonly answers: string[] = []
  readonly synced: number[] = []

  private constructor(ensemble: EnsembleFixture) {
    this.ensemble = ensemble
  }

  static async start(options: EnsembleFixtureOptions = {}): Promise<RoutesFixture> {
    return new RoutesFixture(await EnsembleFixture.start({ hasObservers: true, ...options }))
  }

  get #near() {
    return this.ensemble.learners[0]!.fixture
  }

  relay(from: number, cxid: number, type: number = OpCode.setData): void {
    const request = { sessionId: ID, xid: cxid, type, body: bytes(type), identities: [] }
    this.#near.clientService.runTurn(() =>
      this.#near.pipeline.forwardFromObserver(request, from, () => void this.synced.push(cxid)),
    )
  }

  revalidateFrom(from: number): void {
    const revalidated = (valid: boolean): void => void this.answers.push(`${from} ${valid}`)
    this.#near.clientService.runTurn(() =>
      this.#near.pipeline.revalidate(ID, 10_000, { onRevalidated: revalidated, onRefused() {} }, from),
    )
  }

  /** Moves the session to the other learner. */
  moveAway(): void {
    const { clientService, pipeline } = this.ensemble.learners[1]!.fixture
    clientService.runTurn(() => pipeline.revalidate(ID, 10_000, { onRevalidated() {}, onRefused() {} }))
  }

  /** Returns the committed transactions of the session since the last call. */
  async done(): Promise<string[]> {
    await this.ensemble.settle()
    return this.ensemble.history.splice(0).flatMap(({ payload }) => {
      const { header, txn } = decodeLoggedTxn(new Reader(payload))
      return header.sessionId === ID
        ? [`${header.cxid}: ${txn.type === OpCode.error ? txn.err : 'done'}`]
        : []
    })
  }
}

const MOVED = ErrorCode.SESSIONMOVED

it('a follower rejects a request of a session from an observer after the session has moved to another observer', async () => {
  const fixture = await RoutesFixture.start()
  fixture.relay(ONE, 0, OpCode.createSession)
  fixture.relay(ONE, 1)
  expect(await fixture.done()).toEqual(['0: done', '1: done'])
  // Requests before the revalidation are executed, requests after it are not, before and after its answer.
  fixture.relay(ONE, 2)
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 3)
  expect(await fixture.done()).toEqual(['2: done', `3: ${MOVED}`])
  expect(fixture.answers).toEqual([`${TWO} true`])
  fixture.relay(TWO, 1)
  fixture.relay(ONE, 4)
  fixture.relay(ONE, 5, OpCode.closeSession)
  fixture.relay(TWO, 2)
  expect(await fixture.done()).toEqual(['1: done', `4: ${MOVED}`, `5: ${MOVED}`, '2: done'])
  // The session moves back.
  fixture.revalidateFrom(ONE)
  fixture.relay(ONE, 6)
  fixture.relay(TWO, 3)
  expect(await fixture.done()).toEqual(['6: done', `3: ${MOVED}`])
})

it('a follower completes syncs of sessions that have moved', async () => {
  const fixture = await RoutesFixture.start()
  fixture.relay(ONE, 0, OpCode.createSession)
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 1, OpCode.sync)
  fixture.relay(ONE, 2)
  fixture.relay(TWO, 3, OpCode.sync)
  expect(await fixture.done()).toEqual(['0: done', `2: ${MOVED}`])
  expect(fixture.synced).toEqual([1, 3])
})

it('a follower rejects earlier requests of a session that has moved to another server and returned by another route', async () => {
  const fixture = await RoutesFixture.start()
  fixture.relay(ONE, 0, OpCode.createSession)
  await fixture.done()
  fixture.moveAway()
  await fixture.done()
  fixture.relay(ONE, 1)
  expect(await fixture.done()).toEqual([`1: ${MOVED}`])
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 2)
  fixture.relay(TWO, 3)
  expect(await fixture.done()).toEqual([`2: ${MOVED}`, '3: done'])
  // The session leaves, and returns by its old route.
  fixture.moveAway()
  await fixture.done()
  fixture.revalidateFrom(TWO)
  fixture.relay(TWO, 4)
  expect(await fixture.done()).toEqual(['4: done'])
})

it('a follower rejects the old route of a session that was created before its role began and has moved', async () => {
  const fixture = await RoutesFixture.start({ known: [[ID, 10_000]] })
  fixture.revalidateFrom(ONE)
  fixture.relay(ONE, 1)
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 2)
  fixture.relay(TWO, 3)
  expect(await fixture.done()).toEqual(['1: done', `2: ${MOVED}`, '3: done'])
})

it("a follower keeps the route of an observer's local session when its client tries another server, and moves it once it is global", async () => {
  const fixture = await RoutesFixture.start({ localSessions: true, canUpgradeSessions: true })
  fixture.relay(ONE, 1)
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 2)
  expect(await fixture.done()).toEqual(['1: done', '2: done'])
  expect(fixture.answers).toEqual([`${TWO} false`])
  fixture.relay(ONE, 3)
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 0, OpCode.createSession)
  fixture.relay(ONE, 4)
  expect(await fixture.done()).toEqual(['3: done', '0: done', '4: done'])
  fixture.revalidateFrom(TWO)
  fixture.relay(ONE, 5)
  fixture.relay(TWO, 6)
  expect(await fixture.done()).toEqual([`5: ${MOVED}`, '6: done'])
})

it('a follower closes its connection of a session that has moved to an observer, and executes none of its requests', async () => {
  const ensemble = await EnsembleFixture.start({ hasObservers: true })
  const { fixture: server, requests } = ensemble.learners[0]!
  const [writer, closer] = [await server.client({}), await server.client({})]
  await ensemble.settle()
  for (const client of [writer, closer]) {
    const { sessionId } = client.takeConnectResponse()!
    server.clientService.runTurn(() =>
      server.pipeline.revalidate(sessionId, 10_000, { onRevalidated() {}, onRefused() {} }, ONE),
    )
  }
  await ensemble.settle()
  const before = requests.length
  writer.read(1, OpCode.exists, '/')
  writer.create(2, '/a')
  closer.ask(1, OpCode.closeSession)
  await ensemble.settle()
  expect(writer.closed && closer.closed).toBe(true)
  expect(requests.length).toBe(before)
  expect(ensemble.table.size).toBe(2)
})

it('a follower rejects requests behind a sync of its own connection when the session has moved to an observer', async () => {
  const ensemble = await EnsembleFixture.start({ hasObservers: true })
  const { fixture: server, requests } = ensemble.learners[0]!
  const client = await server.connect()
  const { sessionId } = client.session!
  ensemble.holdsConfirms = true
  client.sync(1)
  client.create(2, '/a')
  await ensemble.settle()
  server.clientService.runTurn(() =>
    server.pipeline.revalidate(sessionId, 10_000, { onRevalidated() {}, onRefused() {} }, ONE),
  )
  ensemble.holdsConfirms = false
  await ensemble.settle()
  expect(client.closed).toBe(true)
  expect(requests.map(({ type }) => type)).toEqual([OpCode.createSession, OpCode.sync])
})

it("a follower accepts its own connection of a session that has returned from an observer, and rejects the observer's requests", async () => {
  const fixture = await RoutesFixture.start({ hasObservers: true })
  fixture.relay(ONE, 0, OpCode.createSession)
  fixture.revalidateFrom(0)
  fixture.relay(ONE, 1)
  expect(await fixture.done()).toEqual(['0: done', `1: ${MOVED}`])
})

it('a follower records the route of an unknown session when the leader confirms it, unless it has moved since', async () => {
  const fixture = await RoutesFixture.start()
  fixture.ensemble.learners[0]!.isHeld = true
  // The session is created on another server, and the transaction does not reach the learner.
  const { clientService, pipeline } = fixture.ensemble.leader
  const body = bytes(OpCode.createSession)
  clientService.runTurn(() =>
    pipeline.submitForwarded(fixture.ensemble.learners[1]!, {
      sessionId: ID,
      xid: 0,
      type: OpCode.createSession,
      body,
      identities: [],
    }),
  )
  expect(await fixture.done()).toEqual(['0: done'])
  fixture.revalidateFrom(ONE)
  fixture.revalidateFrom(TWO)
  await fixture.done()
  fixture.ensemble.learners[0]!.isHeld = false
  await fixture.done()
  expect(fixture.answers).toEqual([`${ONE} true`, `${TWO} true`])
  fixture.relay(ONE, 1)
  fixture.relay(TWO, 2)
  expect(await fixture.done()).toEqual([`1: ${MOVED}`, '2: done'])
})

it('SessionRoutes keeps a record until its session is closed', () => {
  const known = new Set<bigint>()
  const links = new SessionRoutes((id) => known.has(id))
  expect(links.claim(1n, ONE)).toBe(false)
  expect(links.canForward(1n, OpCode.setData, ONE)).toBe(true)
  expect(links.size).toBe(0)
  for (let id = 0n; id < 100n; id++) links.canForward(id, OpCode.createSession, ONE)
  expect(links.canForward(1n, OpCode.createSession, TWO)).toBe(false)
  expect(links.size).toBe(100)
  for (let id = 0n; id < 100n; id++) links.remove(id)
  expect(links.size).toBe(0)
})
