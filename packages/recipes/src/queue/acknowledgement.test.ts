import { describe, expect, it } from 'vitest'
import { utf8, type Client } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { client, cutOff, setupEachTest, other, run, world } from '../testing/setup.ts'
import { tree } from '../testing/fault-fixture.ts'
import { rejectionOf, watchSettled } from '../testing/world.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import type { Message } from './message.ts'
import { Queue } from './queue.ts'

setupEachTest('a', 'b')
const queueOf = (on: Client): Queue<string> => new Queue(on, '/q', { codec: utf8 })
const nextOf = async (messages: AsyncGenerator<Message<string>>): Promise<Message<string>> => {
  const { done, value } = await run(messages.next())
  if (done) throw new Error('Expected a message')
  return value as Message<string>
}
const leftOver = async (): Promise<string[]> => {
  await world.settle()
  return (await run(tree(client))).filter((path) => /\/(items|claims|line)\//.test(path))
}

describe('an acknowledgement', () => {
  it('of another consumer is not taken for the own one that was never sent', async () => {
    await run(queueOf(client).put('x'))
    const message = await nextOf(queueOf(other).receive())
    const restore = cutOff('b')
    await world.settle()
    const acknowledged = rejectionOf(message.ack())
    await world.advance(20_000)
    await run((await nextOf(queueOf(client).receive())).ack())
    restore()
    await world.advance(12_000)
    expect(await run(acknowledged)).toBeInstanceOf(LostError)
  })

  it('may be applied, as its error says, when the client closes before the outcome is known', async () => {
    const dying = await world.client({ servers: 'dying:2181' })
    await run(queueOf(client).put('x'))
    const message = (await run(queueOf(dying).receive().next())).value!
    await world.settle()
    world.faults.toClient = (chunk, { server }) => (server.host === 'dying' ? undefined : chunk)
    const failed = rejectionOf(message.ack())
    await world.settle()
    cutOff('dying')
    await world.advance(50)
    await run(dying.close())
    expect(await run(failed)).toMatchObject({ code: 'CLOSED', maybeApplied: true })
    expect(await run(queueOf(client).size())).toBe(0)
  })

  it('is ambiguous when the session expired during it and the item is gone', async () => {
    await run(queueOf(client).put('x'))
    const message = await nextOf(queueOf(other).receive())
    let restore = (): void => {}
    world.faults.toServer = (chunk, wire) => {
      if (wire.server.host !== 'b') return chunk
      delete world.faults.toServer
      restore = cutOff('b')
      return undefined
    }
    const acknowledged = rejectionOf(message.ack())
    await world.advance(20_000)
    await run((await nextOf(queueOf(client).receive())).ack())
    restore()
    await world.advance(12_000)
    const error = await run(acknowledged)
    expect(error).toBeInstanceOf(AmbiguousResultError)
    expect((error as AmbiguousResultError).value).toBe('x')
  })

  it('that is not awaited lets the next claim follow at once', async () => {
    await run(queueOf(client).putAll(['a', 'b']))
    const messages = queueOf(other).receive()
    const first = await nextOf(messages)
    // From here on no reply arrives at the consumer; its requests are counted.
    const held: (() => void)[] = []
    let asked = 0
    world.faults.toServer = (chunk, wire) => {
      for (let at = 0; wire.server.host === 'b' && at < chunk.length; asked++)
        at += 4 + new DataView(chunk.buffer, chunk.byteOffset + at).getInt32(0)
      return chunk
    }
    world.faults.toClient = (chunk, wire) => {
      if (wire.server.host !== 'b') return chunk
      held.push(() => wire.deliver(chunk))
      return undefined
    }
    let order = ''
    void first.ack().then(() => (order += 'acknowledged '))
    const next = messages.next().then((result) => {
      order += 'received'
      return result
    })
    await world.settle()
    expect(asked).toBe(2)
    delete world.faults.toServer
    delete world.faults.toClient
    for (const deliver of held) deliver()
    const { value } = await run(next)
    expect([order, (value as Message<string>).value]).toEqual(['acknowledged received', 'b'])
    await run((value as Message<string>).ack())
    await run(messages.return())
    expect(await leftOver()).toEqual([])
  })

  it('in flight is awaited when the loop ends', async () => {
    await run(queueOf(client).put('a'))
    const messages = queueOf(other).receive()
    const first = await nextOf(messages)
    const restore = cutOff('b')
    await world.settle()
    void first.ack()
    const left = messages.return()
    const isLeft = watchSettled(left)
    await world.settle()
    expect(isLeft()).toBe(false)
    restore()
    await world.advance(3000)
    await run(left)
    expect(await leftOver()).toEqual([])
  })
})
