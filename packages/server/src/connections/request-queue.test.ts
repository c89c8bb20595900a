import { ErrorCode, OpCode, Reader, BufferPool } from '@zabra/protocol'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RequestQueue, QueuedRequest } from './request-queue.ts'

const put = (line: RequestQueue, xid: number, body: Uint8Array): void => {
  // What arrives lies in an array that the next bytes are read into.
  const chunk = new Uint8Array(body.length + 7)
  chunk.set(body, 3)
  line.pushDeferred(new QueuedRequest(xid, OpCode.getData, 0, ErrorCode.OK), chunk, 3, 3 + body.length)
  chunk.fill(0xee)
}

const bodyOf = (waiting: QueuedRequest): Uint8Array => {
  const reader = waiting.readBody(new Reader())
  return reader.raw(reader.remaining).slice()
}

it('keeps every body as it came until it is answered, whatever other clients put off meanwhile', () => {
  const size = fc.oneof(fc.nat(60), fc.integer({ min: 1000, max: 1100 }), fc.nat(5000))
  const step = fc.record({ client: fc.nat(2), length: size, answers: fc.constantFrom(0, 0, 0, 1, 2, 6) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const rooms = new BufferPool()
      const lines = [new RequestQueue(rooms), new RequestQueue(rooms), new RequestQueue(rooms)]
      const kept: { readonly xid: number; readonly body: Uint8Array }[][] = [[], [], []]
      for (const [xid, { client, length, answers }] of steps.entries()) {
        const line = lines[client]!
        const body = new Uint8Array(length).fill(xid + 1)
        put(line, xid, body)
        kept[client]!.push({ xid, body })
        for (let i = 0; i < answers; i++) {
          const first = line.shift()
          const expected = kept[client]!.shift()
          expect(first?.xid).toBe(expected?.xid)
          if (first !== undefined) expect(Buffer.compare(bodyOf(first), expected!.body)).toBe(0)
        }
        line.releaseBuffer()
        const bytes = kept[client]!.reduce((sum, { body }) => sum + body.length, 0)
        expect(line.byteSize).toBe(bytes + 200 * kept[client]!.length)
      }
    }),
    { seed: 12, numRuns: 60 },
  )
})

it('gives its room to others once nothing waits any more, and not before', () => {
  const rooms = new BufferPool()
  const line = new RequestQueue(rooms)
  put(line, 1, new Uint8Array(10))
  put(line, 2, new Uint8Array(10))
  line.shift()
  line.releaseBuffer()
  expect(rooms.freeBytes).toBe(0)
  line.shift()
  line.releaseBuffer()
  expect(rooms.freeBytes).toBe(512)
})

it('keeps a body that came in an array of the platform, whose `slice` gives a view', () => {
  for (const length of [10, 1100]) {
    const line = new RequestQueue(new BufferPool())
    const chunk = Buffer.alloc(length, 7)
    line.pushDeferred(new QueuedRequest(1, OpCode.getData, 0), chunk, 0, length)
    chunk.fill(0xee)
    expect(bodyOf(line.shift()!).every((byte) => byte === 7)).toBe(true)
  }
})
