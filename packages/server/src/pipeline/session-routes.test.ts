import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { SessionRoutes } from './session-routes.ts'
import { EnsembleFixture, type EnsembleFixtureOptions } from './testing/ensemble-fixture.ts'

const ID = 0x7700_0000_0000_0001n
/** Two observers behind the first learner. */
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

/** A learner with two observers, another learner, and what the leader has made of their requests. */
class Rig {
  readonly trio: EnsembleFixture
  readonly answers: string[] = []
  readonly synced: number[] = []

  private constructor(trio: EnsembleFixture) {
    this.trio = trio
  }

  static async start(options: EnsembleFixtureOptions = {}): Promise<Rig> {
    return new Rig(await EnsembleFixture.start({ hasObservers: true, ...options }))
  }

  get #near() {
    return this.trio.learners[0]!.fixture
  }

  relay(from: number, cxid: number, type: number = OpCode.setData): void {
    const request = { sessionId: ID, cxid, type, body: bytes(type), identities: [] }
    this.#near.clientService.runTurn(() =>
      this.#near.pipeline.forwardFromObserver(request, from, () => void this.synced.push(cxid)),
    )
  }

  comes(from: number): void {
    const revalidated = (valid: boolean): void => void this.answers.push(`${from} ${valid}`)
    this.#near.clientService.runTurn(() =>
      this.#near.pipeline.revalidate(ID, 10_000, { onRevalidated: revalidated }, from),
    )
  }

  /** The session goes to the other learner. */
  goes(): void {
    const { clientService: core, pipeline: writes } = this.trio.learners[1]!.fixture
    core.runTurn(() => writes.revalidate(ID, 10_000, { onRevalidated() {} }))
  }

  /** What was committed of the session since the last call. */
  async done(): Promise<string[]> {
    await this.trio.settle()
    return this.trio.history.splice(0).flatMap(({ payload }) => {
      const { header, txn } = decodeLoggedTxn(new Reader(payload))
      return header.sessionId === ID
        ? [`${header.cxid}: ${txn.type === OpCode.error ? txn.err : 'done'}`]
        : []
    })
  }
}

const MOVED = ErrorCode.SESSIONMOVED

it('has what an observer sends for a session refused once that has come by another one', async () => {
  const rig = await Rig.start()
  rig.relay(ONE, 0, OpCode.createSession)
  rig.relay(ONE, 1)
  expect(await rig.done()).toEqual(['0: done', '1: done'])
  // What is in front of the question is carried out, and what is behind it never, whether it is answered or not.
  rig.relay(ONE, 2)
  rig.comes(TWO)
  rig.relay(ONE, 3)
  expect(await rig.done()).toEqual(['2: done', `3: ${MOVED}`])
  expect(rig.answers).toEqual([`${TWO} true`])
  rig.relay(TWO, 1)
  rig.relay(ONE, 4)
  rig.relay(ONE, 5, OpCode.closeSession)
  rig.relay(TWO, 2)
  expect(await rig.done()).toEqual(['1: done', `4: ${MOVED}`, `5: ${MOVED}`, '2: done'])
  // And back.
  rig.comes(ONE)
  rig.relay(ONE, 6)
  rig.relay(TWO, 3)
  expect(await rig.done()).toEqual(['6: done', `3: ${MOVED}`])
})

it('answers syncs of sessions that have moved, since they change nothing', async () => {
  const rig = await Rig.start()
  rig.relay(ONE, 0, OpCode.createSession)
  rig.comes(TWO)
  rig.relay(ONE, 1, OpCode.sync)
  rig.relay(ONE, 2)
  rig.relay(TWO, 3, OpCode.sync)
  expect(await rig.done()).toEqual(['0: done', `2: ${MOVED}`])
  expect(rig.synced).toEqual([1, 3])
})

it('has nothing carried out of the first stay of a session behind it when it comes back from elsewhere by another way', async () => {
  const rig = await Rig.start()
  rig.relay(ONE, 0, OpCode.createSession)
  await rig.done()
  rig.goes()
  await rig.done()
  rig.relay(ONE, 1)
  expect(await rig.done()).toEqual([`1: ${MOVED}`])
  rig.comes(TWO)
  rig.relay(ONE, 2)
  rig.relay(TWO, 3)
  expect(await rig.done()).toEqual([`2: ${MOVED}`, '3: done'])
  // Away, and back by the way by which it left.
  rig.goes()
  await rig.done()
  rig.comes(TWO)
  rig.relay(TWO, 4)
  expect(await rig.done()).toEqual(['4: done'])
})

it('has a session refused that comes from before the term by one way and then by another', async () => {
  const rig = await Rig.start({ known: [[ID, 10_000]] })
  rig.comes(ONE)
  rig.relay(ONE, 1)
  rig.comes(TWO)
  rig.relay(ONE, 2)
  rig.relay(TWO, 3)
  expect(await rig.done()).toEqual(['1: done', `2: ${MOVED}`, '3: done'])
})

it('lets a local session of an observer be where it is when its client asks elsewhere, and moves it once it is global', async () => {
  const rig = await Rig.start({ localSessions: true, canUpgradeSessions: true })
  rig.relay(ONE, 1)
  rig.comes(TWO)
  rig.relay(ONE, 2)
  expect(await rig.done()).toEqual(['1: done', '2: done'])
  expect(rig.answers).toEqual([`${TWO} false`])
  rig.relay(ONE, 3)
  rig.comes(TWO)
  rig.relay(ONE, 0, OpCode.createSession)
  rig.relay(ONE, 4)
  expect(await rig.done()).toEqual(['3: done', '0: done', '4: done'])
  rig.comes(TWO)
  rig.relay(ONE, 5)
  rig.relay(TWO, 6)
  expect(await rig.done()).toEqual([`5: ${MOVED}`, '6: done'])
})

it('closes the own connection of a session that has come by an observer, and has nothing of it carried out', async () => {
  const trio = await EnsembleFixture.start({ hasObservers: true })
  const { fixture: side, requests } = trio.learners[0]!
  const [writer, closer] = [await side.client({}), await side.client({})]
  await trio.settle()
  for (const client of [writer, closer]) {
    const { sessionId } = client.takeConnectResponse()!
    side.clientService.runTurn(() => side.pipeline.revalidate(sessionId, 10_000, { onRevalidated() {} }, ONE))
  }
  await trio.settle()
  const before = requests.length
  writer.read(1, OpCode.exists, '/')
  writer.create(2, '/a')
  closer.ask(1, OpCode.closeSession)
  await trio.settle()
  expect(writer.closed && closer.closed).toBe(true)
  expect(requests.length).toBe(before)
  expect(trio.table.size).toBe(2)
})

it('refuses what waits behind a sync of an own connection when the session has come by an observer meanwhile', async () => {
  const trio = await EnsembleFixture.start({ hasObservers: true })
  const { fixture: side, requests } = trio.learners[0]!
  const client = await side.client({})
  await trio.settle()
  const { sessionId } = client.takeConnectResponse()!
  trio.holdsConfirms = true
  client.ask(1, OpCode.sync, (w) => w.string('/'))
  client.create(2, '/a')
  await trio.settle()
  side.clientService.runTurn(() => side.pipeline.revalidate(sessionId, 10_000, { onRevalidated() {} }, ONE))
  trio.holdsConfirms = false
  await trio.settle()
  expect(client.closed).toBe(true)
  expect(requests.map(({ type }) => type)).toEqual([OpCode.createSession, OpCode.sync])
})

it('takes an own connection of a session that has come back from an observer, and nothing of the observer', async () => {
  const rig = await Rig.start({ hasObservers: true })
  rig.relay(ONE, 0, OpCode.createSession)
  rig.comes(0)
  rig.relay(ONE, 1)
  expect(await rig.done()).toEqual(['0: done', `1: ${MOVED}`])
})

it('notes a session that is not known yet when the leader knows it, unless it has come by another way since', async () => {
  const rig = await Rig.start()
  rig.trio.learners[0]!.isHeld = true
  // It begins elsewhere, and the learner does not hear of it.
  const { clientService: core, pipeline: writes } = rig.trio.leader
  const body = bytes(OpCode.createSession)
  core.runTurn(() =>
    writes.submitForwarded(rig.trio.learners[1]!, {
      sessionId: ID,
      cxid: 0,
      type: OpCode.createSession,
      body,
      identities: [],
    }),
  )
  expect(await rig.done()).toEqual(['0: done'])
  rig.comes(ONE)
  rig.comes(TWO)
  await rig.done()
  rig.trio.learners[0]!.isHeld = false
  await rig.done()
  expect(rig.answers).toEqual([`${ONE} true`, `${TWO} true`])
  rig.relay(ONE, 1)
  rig.relay(TWO, 2)
  expect(await rig.done()).toEqual([`1: ${MOVED}`, '2: done'])
})

it('keeps a note as long as its session lives, and no longer', () => {
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
