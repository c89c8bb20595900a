import { ErrorCode, OpCode, Reader, writeMultiRequest, Writer } from '@zabra/protocol'
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

it('a leader rejects a request that a session sent through a learner before it wrote through another server and returned', async () => {
  const ensemble = await EnsembleFixture.start()
  const [here, there] = ensemble.learners
  const client = await here!.fixture.connect()
  const { sessionId } = client.session!
  client.create(1, '/a')
  await ensemble.settle()
  const { clientService, pipeline } = ensemble.leader
  const request = (learner: object, cxid: number, type: number = OpCode.setData): void =>
    clientService.runTurn(() =>
      pipeline.submitForwarded(learner, { sessionId, xid: cxid, type, body: body(type), identities: [] }),
    )
  const answers: string[] = []
  const come = (learner: object, name: string): void =>
    clientService.runTurn(() =>
      pipeline.revalidateForLearner(learner, sessionId, 10_000, (valid) => answers.push(`${name} ${valid}`)),
    )

  ensemble.holdsConfirms = ensemble.holdsCommits = true
  request(here!, 2, OpCode.sync)
  request(here!, 3)
  come(there!, 'there')
  request(there!, 4)
  come(here!, 'back')
  expect(answers).toEqual(['there true'])
  ensemble.holdsConfirms = false
  await ensemble.settle()
  expect(answers).toEqual(['there true', 'back true'])
  request(here!, 5)
  const done = ensemble.proposals.map(({ payload }) => {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    return `${header.cxid}: ${txn.type === OpCode.error ? txn.err : 'done'}`
  })
  expect(done).toEqual(['4: done', `3: ${ErrorCode.SESSIONMOVED}`, '5: done'])
})

it('a leader rejects a request that a session sent through a learner before another server closed it, also with local sessions enabled', async () => {
  const ensemble = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
  const [here, there] = ensemble.learners
  const { clientService, pipeline } = ensemble.leader
  const sessionId = 0x7700_0000_0000_0001n
  const request = (learner: object, cxid: number, type: number): void => {
    const timeout = new Writer()
    timeout.int(10_000)
    const bytes = type === OpCode.createSession ? timeout.take() : body(type)
    clientService.runTurn(() =>
      pipeline.submitForwarded(learner, { sessionId, xid: cxid, type, body: bytes, identities: [] }),
    )
  }
  request(here!, 0, OpCode.createSession)
  await ensemble.settle()
  ensemble.holdsConfirms = true
  request(here!, 2, OpCode.sync)
  request(here!, 3, OpCode.setData)
  clientService.runTurn(() => pipeline.revalidateForLearner(there!, sessionId, 10_000, () => {}))
  request(there!, 4, OpCode.closeSession)
  await ensemble.settle()
  ensemble.holdsCommits = true
  ensemble.holdsConfirms = false
  await ensemble.settle()
  const done = ensemble.proposals.map(({ payload }) => {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    return `${header.cxid}: ${txn.type === OpCode.error ? txn.err : txn.type}`
  })
  expect(done.at(-1)).toBe(`3: ${ErrorCode.SESSIONEXPIRED}`)
})

it('a leader answers a revalidation behind a large request when the session that is created behind it is global', async () => {
  const ensemble = await EnsembleFixture.start()
  const { clientService, pipeline } = ensemble.leader
  const [here, there] = ensemble.learners
  const answers: boolean[] = []
  const sessionId = 0x7700_0000_0000_0001n
  const timeout = new Writer()
  timeout.int(10_000)
  const multi = new Writer()
  writeMultiRequest(
    multi,
    Array.from({ length: 5000 }, () => ({ type: OpCode.check, path: '/', version: -1 })),
  )
  const forward = (type: number, bytes: Uint8Array): void =>
    pipeline.submitForwarded(here!, { sessionId, xid: 0, type, body: bytes, identities: [] })
  clientService.runTurn(() => {
    forward(OpCode.multi, multi.take())
    forward(OpCode.createSession, timeout.take())
    pipeline.revalidateForLearner(there!, sessionId, 10_000, (valid) => answers.push(valid))
    // A quorum may confirm the leader before the request is prepared.
    for (const { done } of ensemble.confirms.splice(0)) done()
  })
  await ensemble.settle()
  expect(answers).toEqual([true])
})

it('a leader leaves a session with its owner when a learner that had asked for it before its creation is gone', async () => {
  const ensemble = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
  const [gone, owner] = ensemble.learners
  const { clientService, pipeline } = ensemble.leader
  const sessionId = 0x7700_0000_0000_0002n
  const request = (cxid: number, type: number, bytes: Uint8Array): void =>
    clientService.runTurn(() =>
      pipeline.submitForwarded(owner!, { sessionId, xid: cxid, type, body: bytes, identities: [] }),
    )
  const client = await ensemble.leader.connect()
  client.create(1, '/a')
  await ensemble.settle()
  ensemble.holdsConfirms = true
  const answers: boolean[] = []
  clientService.runTurn(() =>
    pipeline.revalidateForLearner(gone!, sessionId, 10_000, (valid) => answers.push(valid)),
  )
  clientService.runTurn(() => pipeline.removeLearner(gone!))
  const timeout = new Writer()
  timeout.int(10_000)
  request(0, OpCode.createSession, timeout.take())
  await ensemble.settle()
  ensemble.holdsConfirms = false
  await ensemble.settle()
  request(1, OpCode.setData, body(OpCode.setData))
  const { txn } = decodeLoggedTxn(new Reader(ensemble.proposals.at(-1)!.payload))
  expect([answers, txn.type]).toEqual([[], OpCode.setData])
})
