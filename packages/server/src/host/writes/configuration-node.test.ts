import { EventType, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { EPOCH, Trio } from './testdata/trio.ts'

describe('the configuration node', () => {
  it('shows what is in force on each server, without a transaction, and tells who watches it once', async () => {
    const trio = await Trio.start()
    const { side } = trio.learners[0]!
    const client = await side.client({})
    await trio.settle()
    client.greeting()
    client.look(1, OpCode.getData, '/zookeeper/config', true)
    await trio.settle()
    client.heard()
    const before = side.tree.digest
    side.core.showConfiguration('server.1=…\nversion=300000000', EPOCH)
    side.core.showConfiguration('server.1=…\nversion=300000000', EPOCH)
    client.look(2, OpCode.getData, '/zookeeper/config', true)
    await trio.settle()
    const [event, reply] = client.replies()
    expect(client.event(event!)).toMatchObject({ type: EventType.NodeDataChanged, path: '/zookeeper/config' })
    expect(new TextDecoder().decode(reply!.body.buffer()!)).toBe('server.1=…\nversion=300000000')
    expect([side.tree.digest, side.tree.lastZxid]).toEqual([before, EPOCH + 1])
  })
})
