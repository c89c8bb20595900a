import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { decodeLoggedTxn } from '../../log/index.ts'
import { Trio } from './testdata/trio.ts'

const body = (type: number): Uint8Array => {
  const writer = new Writer()
  writer.string('/a')
  if (type === OpCode.sync) return writer.take()
  writer.buffer(new Uint8Array(1))
  writer.int(-1)
  return writer.take()
}

it('carries out nothing of the first stay of a session at a learner once it has written elsewhere and come back', async () => {
  const trio = await Trio.start()
  const [here, there] = trio.learners
  const client = await here!.side.client({})
  await trio.settle()
  const { sessionId } = client.greeting()!
  client.create(1, '/a')
  await trio.settle()
  const { core, writes } = trio.leader
  const request = (learner: object, cxid: number, type: number = OpCode.setData): void =>
    core.turn(() => writes.request(learner, { sessionId, cxid, type, body: body(type), identities: [] }))
  const answers: string[] = []
  const come = (learner: object, name: string): void =>
    core.turn(() =>
      writes.revalidateBehind(learner, sessionId, 10_000, (valid) => answers.push(`${name} ${valid}`)),
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
  const trio = await Trio.start({ localSessions: true, upgradesSessions: true })
  const [here, there] = trio.learners
  const { core, writes } = trio.leader
  const sessionId = 0x7700_0000_0000_0001n
  const request = (learner: object, cxid: number, type: number): void => {
    const timeout = new Writer()
    timeout.int(10_000)
    const bytes = type === OpCode.createSession ? timeout.take() : body(type)
    core.turn(() => writes.request(learner, { sessionId, cxid, type, body: bytes, identities: [] }))
  }
  request(here!, 0, OpCode.createSession)
  await trio.settle()
  trio.holdsConfirms = true
  request(here!, 2, OpCode.sync)
  request(here!, 3, OpCode.setData)
  core.turn(() => writes.revalidateFor(there!, sessionId, 10_000))
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
