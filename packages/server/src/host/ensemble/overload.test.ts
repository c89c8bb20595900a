import { expect, it } from 'vitest'
import { Ensemble } from './testdata/ensemble.ts'

it.each([1, 2, 3])(
  'reads clients of member %i on once the writes that were too many are done',
  async (id) => {
    const ensemble = await Ensemble.start(3, { globalOutstandingLimit: 1 })
    const client = await ensemble.client(id)
    client.create(1, '/a')
    for (let xid = 2; xid <= 40; xid++) {
      client.set(xid, '/a', 'x')
      if (xid % 8 === 0) await ensemble.settle()
    }
    await ensemble.until('all answers', () => client.frames.length >= 40, 3000)
    expect(client.heard().filter((reply) => reply.endsWith(':0')).length).toBe(40)
  },
)
