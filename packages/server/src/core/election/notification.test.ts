import { ProtocolError } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeNotification, encodeNotification, NO_VALUE, PeerState, type Notification } from './index.ts'

const bytes = (...hex: string[]): Uint8Array =>
  Uint8Array.from(hex.join('').replaceAll(' ', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
const hex = (payload: Uint8Array): string =>
  [...payload].map((byte) => byte.toString(16).padStart(2, '0')).join('')
const ascii = (text: string): string => hex(new TextEncoder().encode(text))

const nobody = '8000000000000000'
const members = [1, 2, 3].map((id) => `server.${id}=127.0.0.1:2720${id}:2730${id}:participant`)
const configuration = [...members, 'version=0'].join('\n')

/** Sent by servers of 3.8 in their first round and then with their roles in epoch 1, and by one of 3.9 that leads in epoch 2. */
const captured = {
  looking: bytes(
    '00000000 0000000000000001 0000000000000000 0000000000000001 0000000000000000 00000002 0000008a',
    ascii(configuration),
  ),
  following: bytes(
    '00000001 0000000000000002 0000000000000000 0000000000000001 0000000000000001 00000002 0000008a',
    ascii(configuration),
  ),
  leadingFirst: bytes(
    '00000002 0000000000000002 0000000000000000 0000000000000001 0000000000000001 00000002 0000008a',
    ascii(configuration),
  ),
  leading: bytes(
    '00000002 0000000000000002 0000000100000006 0000000000000002 0000000000000002 00000002 0000008a',
    ascii(configuration),
  ),
}

describe('a notification', () => {
  it('is read as servers of 3.8 and 3.9 send it', () => {
    expect(decodeNotification(captured.looking)).toEqual({
      state: 'looking',
      vote: { leader: 1, zxid: 0, round: 1, epoch: 0 },
      version: 2,
      configuration,
    })
    const elected = { leader: 2, zxid: 0, round: 1, epoch: 1 }
    expect(decodeNotification(captured.following)).toMatchObject({ state: 'following', vote: elected })
    expect(decodeNotification(captured.leadingFirst)).toMatchObject({ state: 'leading', vote: elected })
    expect(decodeNotification(captured.leading)).toEqual({
      state: 'leading',
      vote: { leader: 2, zxid: 0x100000006, round: 2, epoch: 2 },
      version: 2,
      configuration,
    })
  })

  it('is written as they write it', () => {
    for (const payload of Object.values(captured)) {
      const { state, vote } = decodeNotification(payload)
      expect(hex(encodeNotification(state, vote, configuration))).toBe(hex(payload))
    }
  })

  it('names nobody where an observer looks', () => {
    const payload = bytes('00000000', nobody, nobody, '0000000000000003', nobody, '00000002 00000000')
    const vote = { leader: NO_VALUE, zxid: NO_VALUE, round: 3, epoch: NO_VALUE }
    expect(decodeNotification(payload)).toEqual({ state: 'looking', vote, version: 2, configuration: '' })
    expect(hex(encodeNotification('looking', vote, ''))).toBe(hex(payload))
  })

  it('shows the data of a joiner that cannot be voted for', () => {
    const payload = bytes(
      '00000000',
      nobody,
      '0000000100000006 0000000000000001 0000000000000001 00000002 00000000',
    )
    expect(decodeNotification(payload).vote).toEqual({
      leader: NO_VALUE,
      zxid: 0x100000006,
      round: 1,
      epoch: 1,
    })
  })

  it('of servers before 3.4 has the epoch of its zxid', () => {
    const payload = bytes('00000002 0000000000000003 0000000500000001 0000000000000001')
    const vote = { leader: 3, zxid: 0x500000001, round: 1, epoch: 5 }
    expect(decodeNotification(payload)).toEqual({ state: 'leading', vote, version: 0 })
  })

  it('of 3.4.6 counts as one without version, whatever it says', () => {
    const payload = bytes(
      '00000001 0000000000000003 0000000500000001 0000000000000001 0000000000000004 00000001',
    )
    const vote = { leader: 3, zxid: 0x500000001, round: 1, epoch: 4 }
    expect(decodeNotification(payload)).toEqual({ state: 'following', vote, version: 0 })
  })

  it('of version 1 carries no configuration', () => {
    const head = '00000003 0000000000000003 0000000000000000 0000000000000001 0000000000000000 00000001'
    for (const tail of ['00000000', '00000002 6162', 'ff'])
      expect(decodeNotification(bytes(head, tail))).toEqual({
        state: 'observing',
        vote: { leader: 3, zxid: 0, round: 1, epoch: 0 },
        version: 1,
      })
  })

  it('may have the zxid -1 of a server that does not trust its data', () => {
    const payload = bytes(
      '00000000 0000000000000001 ffffffffffffffff 0000000000000001 0000000000000000 00000002 00000000',
    )
    expect(decodeNotification(payload).vote.zxid).toBe(-1)
  })

  const start = '00000000 0000000000000001 0000000000000000 0000000000000001'
  it.each([
    ['nothing', ''],
    ['27 bytes', start.slice(0, -2)],
    ['32 bytes', `${start} 00000000`],
    ['36 bytes, as 3.4.0 to 3.4.5 send them', `${start} 0000000000000000`],
    ['39 bytes', `${start} 0000000000000000 000000`],
    ['version 2 without a configuration', `${start} 0000000000000000 00000002 0000`],
    ['a configuration of negative length', `${start} 0000000000000000 00000002 ffffffff`],
    ['a configuration longer than the message', `${start} 0000000000000000 00000002 00000003 6162`],
    ['a state that there is not', `00000004${start.slice(8)} 0000000000000000 00000002 00000000`],
    ['a negative state', `ffffffff${start.slice(8)} 0000000000000000 00000002 00000000`],
    ['an epoch beyond what can be counted', `${start} 7fffffffffffffff 00000002 00000000`],
    ['a round beyond what can be counted', '00000000 0000000000000001 0000000000000000 7fffffffffffffff'],
    ['a zxid beyond what can be counted', '00000000 0000000000000001 7fffffffffffffff 0000000000000001'],
  ])('is refused when it is %s', (_, payload) => {
    expect(() => decodeNotification(bytes(payload))).toThrow(ProtocolError)
  })

  it('comes back as it was', () => {
    const long = fc.oneof(fc.constantFrom(NO_VALUE, -1), fc.maxSafeNat())
    const anyNotification: fc.Arbitrary<Notification> = fc.record({
      state: fc.constantFrom(...(Object.keys(PeerState) as PeerState[])),
      vote: fc.record({ leader: long, zxid: long, round: fc.nat(2 ** 31 - 1), epoch: long }),
      version: fc.constant(2),
      configuration: fc.string({ maxLength: 300 }),
    })
    fc.assert(
      fc.property(anyNotification, (notification) => {
        const { state, vote } = notification
        expect(decodeNotification(encodeNotification(state, vote, notification.configuration!))).toEqual(
          notification,
        )
      }),
    )
  })

  it('of any bytes at all is read or refused, and nothing else happens', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (payload) => {
        try {
          decodeNotification(payload)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})
