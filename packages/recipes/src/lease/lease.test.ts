import { UsageError, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { client as a, cutOff, other as b, run, setupEachTest, world } from '../testing/setup.ts'
import { bytes, rejectionOf, pausableClock } from '../testing/world.ts'
import { decodeGrant, encodeGrant, isFree, expiredGrant } from './grant.ts'
import { Lease } from './lease.ts'

describe('a grant', () => {
  const grant = { holder: 'a', durationMs: 1000, mark: 'm' }

  it('expires by server time only', () => {
    expect(isFree(grant, 5000, 5999, 'b')).toBe(false)
    expect(isFree(grant, 5000, 6001, 'b')).toBe(true)
    expect(isFree(grant, 5000, 5001, 'a')).toBe(true)
    expect(isFree(undefined, 5000, 5001, 'b')).toBe(true)
  })

  it('with unreadable data counts as no lease', () => {
    expect(decodeGrant(encodeGrant(grant))).toEqual(grant)
    for (const data of ['', 'x', '1', 'null', '{}', '{"holder":1}'])
      expect(decodeGrant(bytes(data))).toBeUndefined()
  })
})

describe('a lease', () => {
  setupEachTest('a', 'a')
  const by = (client: Client, holder: string, durationMs = 5000) =>
    new Lease(client, '/dir/lease', { holder, durationMs }).tryAcquire()

  it('has one holder until its duration has passed, and outlives its session', async () => {
    const first = (await run(by(a, 'a')))!
    first.assertHeld()
    expect(await run(by(b, 'b'))).toBeUndefined()
    const closed = a.close()
    await world.settle()
    await closed
    expect(first.signal.reason).toMatchObject({ reason: 'closed' })
    expect(await run(by(b, 'b'))).toBeUndefined()
    await world.advance(5001)
    const second = (await run(by(b, 'b')))!
    expect(second.token).toBeGreaterThan(first.token)
    expect((await run(b.getChildren('/dir'))).children).toEqual(['lease'])
    await run(second.release())
  })

  it('keeps its token on renewal, and rejects a late renewal', async () => {
    const held = (await run(by(a, 'a')))!
    const { token } = held
    await world.advance(4000)
    await run(held.renew())
    await world.advance(4000)
    held.assertHeld()
    expect(held.token).toBe(token)
    await world.advance(1000)
    expect(() => held.assertHeld()).toThrow('time has passed')
    await expect(held.renew()).rejects.toMatchObject({ reason: 'leasePassed' })
  })

  it('does not depend on the clocks of its clients', async () => {
    const wrong = pausableClock(world)
    const c = await world.client({ platform: { clock: wrong.clock } })
    wrong.standStill(3_600_000)
    const held = (await run(by(a, 'a')))!
    expect(await run(by(c, 'c'))).toBeUndefined()
    held.assertHeld()
    await run(held.release())
    const next = (await run(by(c, 'c')))!
    next.assertHeld()
    await run(next.release())
  })

  it('rejects the renewal of a holder after another client took over, and changes nothing', async () => {
    const process = pausableClock(world)
    const c = await world.client({ platform: { clock: process.clock } })
    process.standStill(-10_000)
    const slow = (await run(by(c, 'slow', 60_000)))!
    await run(b.setData('/dir/lease', encodeGrant({ holder: 'b', durationMs: 5000, mark: 'x' })))
    expect(await run(rejectionOf(slow.renew()))).toMatchObject({ reason: 'revoked' })
    await run(slow.release())
    expect(decodeGrant((await run(b.getData('/dir/lease'))).data)).toMatchObject({ holder: 'b' })
  })

  it('is granted to one of several concurrent clients after it expired', async () => {
    await run(by(a, 'gone', 1000))
    await world.advance(1001)
    const taken = await run(Promise.all([by(a, 'a'), by(b, 'b')]))
    expect(taken.filter((one) => one !== undefined)).toHaveLength(1)
  })

  it('is granted again to a restarted holder', async () => {
    const before = (await run(by(a, 'a')))!
    const after = (await run(by(b, 'a')))!
    expect(after.token).toBeGreaterThan(before.token)
    await expect(run(before.renew())).rejects.toMatchObject({ reason: 'revoked' })
    await run(after.release())
    await run(after.release())
    expect((await run(b.getChildren('/dir'))).children).toEqual(['lease'])
    expect(await run(by(b, 'b'))).toBeDefined()
  })

  it('is not ended by a delayed release of an earlier holder', async () => {
    const late = await world.client({ servers: 'late:2181' })
    const first = (await run(by(late, 'late', 1000)))!
    const restore = cutOff('late')
    await world.settle()
    const releasing = first.release()
    await world.advance(2000)
    // Other holders take and release it meanwhile; each writes a version.
    await run((await run(by(a, 'a', 60_000)))!.release())
    const held = (await run(by(b, 'b', 60_000)))!
    restore()
    await world.within(20_000, releasing)
    expect(await run(by(a, 'a', 60_000))).toBeUndefined()
    await run(held.renew())
    await run(held.release())
  })

  it('is free one millisecond after its duration, because servers truncate times', () => {
    const grant = { holder: 'a', durationMs: 1000, mark: 'x' }
    expect([isFree(grant, 0, 1000, 'b'), isFree(grant, 0, 1001, 'b')]).toEqual([false, true])
    expect([isFree(expiredGrant(grant), 5, 5, 'b'), isFree(grant, 0, 0, 'a')]).toEqual([true, true])
  })

  it('recognises its own grant when the reply is lost', async () => {
    const held = (await run(by(a, 'a', 60_000)))!
    world.loseReply()
    await world.within(5000, held.renew())
    held.assertHeld()
    await run(held.release())
  })

  it('stays held over renewals that overlap', async () => {
    const held = (await run(by(a, 'a', 60_000)))!
    await run(Promise.all([held.renew(), held.renew()]))
    held.assertHeld()
    await run(held.release())
  })

  it('is free when it is released during a renewal', async () => {
    const held = (await run(by(a, 'a', 60_000)))!
    const renewed = rejectionOf(held.renew())
    await run(held.release())
    expect(await run(renewed)).toMatchObject({ reason: 'released' })
    expect(await run(by(b, 'b'))).toBeDefined()
  })

  /** A client whose connection is cut when its next write of the lease arrives, applied or not, and stays cut. */
  async function cutAtWrite(
    isApplied: boolean,
  ): Promise<{ c: Client; arm: () => void; restore: () => void }> {
    const c = await world.client({ servers: 'c:2181' })
    let restore = (): void => {}
    const arm = (): void => {
      world.faults.toServer = (chunk, { server }) => {
        if (server.host !== 'c' || !new TextDecoder().decode(chunk).includes('"holder"')) return chunk
        delete world.faults.toServer
        world.faults.toClient = (reply, to) => (to.server.host === 'c' ? undefined : reply)
        world.clock.immediate(() => (restore = cutOff('c')))
        return isApplied ? chunk : undefined
      }
    }
    return {
      c,
      arm,
      restore: () => {
        delete world.faults.toClient
        restore()
      },
    }
  }

  it.each([true, false])(
    'is renewed though the session expires during the renewal (applied: %s)',
    async (isApplied) => {
      const { c, arm, restore } = await cutAtWrite(isApplied)
      const held = (await run(by(c, 'c', 600_000)))!
      arm()
      const renewed = held.renew()
      await world.advance(30_000)
      restore()
      await world.within(20_000, renewed)
      await run(held.renew())
      held.assertHeld()
      await run(held.release())
      expect(await run(by(b, 'b'))).toBeDefined()
    },
  )

  it.each([true, false])(
    'keeps no caller whose time is up during its write, and is free then (applied: %s)',
    async (isApplied) => {
      const { c, arm, restore } = await cutAtWrite(isApplied)
      await run((await run(by(b, 'b')))!.release())
      arm()
      const lease = new Lease(c, '/dir/lease', { holder: 'c', durationMs: 600_000 })
      const failed = rejectionOf(lease.acquire({ timeoutMs: 300 }))
      expect(await world.within(400, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
      restore()
      await world.advance(20_000)
      expect(await run(by(b, 'b'))).toBeDefined()
    },
  )

  it('is free when its session expires while it is created for a caller whose time is up', async () => {
    const { c, arm, restore } = await cutAtWrite(true)
    await run(b.create('/dir'))
    arm()
    const lease = new Lease(c, '/dir/lease', { holder: 'c', durationMs: 600_000 })
    const failed = rejectionOf(lease.acquire({ timeoutMs: 300 }))
    expect(await world.within(400, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
    await world.advance(30_000)
    restore()
    await world.advance(20_000)
    expect(await run(by(b, 'b'))).toBeDefined()
  })

  it('that ends during a renewal is not renewed by it', async () => {
    const { c, arm, restore } = await cutAtWrite(false)
    const held = (await run(by(c, 'c', 5000)))!
    arm()
    const failed = rejectionOf(held.renew())
    expect(await world.within(5001, failed)).toMatchObject({ reason: 'leasePassed' })
    restore()
    await world.advance(3000)
    expect(await run(by(b, 'b'))).toBeDefined()
  })

  it('refuses an invalid duration', () => {
    expect(() => by(a, 'a', 0)).toThrow(UsageError)
  })
})
