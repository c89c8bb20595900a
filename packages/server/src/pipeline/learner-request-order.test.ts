import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { LearnerRequestOrder } from './learner-request-order.ts'

it('LearnerRequestOrder runs an action after all waiting requests of the learner, and before later ones', () => {
  const done: string[] = []
  let endSync = (): void => {}
  const order = new LearnerRequestOrder({
    sync: (_, synced) => (endSync = synced),
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
  order.runInOrder(learner, () => done.push('first action'))
  order.submit(learner, request(1, OpCode.sync))
  order.runInOrder(learner, () => done.push('second action'))
  order.submit(learner, request(2, OpCode.setData))
  order.runInOrder(learner, () => done.push('third action'))
  order.submit(learner, request(3, OpCode.setData))
  expect(done).toEqual(['first action', 'second action'])
  endSync()
  expect(done.slice(2)).toEqual(['request 2', 'third action', 'request 3'])
})
