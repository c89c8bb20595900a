import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { EnsembleFixture } from './testing/ensemble-fixture.ts'

const body = (type: number): Uint8Array => {
  const writer = new Writer()
  writer.string('/a')
  if (type === OpCode.sync) return writer.take()
  writer.buffer(new Uint8Array(1))
  writer.int(-1)
  return writer.take()
}

it('carries out nothing of the first stay of a session at a learner once it has written elsewhere and come back', async () => {
  const trio = await EnsembleFixture.start()
  const [here, there] = trio.learners
  const client = await here!.fixture.client({})
  await trio.settle()
  const { sessionId } = client.takeConnectResponse()!
  client.create(1, '/a')
  await trio.settle()
  const { clientService: core, pipeline: writes } = trio.leader
  const request = (learner: object, cxid: number, type: number = OpCode.setData): void =>
    core.runTurn(() =>
      writes.submitForwarded(learner, { sessionId, cxid, type, body: body(type), identities: [] }),
    )
  const answers: string[] = []
  const come = (learner: object, name: string): void =>
    core.runTurn(() =>
      writes.revalidateInOrder(learner, sessionId, 10_000, (valid) => answers.push(`${name} ${valid}`)),
    )

  trio.holdsConfirms = trio.holdsCommits = true
  request(here!, 2, OpCode.sync)
  request(here!, 3)
  come(there!, 'there')
  request(there!, 4)
  come(here!, 'back')
  expect(answers).toEqual(['there true'])
  trio.holdsConfirms = false
  await trio.settle()
  expect(answers).toEqual(['there true', 'back true'])
  request(here!, 5)
  const done = trio.proposals.map(({ payload }) => {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    return `${header.cxid}: ${txn.type === OpCode.error ? txn.err : 'done'}`
  })
  expect(done).toEqual(['4: done', `3: ${ErrorCode.SESSIONMOVED}`, '5: done'])
})

it('carries out nothing of the first stay of a session at a learner once it has ended elsewhere, also where sessions may be local', async () => {
  const trio = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
  const [here, there] = trio.learners
  const { clientService: core, pipeline: writes } = trio.leader
  const sessionId = 0x7700_0000_0000_0001n
  const request = (learner: object, cxid: number, type: number): void => {
    const timeout = new Writer()
    timeout.int(10_000)
    const bytes = type === OpCode.createSession ? timeout.take() : body(type)
    core.runTurn(() =>
      writes.submitForwarded(learner, { sessionId, cxid, type, body: bytes, identities: [] }),
    )
  }
  request(here!, 0, OpCode.createSession)
  await trio.settle()
  trio.holdsConfirms = true
  request(here!, 2, OpCode.sync)
  request(here!, 3, OpCode.setData)
  core.runTurn(() => writes.revalidateForLearner(there!, sessionId, 10_000))
  request(there!, 4, OpCode.closeSession)
  await trio.settle()
  trio.holdsCommits = true
  trio.holdsConfirms = false
  await trio.settle()
  const done = trio.proposals.map(({ payload }) => {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    return `${header.cxid}: ${txn.type === OpCode.error ? txn.err : txn.type}`
  })
  expect(done.at(-1)).toBe(`3: ${ErrorCode.SESSIONEXPIRED}`)
})
