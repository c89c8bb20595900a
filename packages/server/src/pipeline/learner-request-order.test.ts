import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { LearnerRequestOrder } from './learner-request-order.ts'

it("LearnerRequestOrder runs a revalidation after the requests of the session's first stay", () => {
  const done: string[] = []
  let over = (): void => {}
  const gates = new LearnerRequestOrder({
    sync: (_, synced) => (over = synced),
    process: (_, { cxid }) => done.push(`request ${cxid}`),
  })
  const learner = {}
  const request = (cxid: number, type: number) => ({
    sessionId: 1n,
    cxid,
    type,
    body: new Uint8Array(0),
    identities: [],
  })
  gates.runInOrder(learner, () => done.push('came'))
  gates.submit(learner, request(1, OpCode.sync))
  gates.runInOrder(learner, () => done.push('came while nothing waits'))
  gates.submit(learner, request(2, OpCode.setData))
  gates.runInOrder(learner, () => done.push('came back'))
  gates.submit(learner, request(3, OpCode.setData))
  expect(done).toEqual(['came', 'came while nothing waits'])
  over()
  expect(done.slice(2)).toEqual(['request 2', 'came back', 'request 3'])
})
